// `coretap record`, its flight recorder, and dumps as `coretap show` prints them.
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "served.hpp"

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

// ---- in coretap serve ----

std::string kept_by_serve(const std::string& store, const std::string& more) {
  return "[hindsight]\ndirectory = \"" + store + "\"\nlast = \"60s\"\n" + more;
}

std::string post_dump(const std::string& headers = {}, const std::string& query = {}) {
  return "POST /dump" + query + " HTTP/1.0\r\n" + headers + "Content-Length: 0\r\n\r\n";
}

/// The path in a good answer.
std::string dump_in(const std::string& answer) {
  EXPECT_TRUE(contains(answer, " 200 ")) << answer;
  const auto body = answer.find("\r\n\r\n");
  if (!contains(answer, " 200 ") || body == answer.npos) return "/nowhere";
  return Json::parse(answer.substr(body + 4))["dump"].str();
}

TOOL_TEST(Hindsight, ServeSavesWhatWasBeforeAndAfterAToolWasKilled) {
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  Server server(kept_by_serve(store, "after = \"0s\"\n") +
                entry("opensnoop -x", "hindsight = true") + entry("runqlat", "hindsight = true") +
                entry("profile -F 19", "hindsight = true") + entry("execsnoop"));
  Opens opens("/nowhere/g");
  std::this_thread::sleep_for(3s);
  const auto first = dump_in(server.answer(post_dump()));
  std::this_thread::sleep_for(1500ms);
  const auto before = opens.number();
  const auto listener = server.listener();
  for (auto pid : server.children())
    if (pid != listener) ::kill(pid, SIGKILL);
  ASSERT_TRUE(server.await([](auto& p) { return p.sum("coretap_tool_restarts_total") == 4; }))
      << server.process().err();
  ASSERT_TRUE(server.all_up({"opensnoop", "runqlat", "profile", "execsnoop"}))
      << server.process().err();
  const auto after = opens.number();
  std::this_thread::sleep_for(3s);
  const auto at_last = opens.number();
  const auto second = dump_in(server.answer(post_dump()));
  ASSERT_NE(first, second);
  std::this_thread::sleep_for(1500ms * slowness());
  EXPECT_GT(numbers_in(shown(first, {"opensnoop", "--json"}), "/nowhere/g").size(), 100u);
  const auto numbers = numbers_in(shown(second, {"opensnoop", "--json"}), "/nowhere/g");
  ASSERT_GT(numbers.size(), 1000u);
  std::vector<std::uint64_t> old, fresh;
  for (auto number : numbers) {
    if (number < before) old.push_back(number);
    if (number >= after) fresh.push_back(number);
  }
  ASSERT_FALSE(old.empty());
  ASSERT_FALSE(fresh.empty());
  expect_without_gaps(old);
  expect_without_gaps(fresh);
  EXPECT_GT(old.back() + static_cast<std::uint64_t>(2200 * slowness()), before);
  EXPECT_GE(fresh.back() + 1, at_last) << "what was before the request is there";
  for (auto* tool : {"runqlat", "profile"}) {
    std::size_t files = 0;
    for (auto& file : fs::directory_iterator(second))
      files += file.path().filename().string().starts_with(tool);
    EXPECT_GE(files, 3u) << tool;
    EXPECT_GT(lines(shown(second, {tool, "--json"})).size(), 2u) << tool;
  }
  EXPECT_FALSE(fs::exists(second + "/execsnoop.000001.ctr"));
  // Only the last second: not the first segments.
  for (auto* wrong :
       {"?last=", "?last=soon", "?last=0s", "?last=-2m", "?last=1m&last=2m", "?lst=2m"})
    EXPECT_TRUE(contains(server.answer(post_dump({}, wrong)), " 400 ")) << wrong;
  const auto recent = dump_in(server.answer(post_dump({}, "?last=1s")));
  EXPECT_TRUE(fs::exists(second + "/opensnoop.000001.ctr"));
  EXPECT_FALSE(fs::exists(recent + "/opensnoop.000001.ctr"));
  EXPECT_GT(numbers_in(shown(recent, {"opensnoop", "--json"}), "/nowhere/g").size(), 10u);
  auto page = server.page();
  EXPECT_EQ(page.sum("coretap_hindsight_dumps_total", {{"result", "made"}}), 3);
  EXPECT_GT(page.sum("coretap_hindsight_bytes"), 0);
  EXPECT_EQ(page.sum("coretap_hindsight_unrecorded_events_total"), 0);
  EXPECT_EQ(page.sum("coretap_opensnoop_events_total") > 0, true) << "metrics go on";
}

TOOL_TEST(Hindsight, ServeReadsItsFileAgainAndEndsItsRing) {
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  const auto table = kept_by_serve(store, "after = \"0s\"\n");
  std::string dump;
  {
    Server server(table + entry("opensnoop -x", "hindsight = true"));
    // The process before may still end when the next one begins.
    server.write(table + entry("opensnoop", "hindsight = true") +
                 entry("syscount", "hindsight = true"));
    server.process().signal(SIGHUP);
    ASSERT_TRUE(server.process().await([](auto&, auto& err) {
      return contains(err, "0 tools stay, 1 end, 2 start");
    })) << server.process().err();
    ASSERT_TRUE(server.all_up({"opensnoop", "syscount"})) << server.process().err();
    std::this_thread::sleep_for(2500ms);
    dump = dump_in(server.answer(post_dump()));
    std::this_thread::sleep_for(1500ms * slowness());
    EXPECT_GT(lines(shown(dump, {"syscount", "--json"})).size(), 2u);
    const auto why = Json::parse(slurp(dump + "/why.json"));
    EXPECT_EQ(why["trigger"].str(), "request");
    EXPECT_TRUE(why["complete"].boolean());
  }
  EXPECT_FALSE(fs::exists(store + "/ring"));
  EXPECT_TRUE(fs::exists(dump));
}

TOOL_TEST(Hindsight, ServeJudgesMetrics) {
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store";
  Server server(kept_by_serve(store,
                              "after = \"0s\"\nat_most = \"9/1m\"\n"
                              "on = [\"coretap_opensnoop_events_total > 300/s for 3s\","
                              "\"coretap_runqlat_seconds p50 > 1h\"]\n") +
                entry(fmt::format("opensnoop -x -p {}", ::getpid()), "hindsight = true") +
                entry("runqlat", "hindsight = true"));
  std::this_thread::sleep_for(4s);
  for (auto& file : fs::directory_iterator(store))
    EXPECT_FALSE(file.path().filename().string().starts_with("20")) << file.path();
  const auto began = std::chrono::steady_clock::now();
  Opens opens("/nowhere/t");
  ASSERT_TRUE(server.process().await([](auto&, auto& err) { return contains(err, ": saved "); }))
      << server.process().err();
  EXPECT_GT(std::chrono::steady_clock::now() - began, 2500ms);
  std::this_thread::sleep_for(3s);
  opens.stop();
  const auto dumps = dumps_in(store);
  ASSERT_EQ(dumps.size(), 1u) << "it is the same excess: " << server.process().err();
  EXPECT_TRUE(dumps[0].ends_with("-coretap-opensnoop-events-total")) << dumps[0];
  const auto why = Json::parse(slurp(dumps[0] + "/why.json"));
  EXPECT_EQ(why["trigger"].str(), "coretap_opensnoop_events_total > 300/s for 3s");
  EXPECT_TRUE(why["value"].str().starts_with("opensnoop: ")) << why["value"].str();
  EXPECT_TRUE(why["value"].str().ends_with("/s")) << why["value"].str();
  EXPECT_GT(numbers_in(shown(dumps[0], {"opensnoop", "--json"}), "/nowhere/t").size(), 500u);
}

/// The answer to a request to a port of this machine; empty: none.
std::string answer_at(std::uint16_t port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string all;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
      ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t n = 0; (n = ::recv(fd, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return all;
}

TOOL_TEST(Hindsight, ServeMakesDumpsForThoseWhoMayAsk) {
  require_tool("runqlat");
  TemporaryDirectory directory;
  const auto store = directory.path() + "/store", file = directory.path() + "/x.toml";
  std::ofstream(directory.path() + "/token") << "correct-horse-battery\n";
  std::ofstream(file) << kept_by_serve(store,
                                       "after = \"0s\"\nat_most = \"1/10m\"\ntoken_file = \"" +
                                           directory.path() + "/token\"\n")
                      << entry("runqlat", "hindsight = true");
  constexpr std::uint16_t kPort = 39961;
  Process process(Spawn{.argv = {tool_path("coretap"), "serve", file, "--listen",
                                 "127.0.0.1:" + std::to_string(kPort)},
                        .death_signal = SIGTERM});
  const auto asked = [&](const std::string& headers) {
    return answer_at(kPort, post_dump(headers));
  };
  ASSERT_TRUE(until([&] {
    return contains(answer_at(kPort, "GET /metrics HTTP/1.0\r\n\r\n"),
                    "coretap_tool_up{tool=\"runqlat\"} 1");
  })) << process.err();
  std::this_thread::sleep_for(1500ms);
  EXPECT_TRUE(contains(answer_at(kPort, "GET /dump HTTP/1.0\r\n\r\n"), " 405 "));
  for (auto* headers : {"Origin: http://example.com\r\n", "X-Forwarded-For: 192.0.2.1\r\n",
                        "Authorization: Bearer correct-horse-batterz\r\n",
                        "Authorization: Bearer \r\n", "Authorization: Basic eA==\r\n"})
    EXPECT_TRUE(contains(asked(headers), " 403 ")) << headers;
  EXPECT_TRUE(fs::exists(dump_in(asked(""))));
  const auto refused = asked("");
  EXPECT_TRUE(contains(refused, " 503 ")) << refused;
  EXPECT_TRUE(contains(refused, "there were 1 in the last 600 s")) << refused;
  const std::string token = "Authorization: Bearer correct-horse-battery\r\n";
  EXPECT_TRUE(fs::exists(dump_in(asked(token))));
  EXPECT_TRUE(fs::exists(dump_in(asked(token + "Origin: http://example.com\r\n"))));
  EXPECT_EQ(dumps_in(store).size(), 3u);
  process.signal(SIGUSR1);
  EXPECT_TRUE(until([&] { return dumps_in(store).size() == 4; })) << process.err();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0) << process.err();
  // Without the table.
  Server other(entry("runqlat"));
  const auto none = other.answer(post_dump());
  EXPECT_TRUE(contains(none, " 409 ")) << none;
  EXPECT_TRUE(contains(none, "has no [hindsight]")) << none;
}

}  // namespace
}  // namespace coretap::tooltest
