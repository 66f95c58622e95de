#include "program/uprobe_proof.hpp"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/figures.hpp"
#include "base/uninterrupted.hpp"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

using symbols::CodeBytes;

/// Executable code, with a probe at `offset`.
class ProbedCode {
 public:
  ProbedCode(CodeBytes code, std::uint64_t offset)
      : file_(memfd_create("coretap", MFD_CLOEXEC)), begin_(place_of(code)) {
    if (!file_ || pwrite(file_.get(), code.data(), code.size(), static_cast<off_t>(begin_)) < 0)
      return;
    auto* memory = mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_.get(), 0);
    if (memory == MAP_FAILED) return;
    memory_ = memory;
    auto type = probe_event_type("uprobe");
    if (!type) return;
    const auto path = fmt::format("/proc/self/fd/{}", file_.get());
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = *type;
    attr.uprobe_path = reinterpret_cast<std::uintptr_t>(path.c_str());
    attr.probe_offset = begin_ + offset;
    event_ =
        Fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    error_ = event_ ? 0 : errno;
  }
  ProbedCode(const ProbedCode&) = delete;
  ProbedCode& operator=(const ProbedCode&) = delete;

  bool probed() const { return static_cast<bool>(event_); }
  int error() const { return error_; }
  template <class Function>
  Function as() const {
    return reinterpret_cast<Function>(static_cast<char*>(memory_) + begin_);
  }

 private:
  /// The kernel can take a probe for an older one at the same offset (see in_child()).
  static std::size_t place_of(CodeBytes code) {
    return fnv1a(code) / kRoom % (kBytes / kRoom) * kRoom;
  }

  static constexpr std::size_t kBytes = 4096, kRoom = 32;
  Fd file_;
  std::size_t begin_ = 0;
  Fd event_;
  void* memory_ = nullptr;
  int error_ = 0;
};

/// Answer of a child process.
struct Tried {
  int error = 0;            ///< errno of the probe; 0: it was placed
  std::uint64_t value = 0;  ///< of the function that called the code
};

constexpr unsigned kSeconds = 3;

/// The child's life: it never returns.
template <class Call>
[[noreturn]] void try_code(CodeBytes code, std::uint64_t offset, int to, Call call) {
  static char stack[16 << 10];  // the code may have changed the stack pointer
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  struct sigaction ends {};
  ends.sa_handler = [](int) { _exit(1); };  // neither a core file nor a line in the kernel's log
  ends.sa_flags = SA_ONSTACK;
  for (int number : {SIGSEGV, SIGILL, SIGBUS, SIGTRAP, SIGFPE}) sigaction(number, &ends, nullptr);
  signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(kSeconds);  // the code may not come to an end
  const ProbedCode probed(code, offset);
  Tried tried{probed.error()};
  if (probed.probed()) tried.value = call(probed);
  (void)!write(to, &tried, sizeof tried);
  _exit(0);  // removes the probe, which takes grace periods of RCU
}

/// The child's end takes as long as the kernel takes to remove its probe, 100 ms: another thread
/// waits for it.
void reap_aside(pid_t child) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits the mask
  try {
    std::thread([child] { waitpid(child, nullptr, 0); }).detach();
  } catch (const std::system_error&) {  // no thread could start: it stays a zombie until the exit
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Places a probe and calls the code in a child process. The kernel (seen with 6.18) keeps a
/// removed probe for a while under the address of its file's inode, which a new file may get, and
/// then treats a probe at the same offset as the old instruction: the child may die.
template <class Call>
std::optional<Tried> in_child(CodeBytes code, std::uint64_t offset, Call call) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return Tried{errno};
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t child = fork();
  if (child < 0) return Tried{errno};
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try_code(code, offset, to.get(), call);
  }
  to.reset();
  Tried tried;
  const bool answered =
      uninterrupted([&] { return read(from.get(), &tried, sizeof tried); }) == sizeof tried;
  reap_aside(child);
  return answered ? std::optional(tried) : std::nullopt;
}

/// The same until a child survives; an error if several do not.
template <class Call>
Tried surely(CodeBytes code, std::uint64_t offset, Call call) {
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; i++)
    if (auto tried = in_child(code, offset, call)) return *tried;
  return Tried{EFAULT};
}

}  // namespace

#if defined(__x86_64__)

namespace {

constexpr std::uint8_t kNop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

bool keeps_red_zone() {
  constexpr long kUprobeCall = 336;  // the system call that the kernel then places there
  if (syscall(kUprobeCall) < 0 && errno == ENOSYS) return true;
  std::vector<std::uint8_t> code = {0x48, 0x89, 0x7c, 0x24, 0xf8};  // mov %rdi,-8(%rsp)
  const auto place = code.size();
  code.insert(code.end(), std::begin(kNop5), std::end(kNop5));
  for (std::uint8_t byte : {0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3})  // mov -8(%rsp),%rax; ret
    code.push_back(byte);
  auto tried = surely(code, place, [](const ProbedCode& probed) -> std::uint64_t {
    constexpr std::uint64_t kValue = 0x5ca1ab1e;
    for (int i = 0; i < 4; i++)  // the first hit replaces the nop by the call
      if (probed.as<std::uint64_t (*)(std::uint64_t)>()(kValue) != kValue) return 0;
    return 1;
  });
  return tried.value != 0;
}

/// Legacy prefixes that the kernel accepts.
bool is_plain_prefix(std::uint8_t byte) {
  constexpr std::string_view kPrefixes = "\x64\x65\x66\x67\xf2\xf3";
  return kPrefixes.find(static_cast<char>(byte)) != std::string_view::npos;
}

bool is_exchange_with_r8(CodeBytes code) {
  while (!code.empty() && is_plain_prefix(code[0])) code = code.subspan(1);
  return code.size() > 1 && (code[0] & 0xf1) == 0x41 && code[1] == 0x90;  // REX.B, nop
}

/// branch_setup_xol_ops() in arch/x86/kernel/uprobes.c treats 0x90 as a nop with any prefix.
bool exchanges_with_r8() {
  constexpr std::uint8_t kCode[] = {0x48, 0x89, 0xf8,  // mov %rdi,%rax
                                    0x49, 0x89, 0xf0,  // mov %rsi,%r8
                                    0x49, 0x90,        // xchg %rax,%r8
                                    0xc3};
  auto tried = surely(kCode, 6, [](const ProbedCode& probed) {
    return probed.as<std::uint64_t (*)(std::uint64_t, std::uint64_t)>()(1, 2);
  });
  return tried.value == 2;
}

/// Same check as is_prefix_bad() in arch/x86/kernel/uprobes.c.
bool has_doubtful_prefix(CodeBytes code) {
  using namespace std::string_view_literals;
  for (auto byte : code) {
    if ("\x26\x2e\x36\x3e\xf0"sv.find(static_cast<char>(byte)) != std::string_view::npos)
      return true;
    if (!is_plain_prefix(byte)) return false;
  }
  return false;
}

}  // namespace

std::string place_refusal(CodeBytes instruction, bool function_begins) {
  if (!function_begins && std::ranges::equal(instruction, kNop5)) {
    static const bool harmless = keeps_red_zone();
    if (!harmless)
      return "a probe on a nop of 5 bytes would overwrite data of the program (the red zone) on "
             "this kernel";
  }
  if (is_exchange_with_r8(instruction)) {
    static const bool harmless = exchanges_with_r8();
    if (!harmless) return "this kernel takes the instruction (xchg with %r8) for a nop";
  }
  if (!has_doubtful_prefix(instruction)) return {};
  static std::map<std::vector<std::uint8_t>, bool> known;
  std::vector<std::uint8_t> bytes(instruction.begin(), instruction.end());
  auto [taken, fresh] = known.try_emplace(bytes, true);
  constexpr int kNotSupported = 524;  // ENOTSUPP, which user-space headers lack
  if (fresh) {
    auto not_called = [](const ProbedCode&) { return std::uint64_t{}; };
    taken->second = surely(bytes, 0, not_called).error != kNotSupported;
  }
  return taken->second ? "" : "the kernel cannot probe this instruction";
}

#else

std::string place_refusal(CodeBytes, bool) { return {}; }

#endif

namespace {

int refused_with = 0;  // errno

/// The shortest of several calls with a probe at the first instruction; 0: it cannot be probed.
double time_of_probe(CodeBytes code) {
  constexpr int kCalls = 12;  // the first ones make the page present
  if (code.empty()) return 0;
  auto tried = surely(code, 0, [](const ProbedCode& probed) {
    auto* call = probed.as<std::uint64_t (*)(std::uint64_t)>();
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < kCalls; i++) {
      const auto begin = monotonic_ns();
      call(0);
      least = std::min(least, monotonic_ns() - begin);
    }
    return least;
  });
  refused_with = tried.error;
  return static_cast<double>(tried.value);
}

}  // namespace

double probe_ns(symbols::EntryStep::Form form) {
#if defined(__x86_64__)
  static constexpr std::uint8_t kStepped[] = {0x48, 0x89, 0xf8, 0xc3},  // mov %rdi,%rax; ret
      kPush[] = {0x57, 0x58, 0xc3},                                     // push %rdi; pop %rax; ret
      kNop[] = {0x90, 0xc3}, kBranch[] = {0xeb, 0x00, 0xc3};            // jmp to the next
  static constexpr CodeBytes kCode[] = {kStepped, kPush, kNop, kBranch, {}, {}};
#else
  // Each is followed by ret: mov x0, x1; stp x29, x30, [sp, #-16]! and
  // ldp x29, x30, [sp], #16; nop; b to the next; adr x0, .; bti c.
  static constexpr std::uint8_t kStepped[] = {0xe0, 0x03, 0x01, 0xaa, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kPush[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x7b,
                                           0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kNop[] = {0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kBranch[] = {0x01, 0x00, 0x00, 0x14, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kAddress[] = {0x00, 0x00, 0x00, 0x10, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kTarget[] = {0x5f, 0x24, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr CodeBytes kCode[] = {kStepped, kPush, kNop, kBranch, kAddress, kTarget};
#endif
  static_assert(std::size(kCode) == symbols::EntryStep::forms);
  static std::array<std::optional<double>, std::size(kCode)> known;
  auto& ns = known.at(form);
  if (!ns) ns = time_of_probe(kCode[form]);
  return *ns;
}

std::string probes_refused() {
  if (probe_ns(symbols::EntryStep::stepped) > 0) return {};
  return std::system_category().message(refused_with) + perf_capability_missing(refused_with, true);
}

bool emulates(symbols::EntryStep::Form form) {
  if (form == symbols::EntryStep::stepped) return false;
  const auto stepped = probe_ns(symbols::EntryStep::stepped), own = probe_ns(form);
  return own > 0 && own < stepped * 0.7;
}

bool is_stepped(symbols::EntryStep::Form form) {
  return form == symbols::EntryStep::stepped || (probe_ns(form) > 0 && !emulates(form));
}

}  // namespace coretap
