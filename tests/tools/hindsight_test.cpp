// `coretap record`, its flight recorder, and dumps as `coretap show` prints them.
#include <sys/mount.h>
#include <sys/stat.h>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Opens files that are not there, each with its number, until it is destroyed.
class Opens {
 public:
  explicit Opens(std::string prefix, std::chrono::microseconds pause = 500us)
      : prefix_(std::move(prefix)), thread_([this, pause] {
          while (!end_) {
            const auto path = prefix_ + std::to_string(number_);
            (void)!::open(path.c_str(), O_RDONLY | O_CLOEXEC);
            number_++;
            std::this_thread::sleep_for(pause);
          }
        }) {}
  ~Opens() { stop(); }
  Opens(const Opens&) = delete;
  Opens& operator=(const Opens&) = delete;

  /// -> how many there were
  std::uint64_t stop() {
    end_ = true;
    if (thread_.joinable()) thread_.join();
    return number_;
  }
  std::uint64_t number() const { return number_; }

 private:
  std::string prefix_;
  std::atomic<bool> end_ = false;
  std::atomic<std::uint64_t> number_ = 0;
  std::thread thread_;
};

/// The numbers of such files in what show prints, of each line the first.
std::vector<std::uint64_t> numbers_in(const std::string& text, const std::string& prefix) {
  std::vector<std::uint64_t> all;
  for (auto at = text.find(prefix); at != text.npos; at = text.find(prefix, text.find('\n', at)))
    all.push_back(std::stoull(text.substr(at + prefix.size(), 20)));
  std::ranges::sort(all);  // each CPU has a buffer
  return all;
}

std::vector<std::string> dumps_in(const std::string& directory) {
  std::vector<std::string> all;
  for (auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("20")) all.push_back(entry.path());
  std::ranges::sort(all);
  if (all.empty()) throw std::runtime_error("there is no dump");
  return all;
}

std::uint64_t disk_usage(const std::string& directory) {
  std::set<ino_t> seen;
  std::uint64_t bytes = 0;
  std::error_code gone;
  for (auto at = fs::recursive_directory_iterator(directory, gone);
       at != fs::recursive_directory_iterator(); at.increment(gone)) {
    struct stat found {};
    if (::lstat(at->path().c_str(), &found) == 0 && seen.insert(found.st_ino).second)
      bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
    if (gone) break;
  }
  return bytes;
}

Strings recorder(const std::string& directory, const Strings& more) {
  return Strings{tool_path("coretap"), "record", "--dir", directory} + more;
}

/// Waits until the tools are attached: their first segments have begun.
void await_ring(Process& process, const std::string& directory, const std::string& tool) {
  ASSERT_TRUE(process.await([](auto&, auto& err) { return contains(err, "Keeping"); }))
      << process.err();
  ASSERT_TRUE(until([&] {
    struct stat found {};
    return process.ended() ||
           (::stat((directory + "/ring/" + tool + ".000001.ctr").c_str(), &found) == 0 &&
            found.st_size > 0);
  }));
  ASSERT_FALSE(process.ended()) << process.err();
}

std::string shown(const std::string& what, const Strings& more = {}) {
  auto result = run(Strings{tool_path("coretap"), "show", what} + more);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

void expect_without_gaps(const std::vector<std::uint64_t>& numbers) {
  for (std::size_t i = 1; i < numbers.size(); i++)
    ASSERT_EQ(numbers[i], numbers[i - 1] + 1) << "after " << i << " of " << numbers.size();
}

TOOL_TEST(Record, OneToolOrSeveralIntoFiles) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  const auto in = [&](const std::string& name) { return directory.path() + "/" + name; };
  Opens opens("/nowhere/a");
  auto one =
      run({tool_path("coretap"), "record", "-o", in("one.ctr"), "-d", "1", "opensnoop", "-x"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, "");
  expect_contains(one.err, {"Recording opensnoop into", "recorded"});
  EXPECT_GT(numbers_in(shown(in("one.ctr")), "/nowhere/a").size(), 100u);
  auto two = run(recorder(in("two"), {"-d", "1", "opensnoop -x", "opensnoop", "syscount"}));
  EXPECT_EQ(two.status, 0) << two.err;
  for (auto* name : {"two/opensnoop.ctr", "two/opensnoop-2.ctr", "two/syscount.ctr"}) {
    struct stat found {};
    ASSERT_EQ(::stat(in(name).c_str(), &found), 0) << name;
    EXPECT_EQ(found.st_mode & 07777, 0600u);
  }
  expect_contains(shown(in("two")), {"==> opensnoop-2 <==", "==> syscount <=="});
  for (auto& [words, status] : std::vector<std::pair<Strings, int>>{
           {{"opensnoop"}, 2},
           {{"-o", in("x"), "nosuchtool"}, 2},
           {{"-o", in("x"), "opensnoop", "--record", "y"}, 2},
           {{"-o", in("x"), "opensnoop", "--help"}, 2},
           {{"-o", in("x"), "opensnoop", "--nosuchoption"}, 2},
           {{"-o", "/nowhere/x", "opensnoop"}, 1},
           {{"-o", in("x"), "--dir", in("y"), "opensnoop"}, 2},
           {{"--dir", in("y"), "opensnoop", "-x"}, 2},
           {{"--on", "oomkill", "-o", in("x"), "opensnoop"}, 2},
           {{"--last", "5m", "--on", "nothing > 3", "opensnoop"}, 2},
           {{"--last", "5m", "--on", "psi memory some 2s/1s", "opensnoop"}, 2},
           {{"--last", "5m", "--dir", in("y"), "--most", "64K", "opensnoop"}, 2},
           {{"--last", "0", "opensnoop"}, 2}}) {
    auto refused = run(Strings{tool_path("coretap"), "record"} + words);
    EXPECT_EQ(refused.status, status) << join(words) << refused.err;
  }
}

TOOL_TEST(Hindsight, DumpsLoseNothingAndAreOneRecording) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  Process process(Spawn{.argv = recorder(store, {"--last", "6s", "--after", "0", "--keep", "4",
                                                 "opensnoop -x", "runqlat"})});
  await_ring(process, store, "opensnoop");
  Opens opens("/nowhere/b");
  // A dump every 100 ms.
  const auto end = std::chrono::steady_clock::now() + 10s;
  std::uint64_t at_last = 0;
  while (std::chrono::steady_clock::now() < end) {
    at_last = opens.number();
    process.signal(SIGUSR1);
    std::this_thread::sleep_for(100ms);
  }
  std::this_thread::sleep_for(1500ms * slowness());
  const auto dumps = dumps_in(store);
  EXPECT_EQ(dumps.size(), 4u);
  struct stat linked {};
  for (auto& entry : fs::directory_iterator(dumps.back()))
    if (entry.path().extension() == ".ctr") {
      ASSERT_EQ(::stat(entry.path().c_str(), &linked), 0);
    }
  EXPECT_GE(linked.st_nlink, 2u);
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0) << process.err();
  const auto numbers = numbers_in(shown(dumps.back(), {"opensnoop", "--json"}), "/nowhere/b");
  ASSERT_GT(numbers.size(), 3000u);
  expect_without_gaps(numbers);
  EXPECT_GE(numbers.back() + 1, at_last) << "what was before the trigger is there";
  EXPECT_FALSE(fs::exists(store + "/ring"));
  // Each segment alone, one after another, is the same.
  std::vector<std::uint64_t> alone;
  std::set<std::string> files;
  for (auto& entry : fs::directory_iterator(dumps.back()))
    if (entry.path().filename().string().starts_with("opensnoop")) files.insert(entry.path());
  for (auto& file : files)
    for (auto number : numbers_in(shown(file, {"--json"}), "/nowhere/b")) alone.push_back(number);
  std::ranges::sort(alone);
  EXPECT_EQ(alone, numbers);
  // All tools, with titles; and files by name.
  expect_contains(shown(dumps.back()), {"==> opensnoop <==", "==> runqlat <=="});
  Strings each(files.begin(), files.end());
  auto by_files = run(Strings{tool_path("coretap"), "show"} + each + Strings{"--json"});
  EXPECT_EQ(numbers_in(by_files.out, "/nowhere/b"), numbers);
}

TOOL_TEST(Hindsight, CountsOfSegmentsAddUp) {
  require_tool("syscount");
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  Process process(
      Spawn{.argv = recorder(store, {"--last", "60s", "--after", "0",
                                     "syscount -p " + std::to_string(::getpid()), "profile"})});
  await_ring(process, store, "syscount");
  std::this_thread::sleep_for(1s);
  constexpr std::uint64_t kCalls = 7000;
  for (std::uint64_t i = 0; i < kCalls; i++) {
    ::syscall(SYS_getpgid, 0);
    if (i == kCalls / 2) process.signal(SIGUSR1);  // ends a segment
    if (i % 10 == 0) std::this_thread::sleep_for(3ms);
  }
  std::this_thread::sleep_for(2500ms * slowness());
  process.signal(SIGUSR1);
  std::this_thread::sleep_for(1500ms * slowness());
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0) << process.err();
  const auto calls = [](const std::string& text) {
    std::uint64_t sum = 0;
    for (auto& line : lines(text))
      if (auto json = Json::parse(line); json.has("syscall") && json["syscall"].str() == "getpgid")
        sum += json["count"].u64();
    return sum;
  };
  const auto dump = dumps_in(store).back();
  EXPECT_EQ(calls(shown(dump, {"syscount", "--json"})), kCalls);
  std::uint64_t sum = 0, files = 0;
  for (auto& entry : fs::directory_iterator(dump)) {
    if (!entry.path().filename().string().starts_with("syscount")) continue;
    const auto part = calls(shown(entry.path(), {"--json"}));
    EXPECT_LT(part, kCalls);
    sum += part;
    files++;
  }
  EXPECT_EQ(sum, kCalls);
  EXPECT_GE(files, 2u);
  expect_contains(shown(dump, {"profile", "--folded"}), {";"});
}

TOOL_TEST(Hindsight, WhatAKilledRecorderHadIsThere) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  for (bool in_dump : {false, true}) {
    SCOPED_TRACE(in_dump);
    Process process(
        Spawn{.argv = recorder(store, {"--last", "6s", "--after", "30s", "opensnoop -x"})});
    await_ring(process, store, "opensnoop");
    const std::string prefix = in_dump ? "/nowhere/d" : "/nowhere/c";
    Opens opens(prefix);
    std::this_thread::sleep_for(4s);
    if (in_dump) process.signal(SIGUSR1);
    std::this_thread::sleep_for(in_dump ? 300ms : 0ms);
    // All at once: the recorder and its tools.
    std::ifstream list("/proc/" + std::to_string(process.pid()) + "/task/" +
                       std::to_string(process.pid()) + "/children");
    std::vector<pid_t> tools;
    for (pid_t tool = 0; list >> tool;) tools.push_back(tool);
    ASSERT_FALSE(tools.empty());
    const auto number = opens.number();
    for (auto tool : tools) ::kill(tool, SIGKILL);
    process.signal(SIGKILL);
    process.wait();
    const auto where = in_dump ? dumps_in(store).back() : store + "/ring";
    const auto numbers = numbers_in(shown(where, {"--json"}), prefix);
    ASSERT_GT(numbers.size(), 1000u);
    expect_without_gaps(numbers);
    // 1.1 s at one in 500 us and more.
    EXPECT_GT(numbers.back() + static_cast<std::uint64_t>(2200 * slowness()), number);
    // The next one saves it.
    Process next(Spawn{.argv = recorder(store, {"--last", "6s", "opensnoop -x"})});
    await_ring(next, store, "opensnoop");
    expect_contains(next.err(), {"saved what an interrupted run has left"});
    next.signal(SIGINT);
    EXPECT_EQ(next.wait(), 0);
    const auto dumps = dumps_in(store);
    const auto left =
        std::ranges::find_if(dumps, [](auto& d) { return d.ends_with("-interrupted"); });
    ASSERT_NE(left, dumps.end());
    EXPECT_EQ(numbers_in(shown(*left, {"--json"}), prefix), numbers);
    fs::remove_all(store);
  }
}

TOOL_TEST(Hindsight, NeverNeedsMoreThanItsLimit) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  constexpr std::uint64_t kMost = 2 << 20;
  Process process(Spawn{.argv = recorder(store, {"--last", "5m", "--after", "1s", "--most", "2M",
                                                 "--keep", "3", "opensnoop", "opensnoop -x"})});
  await_ring(process, store, "opensnoop");
  std::vector<std::unique_ptr<Opens>> many;
  for (int i = 0; i < 3; i++)
    many.push_back(std::make_unique<Opens>("/nowhere/" + std::string(50, 'e'), 20us));
  std::uint64_t largest = 0;
  for (int i = 0; i < 120; i++) {
    std::this_thread::sleep_for(50ms);
    if (i % 4 == 0) process.signal(SIGUSR1);
    largest = std::max(largest, disk_usage(store));
  }
  for (auto& one : many) one->stop();
  process.signal(SIGINT);
  const int status = process.wait();
  EXPECT_LE(largest, kMost + (64 << 10)) << process.err();
  EXPECT_GT(largest, kMost / 3);
  EXPECT_LE(dumps_in(store).size(), 3u);
  // Events without space are counted.
  EXPECT_EQ(status, contains(process.err(), "not recorded for lack of space") ? 1 : 0)
      << process.err();
  expect_contains(process.err(), {"is small"});
}

TOOL_TEST(Hindsight, AFullFileSystemEndsNothing) {
  require_tool("opensnoop");
  if (::geteuid() != 0) throw Skip("mounting a tmpfs needs root");
  TemporaryDirectory directory;
  const auto place = directory.path() + "/small";
  ASSERT_EQ(::mkdir(place.c_str(), 0700), 0);
  if (::mount("tmpfs", place.c_str(), "tmpfs", MS_NOSUID, "size=1m,mode=0700"))
    throw Skip("a tmpfs cannot be mounted here");
  {
    const auto store = place + "/store";
    Process process(
        Spawn{.argv = recorder(store, {"--last", "60s", "--after", "0", "opensnoop -x"})});
    await_ring(process, store, "opensnoop");
    Opens opens("/nowhere/f", 100us);
    std::this_thread::sleep_for(2s);
    std::ofstream(place + "/filler") << std::string(2 << 20, 'x');  // as much as fits
    std::this_thread::sleep_for(4s);
    EXPECT_FALSE(process.ended()) << process.err();
    EXPECT_TRUE(process.await([](auto&, auto& err) { return contains(err, "is full"); }))
        << process.err();
    fs::remove(place + "/filler");
    const auto number = opens.number();
    std::this_thread::sleep_for(4s * slowness());
    process.signal(SIGUSR1);
    EXPECT_TRUE(process.await([](auto&, auto& err) { return contains(err, "signal: saved"); }))
        << process.err();
    std::this_thread::sleep_for(1500ms * slowness());
    process.signal(SIGINT);
    EXPECT_EQ(process.wait(), 1) << process.err();
    expect_contains(process.err(), {"events were not recorded for lack of space"});
    const auto numbers = numbers_in(shown(dumps_in(store).back(), {"--json"}), "/nowhere/f");
    ASSERT_FALSE(numbers.empty());
    EXPECT_GT(numbers.back(), number) << "it went on when there was space";
  }
  ::umount2(place.c_str(), MNT_DETACH);
}

TOOL_TEST(Hindsight, Triggers) {
  require_tool("execsnoop");
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  Strings words{"--last", "20s", "--after", "1s", "--at-most", "1/10m"};
  words = words + Strings{"--on", "execsnoop", "execsnoop --name hind_child", "syscount"};
  Process process(Spawn{.argv = recorder(store, words)});
  await_ring(process, store, "execsnoop");
  std::this_thread::sleep_for(1s);
  const auto program = directory.path() + "/hind_child";
  fs::copy_file("/bin/true", program);
  for (int i = 0; i < 3; i++) {
    run({program});
    std::this_thread::sleep_for(1500ms * slowness());
  }
  EXPECT_TRUE(process.await([](auto&, auto& err) {
    return contains(err, "no dump, as there were");
  })) << process.err();
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0) << process.err();
  ASSERT_EQ(dumps_in(store).size(), 1u) << process.err();
  EXPECT_TRUE(dumps_in(store)[0].ends_with("-execsnoop"));
  expect_contains(shown(dumps_in(store)[0], {"execsnoop"}), {"hind_child"});
  const auto why = Json::parse(slurp(dumps_in(store)[0] + "/why.json"));
  EXPECT_TRUE(why["complete"].boolean());
  EXPECT_EQ(why["trigger"].str(), "execsnoop");
  EXPECT_EQ(why["tools"].items().size(), 2u);

  // The kernel's own triggers, and the load; two at once make one dump.
  if (::access("/proc/pressure/cpu", W_OK) != 0) throw Skip("this kernel measures no pressure");
  const auto other = directory.path() + "/other";
  Process busy(Spawn{.argv = recorder(other, {"--last", "20s", "--after", "5s", "--on",
                                              "psi cpu some 50ms/2s,load > 0.001", "syscount"})});
  await_ring(busy, other, "syscount");
  std::vector<std::unique_ptr<Process>> spin;
  for (int i = 0; i < 2 * static_cast<int>(std::thread::hardware_concurrency()) + 2; i++)
    spin.push_back(
        std::make_unique<Process>(Spawn{.argv = {"/bin/sh", "-c", "while :; do :; done"}}));
  EXPECT_TRUE(busy.await([](auto&, auto& err) { return contains(err, ": saved "); })) << busy.err();
  std::this_thread::sleep_for(4s);
  spin.clear();
  busy.signal(SIGINT);
  EXPECT_EQ(busy.wait(), 0) << busy.err();
  ASSERT_EQ(dumps_in(other).size(), 1u) << busy.err();
  expect_contains(slurp(dumps_in(other)[0] + "/why.json"),
                  {"psi cpu some 50ms/2s", "load > 0.001"});
}

TOOL_TEST(Hindsight, EndsAtOnceAndRefusesOthersDirectories) {
  require_tool("opensnoop");
  TemporaryDirectory directory;
  const auto in = [&](const char* name) { return directory.path() + "/" + name; };
  for (auto pause : {0ms, 30ms, 300ms}) {
    Process process(Spawn{.argv = recorder(in("store"), {"--last", "5m", "opensnoop", "runqlat"})});
    std::this_thread::sleep_for(pause);
    process.signal(SIGINT);
    const int status = process.wait();
    EXPECT_TRUE(status == 0 || status == 130) << status << process.err();
    if (status == 0) {
      EXPECT_FALSE(fs::exists(in("store/ring")));
    }
  }
  ASSERT_EQ(::mkdir(in("real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink(in("real").c_str(), in("link").c_str()), 0);
  auto refused = run(recorder(in("link"), {"--last", "5m", "opensnoop"}));
  EXPECT_EQ(refused.status, 2);
  expect_contains(refused.err, {"symbolic link"});
  Process one(Spawn{.argv = recorder(in("real"), {"--last", "5m", "opensnoop"})});
  await_ring(one, in("real"), "opensnoop");
  refused = run(recorder(in("real"), {"--last", "5m", "opensnoop"}));
  EXPECT_EQ(refused.status, 2);
  expect_contains(refused.err, {"another coretap records there"});
  one.signal(SIGTERM);
  EXPECT_EQ(one.wait(), 0) << one.err();
}

}  // namespace
}  // namespace coretap::tooltest
