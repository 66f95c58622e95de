// The kernel program's walk, run by the kernel, with hand-made tables: each rule, each end, and
// invalid tables.
#ifdef __x86_64__

#include "bpf/made_tables.hpp"
#include "expect.hpp"

namespace coretap::unwind::test {
namespace {

constexpr std::uint64_t kCode = 0x400000;
constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kStackBytes = (1 << 20) + 16 * kPage;

unwind_rule rule(unwind_cfa cfa, int offset = 0, int more = 0) {
  return {.cfa = static_cast<__u8>(cfa), .offset = offset, .more = more};
}

std::uint64_t hash_of(const std::vector<std::uint64_t>& frames) {
  std::uint64_t hash = 0;
  for (auto frame : frames) {
    hash = (hash ^ frame) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Functions of 256 bytes each, from kCode on, and a stack with unmapped memory around it.
class Walk : public coretap::test::WithLibrary<Walk> {
 protected:
  void SetUp() override {
    WithLibrary::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    tables_ = std::make_unique<MadeTables>(library);
    auto* all = static_cast<char*>(
        ::mmap(nullptr, kStackBytes + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(all, MAP_FAILED);
    memory_ = all + kPage;
    ASSERT_EQ(::mprotect(memory_, kStackBytes, PROT_READ | PROT_WRITE), 0);
    ::memset(memory_, 0, kStackBytes);  // the kernel reads only present pages
    data.depth_limit = STACK_DEPTH;
    data.news_count = 0;
    data.news_full = false;
    task_ = {.registers = {.sp = base()}, .cs = GIVEN_CS, .has_mm = true};
    tables_->rules = {rule(UNWIND_NONE)};
    tables_->process.looked = 1;
    a = function(rule(UNWIND_SP, 8));
    last = outermost();
  }
  void TearDown() override {
    if (memory_) ::munmap(memory_ - kPage, kStackBytes + 2 * kPage);
  }

  std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(memory_); }
  std::uint64_t end() const { return base() + kStackBytes; }
  given_registers& regs() { return task_.registers; }
  void put(std::uint64_t offset, std::uint64_t word) {
    ::memcpy(memory_ + offset, &word, sizeof word);
  }
  void put(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> words) {
    for (auto [offset, word] : words) put(offset, word);
  }

  /// Adds a function; its address is kCode + 256 * (number of earlier functions).
  std::uint64_t function(unwind_rule r) {
    auto index = r.cfa == UNWIND_NONE ? 0 : static_cast<__u32>(tables_->rules.size());
    if (index) tables_->rules.push_back(r);
    rows_.push_back(static_cast<__u32>(rows_.size() * 256) << 16 | index);
    return kCode + (rows_.size() - 1) * 256;
  }
  std::uint64_t outermost() { return function(rule(UNWIND_END)); }

  /// Adds a mapping with this table's pages.
  void map_table(const Table& table, std::uint64_t start, std::uint64_t bias, __u32 length) {
    auto page = tables_->add(table), pages = static_cast<__u32>(table.pages.size());
    tables_->mappings.push_back(
        {.start = start, .bias = bias, .page = page, .pages = pages, .length = length});
  }
  /// Adds a mapping without a table.
  void map_lacking(std::uint64_t start, unwind_lack why, __u32 pages = 1) {
    tables_->mappings.push_back({.start = start, .page = __u32{why}, .length = pages});
  }
  /// Maps the functions' code as one mapping with one page of rows.
  void map_code() {
    if (!tables_->mappings.empty()) return;
    Table table;
    table.rows = rows_.empty() ? std::vector<__u32>{0} : rows_;
    table.pages = {{0, static_cast<__u32>(table.rows.size())}};
    map_table(table, kCode, kCode, 16);
  }
  const found_walk& walk(std::uint64_t ip) {
    map_code();
    tables_->install();
    regs().ip = ip;
    library.run(library->progs.run_walk);
    return found_;
  }
  bool asks() { return library.run(library->progs.run_ask) == 1; }
  using Addresses = std::vector<std::uint64_t>;
  Addresses frames() const {
    return {found_.stack.ip, found_.stack.ip + std::min<int>(found_.stack.depth, STACK_DEPTH)};
  }
  void expect(const Addresses& wanted, stack_end end, int guessed = 0) {
    EXPECT_EQ(frames(), wanted);
    EXPECT_EQ(found_.frames, static_cast<long>(wanted.size()));
    EXPECT_EQ(found_.hash, hash_of(frames()));
    EXPECT_EQ(found_.stack.end, end);
    EXPECT_EQ(found_.stack.guessed, guessed);
  }
  void expect_callers(std::uint64_t ip, Addresses callers, stack_end end, int guessed = 0) {
    walk(ip);
    callers.insert(callers.begin(), ip);
    expect(callers, end, guessed);
  }

  std::uint64_t a = 0, last = 0;  ///< functions: one whose caller is 8 further, one without
  std::unique_ptr<MadeTables> tables_;
  std::vector<__u32> rows_;
  given_task& task_ = data.given;
  const found_walk& found_ = data.found;
  char* memory_ = nullptr;
};

// The rules of compilers' frames are tested in own_stack_test.cpp.

// A return address may be after the end of its function; the current address may not.
TEST_F(Walk, ReturnAddressesBelongToTheCodeBeforeThem) {
  auto before = function(rule(UNWIND_SP, 8)), b = function(rule(UNWIND_SP, 24)), next = outermost();
  EXPECT_EQ(before + 256, b);
  put(0, b);          // the end of the first
  put(8, next);       // the end of b: by the first's rule
  put(24, next + 4);  // the result of b's rule
  put(16, b + 1);     // again by the first's rule
  walk(b - 1);
  ASSERT_GE(found_.stack.depth, 3);
  EXPECT_EQ(found_.stack.ip[1], b);
  EXPECT_EQ(found_.stack.ip[2], next);
  walk(b);
  ASSERT_GE(found_.stack.depth, 2);
  EXPECT_EQ(found_.stack.ip[1], b + 1) << "b's own rule, at its first byte";
  EXPECT_EQ(found_.reads, 1u) << "it all is in one block";
}

TEST_F(Walk, ByWhatLiesOnTheStack) {
  auto by_sp = function(rule(UNWIND_SP_DEREF, 16, 24));
  put({{16, base() + 800}, {816, last + 9}});
  expect_callers(by_sp, {last + 9}, STACK_END_WHOLE);
  regs().sp = end() - 16;  // not mapped
  expect_callers(by_sp, {}, STACK_END_OTHER_RULE);
}

TEST_F(Walk, ByBx) {
  auto same = function(rule(UNWIND_SP, 16));
  auto saving = function({.cfa = UNWIND_SP, .bx_slot = -3, .offset = 32});
  auto losing = function({.cfa = UNWIND_SP, .bx_slot = UNWIND_BX_LOST, .offset = 16});
  auto by_bx = function(rule(UNWIND_BX, 24));
  // The same value throughout.
  regs().bx = base() + 640;
  put({{8, by_bx + 1}, {656, last + 1}});
  expect_callers(same, {by_bx + 1, last + 1}, STACK_END_WHOLE);
  // Saved by the first function, kept by the second.
  put({{24, same + 1}, {8, base() + 1280}, {40, by_bx + 2}, {1296, last + 2}});
  expect_callers(saving, {same + 1, by_bx + 2, last + 2}, STACK_END_WHOLE);
  // Its location is unknown.
  put(8, by_bx + 3);
  expect_callers(losing, {by_bx + 3}, STACK_END_OTHER_RULE);
  // Saved again after it was lost.
  put({{8, saving + 1}, {24, base() + 1280}, {40, by_bx + 4}});
  expect_callers(losing, {saving + 1, by_bx + 4, last + 2}, STACK_END_WHOLE);
}

// Rules that only the first frame's registers satisfy.
TEST_F(Walk, ByRegistersOfTheFirstFrameAlone) {
  auto by_r10 = function(rule(UNWIND_R10, 0)), vfork = function(rule(UNWIND_VFORK, 8));
  auto b = function(rule(UNWIND_SP, 16));
  regs().r10 = base() + 512;
  regs().di = b + 5;
  put({{16, last + 1}, {504, last + 2}});
  expect_callers(by_r10, {last + 2}, STACK_END_WHOLE);
  expect_callers(vfork, {b + 5, last + 1}, STACK_END_WHOLE);
  for (auto caller : {by_r10 + 1, vfork + 1}) {
    put(0, caller);
    expect_callers(a, {caller}, STACK_END_OTHER_RULE);
  }
}

TEST_F(Walk, OtherRulesAndZeroForAReturnAddress) {
  auto other = function(rule(UNWIND_OTHER));
  expect_callers(a, {}, STACK_END_WHOLE);
  put(0, other + 1);
  expect_callers(a, {other + 1}, STACK_END_OTHER_RULE);
}

TEST_F(Walk, SignalFrames) {
  auto back = function(rule(UNWIND_SIGNAL));
  function(rule(UNWIND_SP, 16));  // before the next one
  auto at = function(rule(UNWIND_BP, 16)), by_bx = function(rule(UNWIND_BX, 8));
  put(0, back + 1);
  const auto context = 8;
  put(context + 120, base() + 2048);  // rbp
  put(context + 128, base() + 3000);  // rbx
  put(context + 160, base() + 1);     // rsp, which may be lower than the handler's
  put(context + 168, at);             // rip: at the very first byte
  put({{2048 + 8, by_bx + 1}, {3000, last + 1}});
  regs().bx = 1;
  expect_callers(a, {back + 1, at | STACK_EXACT, by_bx + 1, last + 1}, STACK_END_WHOLE);
  // Registers saved in the handler are not those of the interrupted code.
  auto saver = function({.cfa = UNWIND_SP, .bx_slot = -1, .offset = 8});
  tables_->mappings.clear();
  expect_callers(saver, {back + 1, at | STACK_EXACT, by_bx + 1, last + 1}, STACK_END_WHOLE);
  put(context + 168, 0);
  expect_callers(a, {back + 1}, STACK_END_WHOLE);
}

TEST_F(Walk, SignalFrameBeyondTheStack) {
  auto back = function(rule(UNWIND_SIGNAL));
  for (int above : {128, 136, 168, 160, 8, 0}) {
    regs().sp = end() - above;
    expect_callers(back, {}, STACK_END_UNREADABLE);
  }
}

// A signal's frame may lead to itself: only the depth limit ends that.
TEST_F(Walk, SignalFramesInACircle) {
  auto back = function(rule(UNWIND_SIGNAL));
  put({{160, base()}, {168, back}});
  walk(back);
  EXPECT_EQ(found_.stack.end, STACK_END_DEPTH);
  EXPECT_EQ(found_.stack.depth, STACK_DEPTH);
}

TEST_F(Walk, NoOtherRuleHoldsBehindItsEnd) {
  rows_ = {rows_[1] & 0xffff, 0x8000u << 16 | rows_[0], 0x9000u << 16};
  put({{0, kCode}, {808, kCode + 5}});
  regs().bp = base() + 800;
  expect_callers(kCode + 0x9000, {kCode + 5}, STACK_END_WHOLE, 1);
}

TEST_F(Walk, WhatCanBeNoFramePointer) {
  auto unknown = function(rule(UNWIND_NONE));
  regs().sp = base() + 256;
  const auto ends = [&](std::uint64_t bp) {
    regs().bp = bp;
    expect_callers(unknown + 1, {}, STACK_END_NO_CFI);
  };
  put({{248, last + 1}, {264, last + 1}});
  ends(0);
  ends(base() + 240);  // below the stack pointer
  put(264 + (1 << 20), last + 1);
  ends(base() + 256 + (1 << 20));  // too far
  ends(end());                     // not mapped
  ends(end() - 8);                 // half of it
  ends(UINT64_MAX);
  ends(base() + 512);  // leads to 0
  put(520, 0x12345);
  ends(base() + 512);  // leads to unmapped memory
  EXPECT_FALSE(found_.unknown_map) << "a guess is no reason to ask the loader";
  put(248 + (1 << 20), last + 1);
  for (std::uint64_t above : {0, (1 << 20) - 16}) {
    regs().bp = base() + 256 + above;
    expect_callers(unknown + 1, {last + 1}, STACK_END_WHOLE, 1);
  }
}

TEST_F(Walk, AddressesOutsideAllCode) {
  put(0, 0x1234);
  expect_callers(a, {0x1234}, STACK_END_NO_MAPPING);
  EXPECT_TRUE(found_.unknown_map);
  EXPECT_FALSE(asks()) << "it has looked";
  tables_->process.looked = 0;
  expect_callers(a, {0x1234}, STACK_END_NOT_READY);
  EXPECT_TRUE(found_.unknown_map);
  EXPECT_TRUE(asks());
  EXPECT_FALSE(asks()) << "once is enough";
  tables_->process.asked = 0;
  walk(a);
  EXPECT_TRUE(asks());
  walk(0);
  EXPECT_EQ(found_.frames, 0) << "no registers: it never was in user mode";
  // No program has these addresses: frames with them could be mistaken for others.
  for (unsigned long long high : {1ull << 56, STACK_EXACT, STACK_EXACT | a, ~0ull}) {
    put(0, high);
    expect_callers(a, {}, STACK_END_NOT_READY);
  }
}

TEST_F(Walk, Backwards) {
  for (int offset : {0, -8, -4096, INT32_MIN}) {
    tables_->mappings.clear();
    expect_callers(function(rule(UNWIND_SP, offset)), {}, STACK_END_BACKWARDS);
  }
  tables_->mappings.clear();
  auto by_bp = function(rule(UNWIND_BP, 16));
  for (std::uint64_t bp : {base() - 16, base() - 4096, std::uint64_t{0}}) {
    regs().bp = bp;
    expect_callers(by_bp, {}, STACK_END_BACKWARDS);
  }
  regs().bp = 0ull - 16;  // a CFA of 0 is invalid
  expect_callers(by_bp, {}, STACK_END_OTHER_RULE);
}

// The stack's last words are mapped, but not a whole block.
TEST_F(Walk, ToTheVeryEndOfTheStack) {
  for (std::uint64_t words = 1; words < 200; words++) {
    regs().sp = end() - words * 8;
    for (std::uint64_t i = 0; i < words; i++) put(kStackBytes - (i + 1) * 8, a + 1);
    walk(a);
    auto depth = std::min<std::uint64_t>(words + 1, STACK_DEPTH);
    ASSERT_EQ(found_.stack.depth, depth) << words;
    ASSERT_EQ(found_.stack.end, words < STACK_DEPTH ? STACK_END_UNREADABLE : STACK_END_DEPTH)
        << words;
    if (words < 60) {
      ASSERT_LE(found_.reads, 3u) << "of the last block it is one";
    }
  }
  put(kStackBytes - 8, last + 1);
  regs().sp = end() - 8;
  expect_callers(a, {last + 1}, STACK_END_WHOLE);
  // The saved register is not mapped, and no caller needs it.
  tables_->mappings.clear();
  auto b = function({.cfa = UNWIND_SP, .bp = UNWIND_BP_AT_CFA, .bp_slot = 1, .offset = 8});
  expect_callers(b, {last + 1}, STACK_END_WHOLE);
}

TEST_F(Walk, UnalignedStackPointer) {
  put({{0, last + 1}, {8, last + 1}});
  for (int by = 1; by < 8; by++) {
    regs().sp = base() + static_cast<unsigned>(by);
    expect_callers(a, {}, STACK_END_UNREADABLE);
  }
}

// The cached block has the words around it, not the word it points to.
TEST_F(Walk, UnalignedFramePointer) {
  auto unknown = function(rule(UNWIND_NONE));
  put({{0, unknown + 1}, {64, 0}, {72, last + 1}});
  regs().bp = base() + 64 + 3;
  walk(a);  // reads the block
  expect({a, unknown + 1}, STACK_END_NO_CFI);
}

// The check for a signal's return, if frames are guessed, does not count as a frame.
TEST_F(Walk, DepthLimits) {
  auto unknown = function(rule(UNWIND_NONE));
  for (unsigned limit : {127u, 126u, 3u, 2u, 1u}) {
    SCOPED_TRACE(limit);
    data.depth_limit = limit;
    for (std::uint64_t i = 0; i < 300; i++)
      put({{i * 16, base() + (i + 1) * 16}, {i * 16 + 8, unknown + 1}});
    regs().bp = base();
    walk(unknown + 1);
    expect(Addresses(limit, unknown + 1), STACK_END_DEPTH, static_cast<int>(limit) - 1);
    for (std::uint64_t i = 0; i < 400; i++) put(i * 8, a + 1);
    walk(a + 1);
    expect(Addresses(limit, a + 1), STACK_END_DEPTH);
    // Complete, as its last frame is the last one that is kept.
    if (limit > 1) put((limit - 2) * 8, last + 1);
    walk(limit > 1 ? a + 1 : last);
    EXPECT_EQ(found_.stack.end, STACK_END_WHOLE);
    EXPECT_EQ(found_.stack.depth, limit);
  }
}

TEST_F(Walk, WhoHasNoStackToBeWalked) {
  put(0, a + 1);
  for (bool old : {false, true}) {
    task_.old_kernel = old;
    task_.is_kernel_thread = true;
    EXPECT_EQ(walk(a).frames, 0);
    task_.is_kernel_thread = false;
    task_.cs = 0x23;
    EXPECT_EQ(walk(a).frames, -1) << "32-bit: the kernel's own walker can";
    task_.cs = GIVEN_CS;
    task_.has_mm = false;
    expect_callers(a, {}, STACK_END_EXITING);
    task_.has_mm = true;
  }
}

/// Mappings that are not listed are found in the kernel's tree, by file.
class InTree : public Walk {
 protected:
  static constexpr std::uint64_t kStart = kCode + 0x1000000;

  /// Maps the code again, in a file with this segment.
  void map_file(std::uint64_t inode) {
    map_code();
    key_.inode = inode;
    file_.page = tables_->mappings[0].page;
    file_.pages = 1;
    file_.extents[1] = {3, 16, 0};
    tree_ = {kStart, kStart + 16 * kPage, 3, inode};
  }
  void walk_tree(std::uint64_t ip, bool listed = false) {
    tables_->listed = listed;
    clear(library->maps.unwind_files);
    ASSERT_EQ(bpf_map_update_elem(bpf_map__fd(library->maps.unwind_files), &key_, &file_, BPF_ANY),
              0);
    walk(ip);
  }
  /// For a function at the start of the file's code.
  void expect_in_tree(bool listed, const Addresses& wanted, stack_end end, int guessed = 0) {
    walk_tree(wanted.at(0), listed);
    expect(wanted, end, guessed);
  }
  /// Returns the functions in the file, not those in the list.
  void place() {
    for (auto* at : {&a, &last}) *at += kStart - kCode;
  }

  given_mapping& tree_ = task_.mapping;
  unwind_file_key key_{};
  unwind_file file_{};
};

/// A frame at an offset in a file with this number.
std::uint64_t in_file(std::uint64_t number, std::uint64_t place) {
  return STACK_IN_FILE | number << STACK_PLACE_BITS | place;
}

// Identical for all processes: without addresses or image.
TEST_F(InTree, FramesOfNumberedFiles) {
  file_.file = 0xffff;
  map_file(77);
  put(0, last - kCode + kStart + 4);
  walk_tree(a - kCode + kStart);
  expect({in_file(0xffff, 0), in_file(0xffff, last - kCode + 4)}, STACK_END_WHOLE);
  EXPECT_EQ(found_.stack.image, 0u);
  EXPECT_FALSE(asks()) << "nobody to be asked about";
  tree_.inode = 78;
  walk_tree(a - kCode + kStart);
  EXPECT_EQ(frames(), Addresses{a - kCode + kStart}) << "a file that is not known has no number";
  EXPECT_NE(found_.stack.image, 0u);
}

TEST_F(Walk, FramesOfListedFilesWithNumbers) {
  auto handler = function(rule(UNWIND_SIGNAL));
  map_code();
  tables_->mappings[0].file = 9;
  put({{160, base() + 512}, {168, last}});
  walk(handler);
  EXPECT_EQ(frames(),
            (Addresses{in_file(9, handler - kCode), in_file(9, last - kCode) | STACK_EXACT}));
  put(0, last + 4);
  walk(a);
  expect({in_file(9, 0), in_file(9, last - kCode + 4)}, STACK_END_WHOLE);
  EXPECT_EQ(found_.stack.image, 0u);
  tables_->mappings[0].pages = 0;
  tables_->mappings[0].page = UNWIND_LACK_CFI;
  walk(a);
  EXPECT_EQ(frames(), Addresses{in_file(9, 0)}) << "without unwind information, too";
  // Before the first page with a rule, and where the offset is out of range.
  for (std::uint64_t bias : {kCode + 1, kCode - (std::uint64_t{1} << STACK_PLACE_BITS)}) {
    tables_->mappings[0].bias = bias;
    walk(a);
    EXPECT_EQ(frames(), Addresses{a}) << bias;
    EXPECT_NE(found_.stack.image, 0u);
  }
}

TEST_F(InTree, WhatTheListLacks) {
  map_file(77);
  put(0, last - kCode + kStart + 4);
  tables_->process.looked = 0;
  expect_in_tree(true, {a, last - kCode + kStart + 4}, STACK_END_WHOLE);
  EXPECT_TRUE(found_.unknown_map);
  EXPECT_TRUE(asks()) << "lists are cheaper";
  tables_->process.looked = 1;
  walk_tree(a, true);
  EXPECT_EQ(found_.stack.end, STACK_END_NO_MAPPING);
}

TEST_F(InTree, FilesThatAreNotRead) {
  place();
  map_file(77);
  regs().bp = base() + 32;
  put({{32, 0}, {40, last + 4}});
  key_.inode = 78;
  expect_in_tree(false, {a, last + 4}, STACK_END_NOT_READY, 1);
  key_.inode = 77;
  key_.generation = 1;
  walk_tree(a);
  EXPECT_EQ(found_.stack.end, STACK_END_NOT_READY) << "another file with this inode's number";
}

TEST_F(InTree, OnlyWholeSegments) {
  place();
  map_file(77);
  walk_tree(last);
  EXPECT_EQ(found_.stack.end, STACK_END_WHOLE);
  const auto start = tree_.start, end = tree_.end;
  for (auto& other : {given_mapping{start, end, 2, 77},
                      {start, end - kPage, 3, 77},
                      {start - kPage, end, 3, 77},
                      {start, end + kPage, 3, 77}}) {
    tree_ = other;
    walk_tree(last);
    EXPECT_EQ(found_.stack.end, STACK_END_NOT_READY) << other.page << " " << other.end;
  }
}

TEST_F(InTree, TheVdsoAndOtherMemoryWithoutAFile) {
  place();
  map_file(0);
  task_.vdso = kStart;
  expect_in_tree(false, {last}, STACK_END_WHOLE);
  tree_.end += kPage;
  expect_in_tree(false, {last}, STACK_END_WHOLE);
  task_.vdso = kStart + kPage;
  expect_in_tree(false, {last}, STACK_END_NO_CFI);
}

TEST_F(InTree, AWrongGuessIsNotLookedFor) {
  auto unknown = function(rule(UNWIND_NONE));
  map_file(77);
  regs().bp = base() + 32;
  put({{32, 0}, {40, kStart + 4}});
  tables_->process.looked = 0;
  expect_in_tree(true, {unknown}, STACK_END_NO_CFI);
  EXPECT_FALSE(found_.unknown_map);
}

// The registers are the caller's until exec ends; so is the memory, as long as it is the known one.
TEST_F(Walk, WhileAnotherProgramIsExecuted) {
  task_.executes = true;
  EXPECT_EQ(walk(last).frames, 0);
  task_.executes = false;
  walk(last);
  library.run(library->progs.run_meet);
  task_.executes = true;
  expect_callers(last, {}, STACK_END_WHOLE);
}

TEST_F(Walk, ImageIsOfTheProcessGeneration) {
  for (unsigned generation : {1u, 2u, 65535u}) {
    tables_->process.generation = static_cast<__u16>(generation);
    walk(a);
    EXPECT_EQ(found_.stack.image, stack_image(GIVEN_PROGRAM, generation));
  }
}

bool holds(const unwind_mapping& m, std::uint64_t pc) {
  return pc >= m.start && pc < m.start + m.length * kPage;
}

TEST_F(Walk, FindsTheMappingAmongMany) {
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (unsigned count : {1u, 2u, 3u, 5u, 16u, 100u, 1000u}) {
    tables_->mappings.clear();
    tables_->process.first = 7;
    tables_->process.count = count;
    // Other mappings on both sides.
    std::uint64_t at = 0x10000;
    for (unsigned i = 0; i < count + 14; i++) {
      at += random() % 3 * kPage;
      map_lacking(at, UNWIND_LACK_MEMORY, 1 + random() % 4);
      at += std::uint64_t{tables_->mappings.back().length} * kPage;
    }
    for (int i = 0; i < 500; i++) {
      for (auto& m : tables_->mappings) m.used = 0;
      auto& near = tables_->mappings[random() % tables_->mappings.size()];
      auto pc = near.start + random() % (6 * kPage) - kPage;
      unsigned wanted = 7;
      while (wanted < 7 + count && !holds(tables_->mappings[wanted], pc)) wanted++;
      bool known = wanted < 7 + count;
      walk(pc);
      ASSERT_EQ(found_.stack.end, known ? STACK_END_NO_MEMORY : STACK_END_NO_MAPPING);
      tables_->read();
      for (unsigned m = 0; m < tables_->mappings.size(); m++)
        ASSERT_EQ(tables_->mappings[m].used, known && m == wanted ? 1u : 0u);
    }
  }
}

// Rule n leads to the n-th word of the stack.
TEST_F(Walk, FindsTheRuleAmongManyRows) {
  std::mt19937 random(2);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  constexpr unsigned kRules = 1000;
  tables_->rules.resize(1);
  for (unsigned i = 1; i < kRules; i++)
    tables_->rules.push_back(rule(UNWIND_SP, static_cast<int>(i * 8 + 8)));
  for (unsigned i = 0; i < kRules; i++) put(i * 8, 0x100 + i);
  for (unsigned count : {1u, 2u, 3u, 100u, 4096u, 65535u, 65536u}) {
    std::vector<__u32> lows;
    for (__u32 i = 1; i < 65536; i++) lows.push_back(i);
    std::shuffle(lows.begin(), lows.end(), random);
    lows.resize(count - 1);
    lows.push_back(0);
    std::sort(lows.begin(), lows.end());
    Table table;
    for (auto low : lows) table.rows.push_back(low << 16 | (1 + random() % (kRules - 1)));
    table.pages = {{0, count}};
    tables_->forget();
    map_table(table, kCode, kCode, 16);
    data.depth_limit = 2;
    for (int i = 0; i < 2000; i++) {
      auto low = i < 2 ? static_cast<__u32>(i) * 65535 : static_cast<__u32>(random() % 65536);
      walk(kCode + low);
      ASSERT_EQ(found_.stack.ip[1], 0x100u + table.find(low)) << count << " " << low;
    }
    // Beyond the last page, and before the first one.
    for (std::uint64_t bias : {kCode - 0x10000, kCode + 0x1000}) {
      tables_->mappings[0].bias = bias;
      walk(kCode);
      ASSERT_EQ(found_.stack.end, STACK_END_NO_CFI);
    }
  }
}

// Before it there is no signal's return, and no reason to notify the loader.
TEST_F(Walk, FirstByteOfAMappingWithoutARule) {
  rows_.clear();
  expect_callers(kCode, {}, STACK_END_NO_CFI);
  EXPECT_FALSE(found_.unknown_map);
}

class Followed : public Walk {
 protected:
  void SetUp() override {
    Walk::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    put(0, 0x1234);
    walk(a);
  }
  static __u64 child(__u32 tgid) { return __u64{tgid} << 32 | static_cast<__u32>(GIVEN_PROGRAM); }
  std::optional<unwind_process> process(__u64 program = GIVEN_PROGRAM) const {
    unwind_process found{};
    if (bpf_map_lookup_elem(bpf_map__fd(library->maps.unwind_processes), &program, &found))
      return {};
    return found;
  }
  void fork(__u32 tgid) { library.run(library->progs.run_fork, tgid); }
  void meet() { library.run(library->progs.run_meet); }
  /// The last message to the loader, and the number of messages.
  void expect_news(const stack_process& wanted, __u32 count) {
    EXPECT_EQ(data.news_count, count);
    auto& n = data.last_news;
    EXPECT_EQ(memcmp(&n, &wanted, sizeof wanted), 0)
        << n.tgid << " " << n.forked_from << " " << n.program << " " << n.news << " " << n.pad;
    memset(&data.last_news, 0xa5, sizeof data.last_news);  // earlier content makes no difference
  }
};

TEST_F(Followed, ForksHaveAllOfTheirParents) {
  tables_->process = {
      .first = 7, .count = 9, .generation = 3, .asked = 1, .looked = 1, .hotspot = 0};
  tables_->install();
  fork(70);
  auto p = process(child(70));
  ASSERT_TRUE(p);
  // Its addresses mean the same, and it asks separately.
  EXPECT_TRUE(p->first == 7 && p->count == 9 && p->generation == 3 && !p->asked);
  expect_news(
      {STACK_PROCESS, 70, GIVEN_TGID, child(70), GIVEN_STACK_BEGIN, STACK_PROCESS_FORKED, 0}, 1);
}

TEST_F(Followed, ForksThatTheLoaderIsNotToldOf) {
  fork(GIVEN_TGID);  // a thread
  EXPECT_EQ(data.news_count, 0u);
  data.news_full = true;
  fork(70);
  EXPECT_TRUE(process(child(70))) << "its stacks are walked";
  tables_->listed = data.news_full = false;
  tables_->install();
  fork(71);
  EXPECT_FALSE(process(child(71)));
  EXPECT_EQ(data.news_count, 0u);
}

TEST_F(Followed, ExecAndExitEndIt) {
  library.run(library->progs.run_exit);
  EXPECT_TRUE(process()) << "other threads go on";
  task_.last_thread = true;
  library.run(library->progs.run_exit);
  EXPECT_FALSE(process());
  tables_->install();
  ASSERT_TRUE(process());
  library.run(library->progs.run_exec);
  EXPECT_FALSE(process());
}

TEST_F(Followed, MetOnceAndAskedOnce) {
  stack_process wanted{STACK_PROCESS,     GIVEN_TGID,        0, GIVEN_PROGRAM,
                       GIVEN_STACK_BEGIN, STACK_PROCESS_MET, 0};
  task_.executed_before = true;
  tables_->process.looked = 0;
  tables_->install();
  data.news_full = true;
  meet();
  EXPECT_EQ(data.news_count, 0u);
  data.news_full = false;
  meet();
  expect_news(wanted, 1);  // at the next event
  meet();
  wanted.news = STACK_PROCESS_CHANGED;  // there is unknown code
  expect_news(wanted, 2);
  meet();
  EXPECT_EQ(data.news_count, 2u);
  tables_->process = {
      .first = 0, .count = 1, .generation = 1, .asked = 0, .looked = 1, .hotspot = 0};
  tables_->install();
  meet();
  EXPECT_EQ(data.news_count, 2u) << "it has looked";
  clear(library->maps.stack_known_mms);
  task_.executed_before = false;
  meet();
  EXPECT_EQ(data.last_news.forked_from, unsigned{GIVEN_PARENT});
}

// The loader writes tables while they are read, and files are untrusted: the walk ends with any
// contents. The verifier proves that it reads nothing outside of them.
TEST_F(Walk, TablesThatAreWrong) {
  std::mt19937_64 random(3);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  auto some = [&](std::uint64_t limit) -> std::uint64_t {
    const auto kind = random() % 6;
    if (kind == 0) return random();
    if (kind == 1) return UINT64_MAX - random() % 3;
    return kind == 2 ? limit + random() % 3 : random() % (limit + 1);
  };
  auto address = [&]() -> std::uint64_t {
    return random() % 4 ? kCode + random() % 0x40000 : some(kCode);
  };
  for (std::size_t i = 0; i < kStackBytes; i += 8)
    put(i, random() % 2 ? base() + some(kStackBytes) : address());
  for (int round = 0; round < 300; round++) {
    tables_->rules.clear();
    for (int i = 0; i < 50; i++) {
      auto cfa = random() % 20 ? random() % (UNWIND_OTHER + 1) : random();
      auto bp = random() % 20 ? random() % 3 : random();
      tables_->rules.push_back({.cfa = static_cast<__u8>(cfa),
                                .bp = static_cast<__u8>(bp),
                                .bp_slot = static_cast<__s16>(some(16)),
                                .bx_slot = static_cast<__s16>(random() % 3 ? 0 : some(16)),
                                .offset = static_cast<__s32>(some(8) * 8),
                                .more = static_cast<__s32>(some(16))});
    }
    std::vector<__u32> rows(UNWIND_CHUNK_ROWS);
    for (__u32 chunk : {0, 2}) {  // there is no chunk between them
      for (auto& row : rows)
        row = static_cast<__u32>(random()) << 16 | static_cast<__u32>(random() % 52);
      tables_->write_rows(chunk, 0, rows.data(), rows.size());
    }
    tables_->drop_chunk(1);
    tables_->pages.clear();
    for (int i = 0; i < 8; i++)
      tables_->pages.push_back({static_cast<__u16>(some(3)), static_cast<__u16>(some(65535)),
                                static_cast<__u32>(some(65536))});
    tables_->mappings.clear();
    for (int i = 0; i < 20; i++) {
      auto start = address();
      tables_->mappings.push_back({.start = start,
                                   .bias = random() % 2 ? start : address(),
                                   .page = static_cast<__u32>(some(8)),
                                   .pages = static_cast<__u32>(some(8)),
                                   .length = static_cast<__u32>(some(0x40))});
    }
    tables_->process.first = static_cast<__u32>(some(20));
    tables_->process.count = static_cast<__u32>(some(20));
    if (!tables_->process.count) tables_->process.count = 1;
    for (int i = 0; i < 50; i++) {
      data.depth_limit = 1 + static_cast<__u32>(random() % STACK_DEPTH);
      regs() = {.sp = base() + some(kStackBytes),
                .bp = base() + some(kStackBytes),
                .bx = base() + some(kStackBytes),
                .di = address(),
                .r10 = base() + some(kStackBytes)};
      if (random() % 4) regs().sp &= ~7ull;
      walk(address() | 1);
      ASSERT_LE(found_.stack.depth, data.depth_limit);
      ASSERT_EQ(found_.frames, found_.stack.depth);
      ASSERT_LT(found_.stack.end, STACK_ENDS);
      ASSERT_LE(found_.stack.guessed, found_.stack.depth);
      ASSERT_LE(found_.reads, 10 * data.depth_limit);
    }
  }
}

}  // namespace
}  // namespace coretap::unwind::test
#endif
