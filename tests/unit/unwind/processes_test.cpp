#include "unwind/processes.hpp"

#include <sys/socket.h>

#include "expect.hpp"
#include "symbols/test_files.hpp"
#include "unwind/kernel_tables.hpp"
#include "unwind/made_elf.hpp"

namespace coretap::unwind {
namespace {

using namespace test;
using Clock = Processes::Clock;

constexpr std::uint64_t kProgram = 0x700000003;
constexpr std::size_t kBytes = 4096;          // of each mapping
constexpr std::uint64_t kPlace = 0x10000000;  // low, where nothing else is mapped

/// A process that maps files on request.
class Mapper {
 public:
  Mapper() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return;
    pid_ = ::fork();
    if (pid_ == 0) serve(ends[0]);
    ::close(ends[0]);
    orders_.reset(ends[1]);
  }
  Mapper(const Mapper&) = delete;
  Mapper& operator=(const Mapper&) = delete;
  ~Mapper() { end(); }

  pid_t pid() const { return pid_; }
  bool map(const std::string& path, std::uint64_t at, std::uint64_t pages = 1) const {
    return tell({at, pages, false}, path);
  }
  bool unmap(std::uint64_t at, std::uint64_t pages = 1) const { return tell({at, pages, true}); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  struct Order {
    std::uint64_t at, pages;
    bool unmap;
    char path[256] = {};  // empty: anonymous memory
  };
  bool tell(Order order, const std::string& path = {}) const {
    bool done = false;
    path.copy(order.path, sizeof order.path - 1);
    return ::write(orders_.get(), &order, sizeof order) == sizeof order &&
           ::read(orders_.get(), &done, 1) == 1 && done;
  }
  [[noreturn]] static void serve(int orders) {
    for (Order order{}; ::read(orders, &order, sizeof order) == sizeof order;) {
      auto* at = reinterpret_cast<void*>(order.at);
      // From its first page of code on, up to the end of the file.
      int fd = order.path[0] ? ::open(order.path, O_RDONLY | O_CLOEXEC) : -1;
      int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
      bool done = order.unmap ? ::munmap(at, order.pages * kBytes) == 0
                              : ::mmap(at, order.pages * kBytes, PROT_READ | PROT_EXEC, flags, fd,
                                       fd < 0 ? 0 : kBytes) == at;
      if (fd >= 0) ::close(fd);
      if (::write(orders, &done, 1) != 1) break;
    }
    ::_exit(0);
  }
  pid_t pid_ = -1;
  Fd orders_;
};

class ProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override { open(32 << 20); }
  void open(std::size_t budget) {
    if (auto why = kernel_.open(Tables::chunks_for(budget)); !why.empty()) GTEST_SKIP() << why;
    tables_ = std::make_unique<Tables>(kernel_.maps(), budget);
    ASSERT_TRUE(tables_->ready());
    processes_ = std::make_unique<Processes>(
        Processes::Maps{kernel_.fd("unwind_mappings"), kernel_.processes()}, *tables_);
    now_ = Clock::now();
  }
  std::string file(const std::string& name, std::uint32_t rows = 100) {
    return scratch_.write(name, file_of(rows, name, 8 + name[0] % 8 * 8));
  }
  /// The mappings that the kernel program finds for a process; empty: none.
  std::vector<unwind_mapping> run(std::uint64_t program = kProgram) const {
    auto entry = kernel_.process(program);
    if (!entry) return {};
    return kernel_.mappings(entry->first, entry->count);
  }
  std::optional<unwind_mapping> mapping(std::uint64_t at, std::uint64_t program = kProgram) const {
    for (auto& m : run(program))
      if (at - m.start < std::uint64_t{m.length} << 12) return m;
    return {};
  }
  unsigned generation(std::uint64_t program = kProgram) const {
    auto entry = kernel_.process(program);
    return entry ? entry->generation : 0;
  }
  void tend(std::chrono::seconds by = std::chrono::seconds(6)) {
    processes_->tend(now_ += by);
    processes_->look_at_changed(later());
  }
  /// A time when each process may be read again.
  static Clock::time_point later() { return Clock::now() + std::chrono::hours(1); }
  bool changed(const Mapper& child, bool asked = false) {
    processes_->changed(child.pid(), asked);
    auto is_new = processes_->look_at_changed(later());
    EXPECT_LE(is_new.size(), 1u);
    return is_new == std::vector<pid_t>{child.pid()};
  }
  std::shared_ptr<File> known(const std::string& path) {
    auto id = symbols::identity_of(symbols::test::open_file(path).get());
    return id ? tables_->known(*id) : nullptr;
  }

  Mapper child;
  test::KernelTables kernel_;
  std::unique_ptr<Tables> tables_;
  std::unique_ptr<Processes> processes_;
  ScratchDirectory scratch_;
  Clock::time_point now_;
};

TEST_F(ProcessesTest, WhatIsMappedLaterIsSeenWhenItIsLookedAtAgain) {
  EXPECT_FALSE(changed(child)) << "not known yet";
  ASSERT_TRUE(processes_->look(child.pid(), kProgram, false));
  EXPECT_FALSE(processes_->look(child.pid(), kProgram, false)) << "nothing is new";
  EXPECT_FALSE(changed(child));
  EXPECT_FALSE(mapping(kPlace));
  ASSERT_TRUE(child.map(file("a"), kPlace));
  EXPECT_TRUE(changed(child));
  ASSERT_TRUE(mapping(kPlace));
  EXPECT_EQ(mapping(kPlace)->page, known(scratch_.path() + "/a")->page);
  EXPECT_EQ(generation(), 1u) << "nothing else has been there";
  // Asked again without a change: the kernel program then stops asking.
  EXPECT_FALSE(changed(child, true));
  EXPECT_EQ(kernel_.process(kProgram)->looked, 1u);
  EXPECT_FALSE(changed(child));
  EXPECT_EQ(kernel_.process(kProgram)->looked, 0u) << "it has mapped something since";
}

// Processes that map code all the time are read only at intervals.
TEST_F(ProcessesTest, ChangesWaitUntilItIsTime) {
  Mapper other;
  auto before = Clock::now();
  processes_->look(child.pid(), kProgram, false);
  ASSERT_TRUE(child.map(file("a"), kPlace));
  processes_->changed(child.pid(), true);
  processes_->changed(child.pid(), false);
  processes_->changed(other.pid(), false);  // not known
  EXPECT_TRUE(processes_->look_at_changed(before).empty());
  EXPECT_FALSE(mapping(kPlace));
  EXPECT_EQ(processes_->look_at_changed(later()), std::vector<pid_t>{child.pid()});
  EXPECT_TRUE(mapping(kPlace));
  EXPECT_EQ(kernel_.process(kProgram)->looked, 1u) << "it had been asked for";
  EXPECT_TRUE(processes_->look_at_changed(later()).empty()) << "done";
  EXPECT_FALSE(processes_->image(other.pid()));
}

TEST_F(ProcessesTest, GenerationsOfOtherCodeAtTheSameAddress) {
  auto a = file("a"), b = file("b"), c = file("c");
  auto expect = [&](unsigned wanted, bool mapped) {
    EXPECT_TRUE(mapped);
    changed(child);
    EXPECT_EQ(generation(), wanted);
    EXPECT_EQ(processes_->image(child.pid()), stack_image(kProgram, wanted));
  };
  ASSERT_TRUE(child.map(a, kPlace));
  processes_->look(child.pid(), kProgram, false);
  expect(1, true);
  expect(2, child.map(b, kPlace));
  expect(1, child.map(a, kPlace));
  expect(1, child.unmap(kPlace));
  expect(3, child.map(c, kPlace));
  expect(2, child.map(b, kPlace));
  expect(4, child.map("", kPlace));
  // A further one elsewhere conflicts with no generation.
  expect(4, child.map(a, kPlace + 16 * kBytes));
  expect(1, child.map(a, kPlace));
  expect(1, child.unmap(kPlace + 16 * kBytes));
  expect(1, child.map(a, kPlace, 4));  // it has grown; the next one conflicts with all
  expect(5, child.map(b, kPlace + 3 * kBytes));
  // The same file, with another offset at this page.
  expect(6, child.map(a, kPlace + kBytes));
}

TEST_F(ProcessesTest, WhoIsGoneOrAKernelThread) {
  EXPECT_FALSE(processes_->look(2, kProgram, false));
  EXPECT_FALSE(kernel_.process(kProgram));
  auto pid = child.pid();
  ASSERT_TRUE(processes_->look(pid, kProgram, false));
  child.end();
  EXPECT_FALSE(processes_->look(pid, kProgram, false));
  EXPECT_FALSE(processes_->look(pid, kProgram + 5, true));
  EXPECT_FALSE(kernel_.process(kProgram + 5));
  processes_->changed(pid, false);
  EXPECT_TRUE(processes_->look_at_changed(later()).empty());
  EXPECT_FALSE(processes_->look(INT32_MAX, kProgram, false));
  EXPECT_FALSE(processes_->image(INT32_MAX));
  EXPECT_EQ(processes_->known(), std::vector<pid_t>{pid}) << "its stacks may still come";
  tend();
  EXPECT_TRUE(processes_->known().empty());
  EXPECT_FALSE(kernel_.process(kProgram));
  EXPECT_FALSE(processes_->image(pid));
}

TEST_F(ProcessesTest, ChildrenHaveTheirParentsRun) {
  // The children of one process, which have all its mappings.
  Mapper parent, child;
  processes_->look(parent.pid(), kProgram, false);
  auto first = kernel_.process(kProgram)->first;
  processes_->forked(child.pid(), kProgram + 1, parent.pid());
  EXPECT_EQ(processes_->image(child.pid()), stack_image(kProgram + 1, 1));
  EXPECT_FALSE(processes_->look(child.pid(), kProgram + 1, false)) << "it has the parent's run";
  EXPECT_EQ(kernel_.process(kProgram + 1)->first, first);
  // With an unknown parent, and an ended child.
  processes_->forked(child.pid(), kProgram + 2, INT32_MAX);
  EXPECT_EQ(processes_->image(child.pid()), stack_image(kProgram + 1, 1));
  processes_->forked(INT32_MAX, kProgram + 3, parent.pid());
  EXPECT_FALSE(processes_->image(INT32_MAX));
  // The child's entry remains after the parent's end.
  parent.end();
  tend();
  tend();
  EXPECT_EQ(processes_->known(), std::vector<pid_t>{child.pid()});
  EXPECT_EQ(kernel_.process(kProgram + 1)->first, first);
  EXPECT_FALSE(run(kProgram + 1).empty());
}

TEST_F(ProcessesTest, IdenticalProcessesShareARunUntilOneChanges) {
  Mapper one, other;
  processes_->look(one.pid(), kProgram, false);
  processes_->look(other.pid(), kProgram + 1, false);
  auto first = kernel_.process(kProgram)->first;
  EXPECT_EQ(kernel_.process(kProgram + 1)->first, first);
  ASSERT_TRUE(other.map(file("a"), kPlace));
  EXPECT_TRUE(changed(other));
  EXPECT_NE(kernel_.process(kProgram + 1)->first, first);
  EXPECT_FALSE(mapping(kPlace, kProgram));
  EXPECT_TRUE(mapping(kPlace, kProgram + 1));
  ASSERT_TRUE(other.unmap(kPlace));
  EXPECT_TRUE(changed(other));
  EXPECT_EQ(kernel_.process(kProgram + 1)->first, first);
}

// The first free range is allocated: freed ranges are reused, but not while they may be read.
TEST_F(ProcessesTest, RunsAreGivenBackWhenNothingLeadsToThem) {
  Mapper other, third;
  processes_->look(child.pid(), kProgram, false);
  const auto entry = *kernel_.process(kProgram);
  const auto end = entry.first + entry.count;
  ASSERT_TRUE(other.map(file("a"), kPlace));
  ASSERT_TRUE(third.map(file("b"), kPlace));
  child.end();
  tend();  // forgotten, retired
  processes_->look(other.pid(), kProgram + 1, false);
  EXPECT_GE(kernel_.process(kProgram + 1)->first, end);
  // As if the kernel program had just copied it for a child.
  const std::uint64_t copied = kProgram + 9;
  ASSERT_EQ(bpf_map_update_elem(bpf_map__fd(kernel_.processes()), &copied, &entry, BPF_ANY), 0);
  tend();
  ASSERT_TRUE(kernel_.process(copied)) << "met in the next sweep, perhaps";
  processes_->look(third.pid(), kProgram + 2, false);
  EXPECT_GE(kernel_.process(kProgram + 2)->first, end);
  tend();
  EXPECT_FALSE(kernel_.process(copied)) << "it has no owner";
  tend();  // freed
  tend();
  ASSERT_TRUE(other.unmap(kPlace));
  changed(other);
  EXPECT_EQ(kernel_.process(kProgram + 1)->first, entry.first);
}

// The budget holds one of two libraries.
class ProcessesWithoutRoom : public ProcessesTest {
 protected:
  void SetUp() override {
    ProcessesTest::SetUp();
    if (IsSkipped()) return;
    // Everything else is allocated first. A library takes a chunk, or the rest of the first ones.
    child_ = std::make_unique<Mapper>();
    processes_->look(child_->pid(), kProgram, false);
    auto before = kernel_.chunks(64);
    ASSERT_TRUE(child_->map(file("rest", 62000), kPlace));
    changed(*child_);
    auto most = before + 2 - (kernel_.chunks(64) == before);
    child_.reset();
    open(most * kChunk);
    child_ = std::make_unique<Mapper>();
    processes_->look(child_->pid(), kProgram, false);
    a_ = file("a", 62000);
    b_ = file("b", 62000);
    c_ = file("c", 62000);
    processes_->no_room = [this](const std::string& path) { told_.push_back(path); };
    ASSERT_TRUE(child_->map(a_, kPlace));
    ASSERT_TRUE(child_->map(b_, kPlace + 16 * kBytes));
    changed(*child_);
    ASSERT_TRUE(child_->map(c_, kPlace + 32 * kBytes));
    changed(*child_);
    ASSERT_EQ(mapping(kPlace)->pages, 1u);
    ASSERT_EQ(mapping(kPlace + 16 * kBytes)->pages, 1u);
  }
  std::unique_ptr<Mapper> child_;
  std::string a_, b_, c_;
  Words told_;
  std::uint64_t at_c_ = kPlace + 32 * kBytes;
  /// As the kernel program marks a mapping during a walk.
  void use(std::uint64_t at, std::uint64_t program = kProgram) {
    auto entry = kernel_.process(program);
    for (__u32 i = 0; i < entry->count; i++) {
      auto m = kernel_.mappings(entry->first + i, 1)[0];
      if (m.start != at) continue;
      m.used = 1;
      ASSERT_TRUE(write_map(kernel_.fd("unwind_mappings"),
                            (entry->first + i) * sizeof(unwind_mapping), &m, sizeof m));
    }
  }
};

TEST_F(ProcessesWithoutRoom, IsToldOnceOfEachFile) {
  EXPECT_EQ(mapping(at_c_)->pages, 0u);
  EXPECT_EQ(mapping(at_c_)->page, unsigned{UNWIND_LACK_MEMORY});
  EXPECT_EQ(told_, Words{c_});
  changed(*child_);
  EXPECT_EQ(told_.size(), 1u);
  Mapper other;
  ASSERT_TRUE(other.map(c_, kPlace));
  processes_->look(other.pid(), kProgram + 1, false);
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(ProcessesWithoutRoom, TablesThatAreNotUsedGiveWay) {
  use(kPlace);
  tend(std::chrono::seconds(20));  // c is not used either
  EXPECT_EQ(mapping(kPlace + 16 * kBytes)->pages, 1u);
  EXPECT_EQ(mapping(at_c_)->pages, 0u);
  use(kPlace);
  use(at_c_);
  tend(std::chrono::seconds(20));  // b is not used, c is requested
  EXPECT_EQ(mapping(kPlace)->pages, 1u);
  EXPECT_EQ(mapping(kPlace + 16 * kBytes)->pages, 0u);
  EXPECT_EQ(mapping(kPlace + 16 * kBytes)->page, unsigned{UNWIND_LACK_MEMORY});
  EXPECT_EQ(mapping(kPlace)->used, 0u) << "from here on";
  for (int i = 0; i < 3 && !mapping(at_c_)->pages; i++) {
    ::usleep(150000);  // dropped tables are freed by real time
    tend();
  }
  EXPECT_EQ(mapping(at_c_)->pages, 1u);
  EXPECT_EQ(mapping(kPlace)->pages, 1u);
  EXPECT_EQ(mapping(at_c_)->page, known(c_)->page);
}

TEST_F(ProcessesWithoutRoom, RoomOfEndedProcessesIsUsed) {
  Mapper other;
  ASSERT_TRUE(other.map(c_, kPlace));
  processes_->look(other.pid(), kProgram + 1, false);
  EXPECT_EQ(mapping(kPlace, kProgram + 1)->pages, 0u);
  use(kPlace, kProgram + 1);  // requested there
  child_->end();
  for (int i = 0; i < 6 && !mapping(kPlace, kProgram + 1)->pages; i++) {
    tend(std::chrono::seconds(11));
    ::usleep(150000);
  }
  EXPECT_EQ(mapping(kPlace, kProgram + 1)->pages, 1u)
      << tables_->bytes() << " bytes are taken, " << known(c_)->lacking << " are lacking; a "
      << known(a_)->state << " b " << known(b_)->state;
  EXPECT_EQ(generation(kProgram + 1), 1u) << "the same code";
}

}  // namespace
}  // namespace coretap::unwind
