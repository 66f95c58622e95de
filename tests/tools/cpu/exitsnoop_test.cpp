// exitsnoop against the results of wait4(2) for children that end in different ways.
#include <pthread.h>

#include <ctime>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

void kill_with(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(::getpid(), signal);
}

[[noreturn]] void end_thread(int code) {
  for (;;) ::syscall(SYS_exit, code);
}
void* outlive(void*) {
  ::usleep(300'000);
  end_thread(9);
}
/// The first thread ends immediately, another one later.
void first_thread_ends() {
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, outlive, nullptr)) ::_exit(99);
  end_thread(7);
}
void touch_memory() {
  constexpr std::size_t kBytes = 24 << 20;
  auto* memory = static_cast<char*>(::malloc(kBytes));
  std::memset(memory, 1, kBytes);
  ::_exit(memory[kBytes / 2]);
}

/// The event of one child's exit, with these options beside --json.
std::vector<Json> end_of(Child& child, const Strings& options = {}) {
  require_tool("exitsnoop");
  Tracer tracer("exitsnoop", options + "--json --strict -p " + child.id());
  child.end();
  return tracer.stop().body;
}

void expect_status(const std::vector<Json>& events, const Child& child) {
  ASSERT_EQ(events.size(), 1u);
  auto& event = events[0];
  Value status = nullptr, signal = nullptr;
  if (WIFEXITED(child.status))
    status = WEXITSTATUS(child.status);
  else
    signal = ::sigabbrev_np(WTERMSIG(child.status));
  expect_fields(event, {{"pid", child.pid()},
                        {"ppid", ::getpid()},
                        {"process_ended", true},
                        {"core_dumped", WIFSIGNALED(child.status) && WCOREDUMP(child.status)},
                        {"exit_status", status},
                        {"signal", signal}});
  EXPECT_EQ(event["comm"].str() + "\n", slurp("/proc/self/comm"));
  // The kernel's unit is kilobytes.
  EXPECT_EQ(event["max_rss_bytes"].i64() / 1024, child.usage.ru_maxrss);
}

TOOL_TEST(Exitsnoop, AsWaitSays) {
  const std::function<void()> ways[] = {[] { ::_exit(0); },         [] { ::_exit(3); },
                                        [] { ::_exit(255); },       [] { kill_with(SIGKILL); },
                                        [] { kill_with(SIGTERM); }, touch_memory,
                                        first_thread_ends};
  for (auto& way : ways) {
    SCOPED_TRACE(&way - ways);
    Child child(way);
    expect_status(end_of(child), child);
  }
}

TOOL_TEST(Exitsnoop, CoreDumpsAndNone) {
  for (rlim_t limit : {RLIM_INFINITY, rlim_t{0}}) {
    TemporaryDirectory place;
    Child child([&] {
      rlimit core{limit, limit};
      if (::setrlimit(RLIMIT_CORE, &core) || ::chdir(place.path().c_str())) ::_exit(1);
      kill_with(SIGABRT);
    });
    auto events = end_of(child, "-x");
    expect_status(events, child);
    expect_fields(events.at(0), {{"signal", "ABRT"}});
  }
}

TOOL_TEST(Exitsnoop, ProcessEndsWithItsLastThread) {
  Child whole(first_thread_ends), threads(first_thread_ends);
  auto process = end_of(whole), each = end_of(threads, "-T");
  ASSERT_EQ(process.size(), 1u);
  auto pid = whole.pid(), first = threads.pid();
  // The status of the first thread, which ended long ago; newer kernels return the last one's.
  expect_fields(process[0],
                {{"exit_status", WEXITSTATUS(whole.status)}, {"tid", pid}, {"pid", pid}});
  EXPECT_GE(process[0]["age_ns"].u64(), 300'000'000u);
  ASSERT_EQ(each.size(), 2u);
  expect_fields(each[0], {{"pid", first},
                          {"tid", first},
                          {"exit_status", 7},
                          {"process_ended", false},
                          {"max_rss_bytes", nullptr}});
  expect_fields(each[1], {{"pid", first}, {"exit_status", 9}, {"process_ended", true}});
  EXPECT_NE(each[1]["tid"].u64(), each[1]["pid"].u64());
  EXPECT_LT(each[1]["age_ns"].u64(), process[0]["age_ns"].u64() * kPatience.count());
}

TOOL_TEST(Exitsnoop, AgeIsTheTimeSinceTheFork) {
  using Clock = std::chrono::steady_clock;
  auto before = Clock::now();
  Child child([] { ::usleep(200'000); });
  auto forked = Clock::now();
  Tracer tracer("exitsnoop", "--json --strict -p " + child.id());
  auto release = Clock::now();
  child.end();
  auto after = Clock::now();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto age = std::chrono::nanoseconds(report.body[0]["age_ns"].u64());
  EXPECT_GE(age, release - forked + std::chrono::milliseconds(200));
  EXPECT_LE(age, after - before);
}

TOOL_TEST(Exitsnoop, OnlyThoseThatFail) {
  auto report =
      report_of("exitsnoop --json -x -- sh -c" + Strings{"sleep 0.01; (exit 3); true; kill -9 $$"});
  ASSERT_EQ(report.body.size(), 2u);
  expect_fields(report.body[0], {{"exit_status", 3}, {"ppid", report.body[1]["pid"].u64()}});
  expect_fields(report.body[1], {{"signal", "KILL"}});
  EXPECT_GE(report.lost("filtered"), 1u);
}

TOOL_TEST(Exitsnoop, ColumnsOfThePeers) {
  Child child([] { kill_with(SIGKILL); });
  ::setenv("TZ", "UTC-5", 1);
  Tracer tracer("exitsnoop", {"-t", "--utc", "--label", "web 1", "-p", child.id()});
  ::unsetenv("TZ");
  auto from = ::time(nullptr);
  child.end();
  auto until = ::time(nullptr);
  auto line = lines(tracer.stop_text()).at(1);
  static const std::regex row(
      R"((\d\d):\d\d:\d\d\.\d{3} web 1 +\S+ +\d+ +\d+ +\d+ +\d+\.\d\d +signal 9 \(KILL\) *)");
  std::smatch part;
  ASSERT_TRUE(std::regex_match(line, part, row)) << line;
  auto hour = [](time_t t) { return t / 3600 % 24; };
  EXPECT_TRUE(std::stoi(part[1]) == hour(from) || std::stoi(part[1]) == hour(until)) << line;
}

TESTS_OF(exitsnoop, .events = {"-e", "forker --children 3 --ms 5"},
         .stress = event_row("runner --count {n}", 600, "storm+execs+fails").with_children(),
         .long_run = {{.arguments = "-T"}});

}  // namespace
}  // namespace coretap::tooltest
