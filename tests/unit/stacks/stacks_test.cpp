#include "stacks/stacks.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "expect.hpp"

extern "C" __attribute__((noinline, used)) int coretap_stacks_test_function(int n) {
  return n * 3 + 1;
}

namespace coretap {
namespace {

constexpr std::uint64_t kNowhere = 0x10;  // in the first page, which no process maps

struct Walked {
  std::vector<std::uint64_t> frames;
  operator Stacks::UserStack() const { return {frames, 0}; }
  operator stack() const {
    stack s{};
    for (auto a : frames) s.ip[s.depth++] = a;
    return s;
  }
};

Walked with(std::initializer_list<std::uint64_t> addresses) { return {addresses}; }

std::uint64_t here() { return reinterpret_cast<std::uint64_t>(&coretap_stacks_test_function); }

TEST(Stacks, UserFrames) {
  Stacks stacks({});
  auto frames = stacks.user(getpid(), with({here(), here() + 2, kNowhere}), {});
  EXPECT_EQ(frames,
            (Words{"coretap_stacks_test_function", "coretap_stacks_test_function", "[unknown]"}));
}

// Callers' addresses are return addresses, after the call: a function may end with one.
TEST(Stacks, OnlyTheLeafIsWhereItStands) {
  Stacks stacks({.offsets = true});
  auto frames = stacks.user(getpid(), with({here(), here()}), {});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0], "coretap_stacks_test_function+0x0");
  EXPECT_FALSE(frames[1].starts_with("coretap_stacks_test_function")) << frames[1];
  EXPECT_EQ(stacks.user(getpid(), with({here() + 1, here() + 1}), {}),
            Words(2, "coretap_stacks_test_function+0x1"));
}

TEST(Stacks, Modules) {
  Stacks stacks({.offsets = true, .modules = true});
  auto frames = stacks.user(getpid(), with({here(), kNowhere}), {});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].starts_with("coretap_stacks_test_function+0x0 (") &&
              frames[0].ends_with(")"))
      << frames[0];
  EXPECT_EQ(frames[1], "[unknown]") << "in no module";
}

// Java agents name what was inlined in the map of compiled code.
TEST(Stacks, InlinedFunctionsAreFrames) {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const auto path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  std::ofstream(path) << std::hex << address << " 10 Outer::run->Map::get->hash\n"
                      << address + 0x10 << " 10 operator->\n"
                      << address + 0x20 << " 10 ->->\n";
  Stacks stacks({.located = true});
  std::vector<FramePlace> places;
  auto frames = stacks.user(getpid(), with({address, here() + 1}), {}, nullptr, &places);
  EXPECT_EQ(frames, (Words{"hash", "Map::get", "Outer::run", "coretap_stacks_test_function"}));
  ASSERT_EQ(places.size(), frames.size());
  const FrameCode codes[] = {FrameCode::inlined, FrameCode::inlined, FrameCode::compiled,
                             FrameCode::program};
  for (std::size_t i = 0; i < frames.size(); i++) {
    EXPECT_EQ(code_of({StackWord::user, false, frames[i], &places[i]}), codes[i]) << frames[i];
    EXPECT_EQ(places[i].function, frames[i]);
  }
  EXPECT_EQ(Stacks({.offsets = true}).user(getpid(), with({address + 4}), {}),
            (Words{"hash", "Map::get", "Outer::run+0x4"}));
  EXPECT_EQ(stacks.user(getpid(), with({address + 0x10}), {}), (Words{"operator->"}));
  EXPECT_EQ(stacks.user(getpid(), with({address + 0x20}), {}), (Words{"->->"}));
  EXPECT_EQ(Stacks({.places = true}).user(getpid(), with({address}), {}).size(), 1u);
  std::filesystem::remove(path);
  ::munmap(memory, 4096);
}

class StacksWithLines : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("code.c",
                   "static inline __attribute__((always_inline)) int within(int x) {\n"
                   "  return x / 7 * 3;\n"
                   "}\n"
                   "int stacks_with_lines(int x) {\n"
                   "  return within(x) - 1;\n"
                   "}\n");
    const auto object = scratch_.in("code.so");
    if (!succeeds(fmt::format("cd {} && cc -shared -fPIC -O2 -g -Wl,--build-id code.c -o code.so",
                              scratch_.path())))
      GTEST_SKIP() << "needs a compiler";
    handle_ = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) GTEST_SKIP() << ::dlerror();
    begin_ = reinterpret_cast<std::uint64_t>(::dlsym(handle_, "stacks_with_lines"));
  }
  void TearDown() override {
    if (handle_) ::dlclose(handle_);
  }
  ScratchDirectory scratch_;
  void* handle_ = nullptr;
  std::uint64_t begin_ = 0;
};

TEST_F(StacksWithLines, InlinedFunctionsComeBeforeTheirCallers) {
  Stacks stacks({.lines = true});
  std::set<std::string> seen;
  for (std::uint64_t i = 0; i < 24; i++) {
    std::vector<FramePlace> places;
    auto frames = stacks.user(getpid(), with({begin_ + i}), {}, nullptr, &places);
    ASSERT_EQ(places.size(), frames.size());
    if (!frames.back().starts_with("stacks_with_lines")) break;
    seen.insert(frames.begin(), frames.end());
    if (frames.size() < 2) continue;
    EXPECT_EQ(frames.size(), 2u);
    EXPECT_EQ(places[0].function, "within");
    EXPECT_TRUE(places[0].inlined && !places[1].inlined);
    EXPECT_EQ(places[0].at, places[1].at);
    EXPECT_EQ(places[0].source, scratch_.in("code.c"));
    EXPECT_EQ(code_of({StackWord::user, false, frames[0], &places[0]}), FrameCode::inlined);
    EXPECT_EQ(annotation_of(FrameCode::inlined), "_[i]");
  }
  EXPECT_TRUE(seen.contains("within (code.c:2)")) << testing::PrintToString(seen);
  EXPECT_TRUE(seen.contains("stacks_with_lines (code.c:5)")) << testing::PrintToString(seen);
  // Without the option nothing changes.
  EXPECT_EQ(Stacks({}).user(getpid(), with({begin_ + 1}), {}), Words{"stacks_with_lines"});
}

// The depth comes from a map: it is limited to the array.
TEST(Stacks, DepthIsBounded) {
  Stacks stacks({});
  stack s{};
  EXPECT_TRUE(stacks.kernel(s).empty());
  s.depth = UINT16_MAX;
  EXPECT_LE(stacks.kernel(s).size(), static_cast<std::size_t>(STACK_DEPTH));
}

TEST(Stacks, DeepStacksAreInParts) {
  std::map<std::uint64_t, stack> all;
  auto stored = [&](std::uint64_t key, stack& to) {
    auto found = all.find(key);
    if (found != all.end()) to = found->second;
    return found != all.end();
  };
  auto part = [](std::initializer_list<std::uint64_t> words, bool linked) {
    stack s{};
    for (auto w : words) s.ip[s.depth++] = w;
    if (linked) s.depth |= STACK_LINKED;
    return s;
  };
  all[70] = part({3, 4, 71}, true);
  all[71] = part({5}, false);
  std::vector<std::uint64_t> frames;
  EXPECT_TRUE(add_parts(part({1, 2, 70}, true), stored, frames));
  EXPECT_EQ(frames, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  frames.clear();
  EXPECT_FALSE(add_parts(part({1, 99}, true), stored, frames)) << "not stored";
  EXPECT_EQ(frames, std::vector<std::uint64_t>{1});
  // Keys come from a map: a part may lead to itself, and say that it is longer than it can be.
  all[80] = part({6, 80}, true);
  frames.clear();
  EXPECT_FALSE(add_parts(all[80], stored, frames));
  EXPECT_EQ(frames.size(), static_cast<std::size_t>(STACK_PARTS));
  stack longest{};
  longest.depth = UINT16_MAX;
  frames.clear();
  EXPECT_FALSE(add_parts(longest, stored, frames));
  EXPECT_EQ(frames.size(), static_cast<std::size_t>(STACK_PART));
  frames.clear();
  longest.depth = STACK_LINKED;  // no words
  EXPECT_TRUE(add_parts(longest, stored, frames));
}

runtime_code sent_code(std::uint64_t number, std::string_view name) {
  runtime_code code{};
  code.mark = RUNTIME_CODE;
  code.number = number;
  code.minor = 11;
  code.line = 7;
  code.file = {11, 1, 0};
  std::memcpy(code.file_text, "/srv/app.py", 11);
  code.name = {static_cast<__u16>(name.size()), 1, 0};
  std::memcpy(code.name_text, name.data(), name.size());
  return code;
}

// The native frame that runs interpreted ones is the interpreter's loop.
TEST(Stacks, InterpretedFramesInPlaceOfTheLoop) {
  runtimes::CodeNames codes;
  auto inner = sent_code(1, "inner"), outer = sent_code(9, "outer");
  codes.take(&inner, sizeof inner);
  codes.take(&outer, sizeof outer);
  auto word = [](std::uint64_t number) { return STACK_RUNTIME | number << RUNTIME_PLACE_BITS; };
  const auto walked =
      with({here(), here() + 1, word(1), word(9), here() + 2, word(17), here() + 1});
  const std::string native = "coretap_stacks_test_function";
  const Words frames = {native, "inner (app.py:7)", "outer (app.py:7)", "[python]", native};
  std::vector<FramePlace> places;
  EXPECT_EQ(Stacks({.located = true}).user(getpid(), walked, {.codes = &codes}, nullptr, &places),
            frames);
  ASSERT_EQ(places.size(), frames.size());
  EXPECT_EQ(places[1].source, "/srv/app.py");
  EXPECT_EQ(places[1].line, 7u);
  EXPECT_EQ(code_of({StackWord::user, false, frames[1], &places[1]}), FrameCode::interpreted);
  EXPECT_EQ(Stacks({.interpreted_only = true}).user(getpid(), walked, {.codes = &codes}),
            (Words{"inner (app.py:7)", "outer (app.py:7)", "[python]"}));
  EXPECT_EQ(Stacks({.interpreted_only = true}).user(getpid(), with({here()}), {}), Words{native});
}

// JavaScript's frames are native ones of code that V8 has made: none is only the interpreter's.
TEST(Stacks, FramesOfARuntimeWithoutLoop) {
  runtimes::CodeNames codes;
  auto inner = sent_code(8 + RUNTIME_V8, "inner");
  codes.take(&inner, sizeof inner);
  auto word = [](std::uint64_t number) { return STACK_RUNTIME | number << RUNTIME_PLACE_BITS; };
  const auto walked =
      with({here(), here() + 1, word(8 + RUNTIME_V8), word(RUNTIME_V8), here() + 2});
  const std::string native = "coretap_stacks_test_function";
  std::vector<FramePlace> places;
  EXPECT_EQ(Stacks({.located = true}).user(getpid(), walked, {.codes = &codes}, nullptr, &places),
            (Words{native, native, "inner", "[v8]", native}));
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[2].object, "[v8]");
}

TEST(Stacks, ProcessesThatAreNot) {
  Stacks stacks({.modules = true});
  for (pid_t pid : {-1, 0, 0x7fffffff}) {
    stacks.remember(pid, 0, 0, 0);
    EXPECT_EQ(stacks.user(pid, with({here()}), {}), Words{"[unknown]"}) << pid;
  }
}

/// Addresses of kernel functions, if this process may see them; 0: none.
std::uint64_t kernel_address(std::string_view wanted) {
  std::ifstream in("/proc/kallsyms");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::uint64_t address = 0;
    std::string type, name;
    words >> std::hex >> address >> type >> name;
    if (name == wanted) return address;
  }
  return 0;
}

TEST(Stacks, KernelFrames) {
  auto read = kernel_address("vfs_read"), run = kernel_address("bpf_trace_run1");
  Stacks plain({}), offsets({.offsets = true});
  EXPECT_EQ(plain.kernel(with({kNowhere})), Words{"[unknown]"});
  if (!read) GTEST_SKIP() << "kernel addresses are hidden here";
  EXPECT_EQ(plain.kernel(with({read + 8, kNowhere})), (Words{"vfs_read", "[unknown]"}));
  EXPECT_EQ(offsets.kernel(with({read + 8})), Words{"vfs_read+0x8"});
  if (!run) return;
  // Our program's frames at the leaf are not shown; further up they may matter to the user.
  EXPECT_EQ(plain.kernel(with({run + 8, read + 8, run + 8})),
            (Words{"vfs_read", "bpf_trace_run1"}));
  EXPECT_TRUE(plain.kernel(with({run + 8})).empty());
}

}  // namespace
}  // namespace coretap
