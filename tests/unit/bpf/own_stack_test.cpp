// The kernel program's walk with the loader's tables of this process's files, against the
// compiler's unwinder.
#ifdef __x86_64__
#include <alloca.h>
#include <ucontext.h>
#include <unwind.h>

#include "bpf/library.hpp"
#include "coretap/symbols.hpp"
#include "expect.hpp"
#include "unwind/kernel_maps.hpp"
#include "unwind/processes.hpp"
#include "unwind/tables.hpp"

namespace coretap::unwind {
namespace {

struct Frame {
  std::uint64_t ip;
  bool exact;
  bool operator==(const Frame&) const = default;
};

// In static memory: signal handlers fill it, too.
struct Frames {
  std::array<Frame, 4096> at;
  std::size_t count = 0;
};

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* to) {
  auto& frames = *static_cast<Frames*>(to);
  int exact = 0;
  auto ip = _Unwind_GetIPInfo(context, &exact);
  if (ip != 0 && frames.count < frames.at.size()) frames.at[frames.count++] = {ip, exact != 0};
  return _URC_NO_REASON;
}

__attribute__((always_inline)) inline given_registers registers_here() {
  given_registers r{};
  asm volatile(
      "movq %%rsp, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq %%rbx, 24(%0)\n\t"
      "leaq 1f(%%rip), %%rax\n"
      "1:\n\t"
      "movq %%rax, 0(%0)"
      :
      : "r"(&r)
      : "rax", "memory");
  return r;
}

struct Differences {
  std::size_t compared = 0, frames = 0, deepest = 0, wrong = 0, signals = 0;
  // The first difference, unformatted: a signal handler may not allocate.
  found_walk ours{};
  std::array<Frame, STACK_DEPTH + 1> theirs{};
  std::size_t their_count = 0;

  std::string text() const;
};

std::string frame_text(std::uint64_t ip, bool exact) {
  static UserSymbols symbols;
  auto symbol = symbols.find(::getpid(), ip, exact);
  return fmt::format("  {:x} {}+{:x} {}+{:x}{}\n", ip, symbol.name, symbol.offset, symbol.module,
                     symbol.module_offset, exact ? " exact" : "");
}

/// `theirs` are the frames from the first one on.
void compare(const found_walk& found, const Frame* theirs, std::size_t count, Differences& into) {
  into.compared++;
  std::size_t depth = found.stack.depth;
  auto limited = std::min<std::size_t>(count, STACK_DEPTH);
  bool same = depth == limited && found.frames == static_cast<long>(depth) &&
              found.stack.guessed == 0 && !found.unknown_map &&
              found.stack.end == (count > STACK_DEPTH ? STACK_END_DEPTH : STACK_END_WHOLE);
  for (std::size_t i = 1; same && i < depth; i++) {
    same = (found.stack.ip[i] & ~STACK_EXACT) == theirs[i].ip &&
           ((found.stack.ip[i] & STACK_EXACT) != 0) == theirs[i].exact;
    into.signals += theirs[i].exact;
  }
  into.frames += depth;
  into.deepest = std::max(into.deepest, depth);
  if (same) return;
  if (into.wrong++ != 0) return;
  into.ours = found;
  into.their_count = std::min(count, into.theirs.size());
  std::copy_n(theirs, into.their_count, into.theirs.begin());
}

std::string Differences::text() const {
  auto out = fmt::format("{} of {}; the first: end {}, guessed {}\nours:\n", wrong, compared,
                         ours.stack.end, ours.stack.guessed);
  for (std::size_t i = 0; i < ours.stack.depth; i++)
    out += frame_text(ours.stack.ip[i] & ~STACK_EXACT, (ours.stack.ip[i] & STACK_EXACT) != 0);
  out += "theirs:\n";
  for (std::size_t i = 0; i < their_count; i++) out += frame_text(theirs[i].ip, theirs[i].exact);
  return out;
}

// Of the current test.
Differences* differences;
coretap::test::Library* walker;

const found_walk& walk_from(const given_registers& registers) {
  walker->data().given.registers = registers;
  walker->run((*walker)->progs.run_walk);
  return walker->data().found;
}

/// Both walk from here: all frames but the first are return addresses.
__attribute__((noinline)) int compare_here() {
  static Frames theirs;
  auto& found = walk_from(registers_here());
  theirs.count = 0;
  _Unwind_Backtrace(note_frame, &theirs);
  // Their first frame may be the call of the unwinder in this function: both have that frame.
  compare(found, theirs.at.data(), theirs.count, *differences);
  return 1;
}

// A chain of functions with different kinds of frames; each calls a random next one.
using Step = int (*)(std::mt19937&, int);
int go_on(std::mt19937& random, int left);
volatile int sink;

__attribute__((noinline)) int large(std::mt19937& random, int left) {
  volatile char buffer[1000 + 4096];
  buffer[left & 1023] = 1;
  return go_on(random, left) ^ buffer[left & 1023];
}
__attribute__((noinline)) int variable(std::mt19937& random, int left) {
  auto* buffer = static_cast<volatile char*>(alloca(16 + random() % 700));
  buffer[3] = 1;
  return go_on(random, left) ^ buffer[3];
}
__attribute__((noinline)) int realigned(std::mt19937& random, int left) {
  alignas(64) volatile char buffer[128];
  buffer[left & 127] = 1;
  return go_on(random, left) ^ buffer[left & 127];
}
__attribute__((noinline)) int realigned_variable(std::mt19937& random, int left) {
  alignas(128) volatile char buffer[128];
  auto* more = static_cast<volatile char*>(alloca(16 + random() % 300));
  buffer[left & 127] = 1;
  more[1] = 1;
  return go_on(random, left) ^ buffer[left & 127] ^ more[1];
}
__attribute__((noinline)) int many_registers(std::mt19937& random, int left) {
  int a = sink, b = sink, c = sink, d = sink, e = sink, f = sink;
  int r = go_on(random, left);
  sink = a ^ b;
  return r ^ c ^ d ^ e ^ f;
}
std::mt19937* sorted_random;
int sorted_left;
bool sorted_once;
int by_order(const void* a, const void* b) {
  if (!std::exchange(sorted_once, true)) sink = go_on(*sorted_random, sorted_left);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
__attribute__((noinline)) int by_qsort(std::mt19937& random, int left) {
  int numbers[] = {4, 1, 3, 2};
  sorted_random = &random;
  sorted_left = left;
  sorted_once = false;
  ::qsort(numbers, 4, sizeof(int), by_order);
  return numbers[0];
}
__attribute__((noinline)) int by_arguments(std::mt19937& random, int left, int a, int b, int c,
                                           int d, int e, int f) {
  return go_on(random, left) ^ a ^ b ^ c ^ d ^ e ^ f;
}
__attribute__((noinline)) int with_arguments(std::mt19937& random, int left) {
  return by_arguments(random, left, sink, 2, 3, 4, 5, sink) ^ 1;
}
void on_signal(int, siginfo_t*, void*) { sink = go_on(*sorted_random, sorted_left); }
__attribute__((noinline)) int by_signal(std::mt19937& random, int left) {
  sorted_random = &random;
  sorted_left = left;
  ::raise(SIGUSR1);
  return left;
}

using Leaf = int (*)();
Leaf leaf = compare_here;

constexpr Step kSteps[] = {large,          variable, realigned,     realigned_variable,
                           many_registers, by_qsort, with_arguments};
bool with_signals;

int go_on(std::mt19937& random, int left) {
  if (left <= 0) return leaf();
  if (with_signals && random() % 16 == 0) return by_signal(random, left - 1);
  return kSteps[random() % std::size(kSteps)](random, left - 1);
}

class OwnStack : public coretap::test::WithLibrary<OwnStack> {
 protected:
  void SetUp() override {
    WithLibrary::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    static Tables tables({fd(library->maps.unwind_rules), fd(library->maps.unwind_pages),
                          fd(library->maps.unwind_rows)},
                         32 << 20);
    static Processes processes({fd(library->maps.unwind_mappings), library->maps.unwind_processes},
                               tables);
    if (processes.look(::getpid(), GIVEN_PROGRAM, false)) show_addresses();
    walker = &library;
    differences = &seen_;
    data.given = {.cs = GIVEN_CS, .has_mm = true};
    with_signals = false;
    leaf = compare_here;
  }
  static int fd(const bpf_map* map) { return bpf_map__fd(map); }
  /// Frames are addresses, not file offsets.
  void show_addresses() {
    const __u64 program = GIVEN_PROGRAM;
    unwind_process entry{};
    ASSERT_EQ(bpf_map_lookup_elem(fd(library->maps.unwind_processes), &program, &entry), 0);
    std::vector<unwind_mapping> all(entry.count);
    const auto at = entry.first * sizeof all[0], size = all.size() * sizeof all[0];
    ASSERT_TRUE(read_map(fd(library->maps.unwind_mappings), at, all.data(), size));
    for (auto& m : all) m.file = 0;
    ASSERT_TRUE(write_map(fd(library->maps.unwind_mappings), at, all.data(), size));
  }
  void walk(int times, unsigned seed, int deepest) {
    std::mt19937 random(seed);
    for (int i = 0; i < times; i++)
      sink = go_on(random, static_cast<int>(random() % static_cast<unsigned>(deepest)));
  }
  void expect_none(std::size_t compared) {
    EXPECT_GE(seen_.compared, compared);
    EXPECT_EQ(seen_.wrong, 0u) << seen_.text();
  }
  Differences seen_;
};

TEST_F(OwnStack, RandomChainsOfAllKindsOfFrames) {
  walk(3000, 1, 60);
  expect_none(3000);
  EXPECT_GT(seen_.deepest, 60u);
}

TEST_F(OwnStack, DeeperThanIsKept) {
  walk(200, 2, 400);
  expect_none(200);
  EXPECT_EQ(seen_.deepest, static_cast<std::size_t>(STACK_DEPTH));
}

TEST_F(OwnStack, InAThreadAndByTheTaskOfOldKernels) {
  std::thread([&] { walk(1000, 4, 60); }).join();
  data.given.old_kernel = true;
  walk(200, 3, 40);
  expect_none(1200);
}

/// Handlers run on an alternate stack, or on the interrupted one.
class OwnStackSignals : public OwnStack, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr std::size_t kBytes = 1 << 22;
  void SetUp() override {
    OwnStack::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
    stack_t stack{.ss_sp = memory_, .ss_flags = 0, .ss_size = kBytes};
    ASSERT_EQ(::sigaltstack(&stack, &stack_before_), 0);
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | (GetParam() ? SA_ONSTACK : 0);
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before_), 0);
  }
  void TearDown() override {
    if (!memory_) return;
    ::sigaction(SIGUSR1, &before_, nullptr);
    ::sigaltstack(&stack_before_, nullptr);
    ::munmap(memory_, kBytes);
  }
  void* memory_ = nullptr;
  stack_t stack_before_{};
  struct sigaction before_ {};
};

TEST_P(OwnStackSignals, HandlersInTheChain) {
  with_signals = true;
  walk(2000, 5, 50);
  expect_none(2000);
  EXPECT_GT(seen_.signals, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Stacks, OwnStackSignals, ::testing::Bool(), [](const auto& info) {
  return info.param ? "OfTheirOwn" : "OfTheThread";
});

// Single-steps: a trap after each instruction, whose handler reads the registers.
struct Stepped {
  Differences seen;
  std::size_t steps = 0, most = 0, skipped = 0;
  std::array<std::size_t, UNWIND_OTHER + 1> rules{};  // rules used, by kind
};
Stepped* stepped;
Frames step_frames;

void on_trap(int, siginfo_t*, void* given) {
  auto& context = *static_cast<ucontext_t*>(given);
  auto* r = context.uc_mcontext.gregs;
  if (!stepped || ++stepped->steps > stepped->most) {
    r[REG_EFL] &= ~0x100L;
    return;
  }
  const given_registers registers{.ip = static_cast<__u64>(r[REG_RIP]),
                                  .sp = static_cast<__u64>(r[REG_RSP]),
                                  .bp = static_cast<__u64>(r[REG_RBP]),
                                  .bx = static_cast<__u64>(r[REG_RBX]),
                                  .di = static_cast<__u64>(r[REG_RDI]),
                                  .r10 = static_cast<__u64>(r[REG_R10])};
  auto& found = walk_from(registers);
  step_frames.count = 0;
  _Unwind_Backtrace(note_frame, &step_frames);
  auto kind = walker->run((*walker)->progs.run_kind, registers.ip);
  stepped->rules[kind]++;
  // The frame after the signal's is the interrupted one.
  for (std::size_t i = 0; i < step_frames.count; i++) {
    if (step_frames.at[i].ip != registers.ip || !step_frames.at[i].exact) continue;
    // Where the unwinder has no data, the walk uses frame pointers: nothing to compare.
    if (kind == UNWIND_NONE)
      stepped->skipped++;
    else
      compare(found, &step_frames.at[i], step_frames.count - i, stepped->seen);
    return;
  }
  stepped->skipped++;
}

class SteppedStack : public OwnStack {
 protected:
  void SetUp() override {
    OwnStack::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    ASSERT_EQ(::sigaction(SIGTRAP, &action, &before_), 0);
    stepped = &stepped_;
  }
  void TearDown() override {
    if (std::exchange(stepped, nullptr)) ::sigaction(SIGTRAP, &before_, nullptr);
  }
  template <class Work>
  __attribute__((noinline)) void step_through(std::size_t most, Work work) {
    stepped_.most = stepped_.steps + most;
    asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
    work();
    stepped_.most = 0;  // its trap clears the flag: clearing it here would move the stack
    asm volatile("" ::: "memory");
  }
  void expect_same(std::size_t least) {
    if (stepped_.steps == 0) GTEST_SKIP() << "this machine traps no single steps";
    EXPECT_GE(stepped_.seen.compared, least);
    EXPECT_EQ(stepped_.seen.wrong, 0u) << stepped_.seen.text();
    EXPECT_LE(stepped_.skipped * 100, stepped_.steps) << "code that nothing is known of";
  }
  Stepped stepped_;
  struct sigaction before_ {};
};

// Must not walk: the walk that a trap has interrupted would be overwritten.
__attribute__((noinline)) int nothing() { return sink; }

TEST_F(SteppedStack, OfTheChain) {
  leaf = nothing;
  for (unsigned i = 0; i < std::size(kSteps); i++) {
    std::mt19937 random(i);
    step_through(2000, [&] { sink = kSteps[i](random, 5); });
  }
  expect_same(5000);
  for (auto kind : {UNWIND_SP, UNWIND_BP}) EXPECT_GT(stepped_.rules[kind], 0u);
#ifndef __clang__  // realigns its frames differently
  for (auto kind : {UNWIND_R10, UNWIND_BP_DEREF}) EXPECT_GT(stepped_.rules[kind], 0u);
#endif
}

TEST_F(SteppedStack, OfTheLibrary) {
  step_through(30000, [&] {
    char text[200];
    ::snprintf(text, sizeof text, "%s %d %.3f", "a word", sink, 3.25);
    sink = static_cast<int>(::strtod(text + 7, nullptr) + static_cast<double>(::strlen(text)));
    ::memset(text, 1, sizeof text);
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    std::string grows;
    for (int i = 0; i < 40; i++) grows += "more than fits in place ";
    sink = static_cast<int>(grows.size());
  });
  expect_same(3000);
}

// The first call of a function goes through the PLT and the dynamic linker's resolver.
TEST_F(SteppedStack, OfTheDynamicLinker) {
  static bool bound;
  if (std::exchange(bound, true)) GTEST_SKIP() << "what it calls is bound already";
  step_through(60000, [&] {
    ::srand48(4);
    sink = static_cast<int>(::lrand48() ^ ::mrand48() ^ ::a64l("bpf"));
    sink = ::l64a(12345)[0] ^ static_cast<int>(::drand48());
  });
  expect_same(500);
  EXPECT_GT(stepped_.rules[UNWIND_PLT], 0u);
  EXPECT_GT(stepped_.rules[UNWIND_BX], 0u);
}

}  // namespace
}  // namespace coretap::unwind
#endif
