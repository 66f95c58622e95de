#include "unwind/mapping_watch.hpp"

#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "coretap/small_files.hpp"
#include "expect.hpp"
#include "one_cpu.hpp"

namespace coretap::unwind {
namespace {

constexpr int kFailedChild = 99;

std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

bool map_once(int rights, int fd = -1) {
  const int flags = MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0);
  void* memory = ::mmap(nullptr, page(), rights, flags, fd, 0);
  return memory != MAP_FAILED && ::munmap(memory, page()) == 0;
}

bool map_code(int fd = -1) { return map_once(PROT_READ | PROT_EXEC, fd); }

/// Opening fails, with this hint.
bool refused(MappingWatch& watch, const char* hint) {
  const auto opened = watch.open();
  return !opened && opened.error().hint.find(hint) != std::string::npos &&
         watch.descriptors().empty();
}

class WatchedMappings : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto opened = watch.open();
    if (!opened && opened.error().status == kUnsupported)
      GTEST_SKIP() << opened.error().what << ": " << opened.error().why;
    ASSERT_TRUE(opened) << opened.error().what << ": " << opened.error().why;
  }

  bool drain() {
    told.clear();
    return watch.drain([&](pid_t tgid) { told.push_back(tgid); });
  }
  /// Receives all events of the action; retries if other processes flooded the rings meanwhile.
  bool hears_all_of(const std::function<void()>& action) {
    for (int i = 0; i < 50; ++i) {
      drain();
      action();
      if (drain()) return true;
    }
    return false;
  }
  std::ptrdiff_t times_told(pid_t tgid) const { return std::count(told.begin(), told.end(), tgid); }
  /// Number of reports of a process that does this; -1: it failed, or events were lost.
  std::ptrdiff_t times_told_of(const std::function<bool()>& body) {
    int status = -1;
    bool all =
        hears_all_of([&] { status = in_child([&] { return body() ? 0 : kFailedChild; }, &child); });
    return all && status == 0 ? times_told(child) : -1;
  }

  MappingWatch watch;
  std::vector<pid_t> told;
  pid_t child = -1;
};

TEST_F(WatchedMappings, OfCodeAreToldOnce) {
  const Fd self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  void* memory =
      ::mmap(nullptr, page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::pair<int, std::function<bool()>> cases[] = {
      {1, [] { return map_code(); }},
      {1, [&] { return map_code(self.get()) && map_code(self.get()); }},
      {1, [] { return ::execl("/bin/true", "true", nullptr) == 0; }},
      {1, [&] { return !::mprotect(memory, page(), PROT_READ | PROT_EXEC); }},
      {0, [&] { return map_once(PROT_READ | PROT_WRITE) && map_once(PROT_READ, self.get()); }}};
  for (auto& [times, body] : cases) {
    EXPECT_EQ(times_told_of(body), times) << &body - &cases[0].second;
    drain();
    EXPECT_EQ(times_told(child), 0);
  }
  ::munmap(memory, page());
}

TEST_F(WatchedMappings, OfThreadsAreTheirProcess) {
  pid_t thread_id = 0;
  bool mapped = false;
  EXPECT_TRUE(hears_all_of([&] {
    std::thread([&] {
      thread_id = ::gettid();
      mapped = map_code();
    }).join();
  }));
  ASSERT_TRUE(mapped);
  EXPECT_EQ(times_told(::getpid()), 1);
  EXPECT_EQ(times_told(thread_id), 0);
}

// At a quarter of the ring, not half: that would take minutes of other processes' mappings.
TEST_F(WatchedMappings, MakeADescriptorReadable) {
  std::vector<pollfd> polled;
  for (const int fd : watch.descriptors()) polled.push_back({fd, POLLIN, 0});
  ASSERT_FALSE(polled.empty());
  int woken = 0;
  for (int i = 0; i < 20; ++i) {
    while (::poll(polled.data(), polled.size(), 0) > 0) {
    }
    drain();
    for (int mapping = 0; mapping < 400; ++mapping) ASSERT_TRUE(map_code());
    if (::poll(polled.data(), polled.size(), 200) > 0) ++woken;
  }
  EXPECT_GE(woken, 10);
}

TEST_F(WatchedMappings, AreCompleteHoweverTheirRecordsWrap) {
  coretap::test::OnOneCpu on_one_cpu;
  // Records of 48, 64, 72 and 80 bytes reach the ring's end in each alignment.
  std::vector<Fd> files(1);
  for (const char* name : {"a", "aaaaaaaa", "aaaaaaaaaaaaaaaa"})
    files.emplace_back(::memfd_create(name, MFD_CLOEXEC));
  std::mt19937 random(20240229);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  const pid_t self = ::getpid();
  int complete = 0;
  for (int i = 0; i < 20'000; ++i) {  // 1.3 MB, through 64 KiB
    ASSERT_TRUE(map_code(files[random() % files.size()].get()));
    if (drain()) {
      ++complete;
      ASSERT_EQ(times_told(self), 1) << i;
    }
    for (const pid_t tgid : told) ASSERT_GT(tgid, 0) << i;
  }
  EXPECT_GT(complete, 19'000);  // all, unless other processes flood the rings
}

TEST_F(WatchedMappings, FloodsAreToldAndPass) {
  coretap::test::OnOneCpu on_one_cpu;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 6'000; ++i) ASSERT_TRUE(map_code());  // 288 KB
    EXPECT_FALSE(drain());
    ASSERT_TRUE(map_code());  // causes the kernel's record of the loss
    EXPECT_FALSE(drain());
    EXPECT_EQ(times_told_of([] { return map_code(); }), 1);
  }
}

TEST_F(WatchedMappings, WithoutLockedMemorySayWhatToDo) {
  if (read_number("/proc/sys/kernel/perf_event_paranoid").value_or(2) < 0)
    GTEST_SKIP() << "kernel.perf_event_paranoid is below 0: locked memory is not limited";
  EXPECT_EQ(0, in_child([] {
              const rlimit no_memory{0, 0};
              __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
              std::array<__user_cap_data_struct, 2> rights{};
              if (::setrlimit(RLIMIT_MEMLOCK, &no_memory) != 0 ||
                  ::syscall(SYS_capget, &header, rights.data()) != 0)
                return kFailedChild;
              rights[0].effective &= ~(1U << CAP_IPC_LOCK);
              if (::syscall(SYS_capset, &header, rights.data()) != 0) return kFailedChild;
              const auto watches = std::make_unique<std::array<MappingWatch, 64>>();
              for (auto& watch : *watches)
                if (refused(watch, "perf_event_mlock_kb")) return 0;
              return 1;
            }));
}

TEST(MappingWatch, WithoutRightsSaysWhatToDo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  if (read_number("/proc/sys/kernel/perf_event_paranoid").value_or(2) < 1)
    GTEST_SKIP() << "kernel.perf_event_paranoid is below 1: everybody may watch";
  EXPECT_EQ(
      0, in_child([] {
        if (::setresuid(65534, 65534, 65534) != 0) return kFailedChild;
        MappingWatch watch;
        return refused(watch, "CAP_PERFMON") && watch.open().error().status == kUnsupported ? 0 : 1;
      }));
}

}  // namespace
}  // namespace coretap::unwind
