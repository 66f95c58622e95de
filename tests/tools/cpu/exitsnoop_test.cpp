// exitsnoop against what wait4(2) says of children that end in all ways.
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Waits until it is let go, then runs `body` and ends with 0 if that returns.
class Child {
 public:
  explicit Child(void (*body)()) {
    if (::pipe2(gate_, O_CLOEXEC)) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_) {
      ::close(gate_[0]);
      return;
    }
    ::close(gate_[1]);
    char byte;
    while (::read(gate_[0], &byte, 1) < 0) {
    }
    body();
    ::_exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (status >= 0) return;
    ::kill(pid_, SIGKILL);
    ::close(gate_[1]);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string id() const { return std::to_string(pid_); }
  void end() {
    if (::write(gate_[1], "x", 1) != 1) throw std::runtime_error("write");
    ::close(gate_[1]);
    if (::wait4(pid_, &status, 0, &usage) != pid_) throw std::runtime_error("wait4");
  }

  int status = -1;
  rusage usage{};

 private:
  int gate_[2];
  pid_t pid_;
};

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
/// The first thread ends at once, another one later.
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

/// What one child's end looks like, with these options beside --json.
std::vector<Json> end_of(Child& child, Strings options) {
  options.insert(options.end(), {"--json", "--strict", "-p", child.id()});
  Tracer tracer("exitsnoop", options);
  child.end();
  return tracer.stop().body;
}

void expect_status(const Json& event, const Child& child) {
  EXPECT_EQ(std::to_string(event["pid"].u64()), child.id());
  EXPECT_EQ(event["ppid"].i64(), ::getpid());
  EXPECT_EQ(event["comm"].str() + "\n", slurp("/proc/self/comm"));
  EXPECT_TRUE(event["process_ended"].boolean());
  EXPECT_EQ(event["core_dumped"].boolean(), WIFSIGNALED(child.status) && WCOREDUMP(child.status));
  if (WIFEXITED(child.status)) {
    EXPECT_EQ(event["exit_status"].i64(), WEXITSTATUS(child.status));
    EXPECT_TRUE(event["signal"].is_null());
  } else {
    EXPECT_TRUE(event["exit_status"].is_null());
    EXPECT_EQ(event["signal"].str(), ::sigabbrev_np(WTERMSIG(child.status)));
  }
  // The kernel says it in whole kilobytes.
  EXPECT_EQ(event["max_rss_bytes"].i64() / 1024, child.usage.ru_maxrss);
}

class ExitsnoopStatus : public testing::TestWithParam<void (*)()> {};

void as_wait_says(void (*body)()) {
  require_tool("exitsnoop");
  Child child(body);
  auto events = end_of(child, {});
  ASSERT_EQ(events.size(), 1u);
  expect_status(events[0], child);
}

TEST_P(ExitsnoopStatus, AsWaitSays){TOOL_TEST_BODY(as_wait_says(GetParam()))}

INSTANTIATE_TEST_SUITE_P(Ways, ExitsnoopStatus,
                         testing::Values([] { ::_exit(0); }, [] { ::_exit(3); },
                                         [] { ::_exit(255); }, [] { kill_with(SIGKILL); },
                                         [] { kill_with(SIGTERM); }, touch_memory,
                                         first_thread_ends));

std::string dump_place;

TOOL_TEST(Exitsnoop, CoreDumpsAndNone) {
  require_tool("exitsnoop");
  for (bool dumps : {true, false}) {
    TemporaryDirectory place;
    dump_place = place.path();
    Child child(dumps ? [] {
      rlimit all{RLIM_INFINITY, RLIM_INFINITY};
      if (::setrlimit(RLIMIT_CORE, &all) || ::chdir(dump_place.c_str())) ::_exit(1);
      kill_with(SIGABRT);
    } : [] {
      rlimit none{0, 0};
      if (::setrlimit(RLIMIT_CORE, &none)) ::_exit(1);
      kill_with(SIGABRT);
    });
    auto events = end_of(child, {"-x"});
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0]["signal"].str(), "ABRT");
    expect_status(events[0], child);
  }
}

TOOL_TEST(Exitsnoop, ProcessEndsWithItsLastThread) {
  require_tool("exitsnoop");
  Child whole(first_thread_ends), threads(first_thread_ends);
  auto process = end_of(whole, {}), each = end_of(threads, {"-T"});
  ASSERT_EQ(process.size(), 1u);
  // The first thread's, long ago; newer kernels give the last one's.
  EXPECT_EQ(process[0]["exit_status"].i64(), WEXITSTATUS(whole.status));
  EXPECT_EQ(process[0]["tid"].u64(), process[0]["pid"].u64());
  EXPECT_GE(process[0]["age_ns"].u64(), 300'000'000u);
  ASSERT_EQ(each.size(), 2u);
  EXPECT_EQ(each[0]["tid"].u64(), each[0]["pid"].u64());
  EXPECT_EQ(each[0]["exit_status"].u64(), 7u);
  EXPECT_FALSE(each[0]["process_ended"].boolean());
  EXPECT_TRUE(each[0]["max_rss_bytes"].is_null());
  EXPECT_NE(each[1]["tid"].u64(), each[1]["pid"].u64());
  EXPECT_EQ(each[1]["exit_status"].u64(), 9u);
  EXPECT_TRUE(each[1]["process_ended"].boolean());
  EXPECT_LT(each[1]["age_ns"].u64(), process[0]["age_ns"].u64() * kPatience.count());
}

TOOL_TEST(Exitsnoop, AgeIsTheTimeSinceTheFork) {
  require_tool("exitsnoop");
  auto before = std::chrono::steady_clock::now();
  Child child([] { ::usleep(200'000); });
  auto forked = std::chrono::steady_clock::now();
  Tracer tracer("exitsnoop", {"--json", "--strict", "-p", child.id()});
  auto release = std::chrono::steady_clock::now();
  child.end();
  auto after = std::chrono::steady_clock::now();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto age = std::chrono::nanoseconds(report.body[0]["age_ns"].u64());
  EXPECT_GE(age, release - forked + std::chrono::milliseconds(200));
  EXPECT_LE(age, after - before);
}

TOOL_TEST(Exitsnoop, OnlyThoseThatFail) {
  require_tool("exitsnoop");
  Tracer tracer("exitsnoop",
                {"--json", "-x", "--", "sh", "-c", "sleep 0.01; (exit 3); true; kill -9 $$"},
                {.attached = false});
  auto report = tracer.finish();
  ASSERT_EQ(report.body.size(), 2u);
  EXPECT_EQ(report.body[0]["exit_status"].u64(), 3u);
  EXPECT_EQ(report.body[1]["signal"].str(), "KILL");
  EXPECT_EQ(report.body[0]["ppid"].u64(), report.body[1]["pid"].u64());
  EXPECT_GE(report.lost("filtered"), 1u);
}

TOOL_TEST(Exitsnoop, ColumnsOfThePeers) {
  require_tool("exitsnoop");
  const Strings usual{"PCOMM", "PID", "PPID", "TID", "AGE(s)", "EXIT_CODE"};
  EXPECT_EQ(header_of("exitsnoop", {}), usual);
  auto with = [&](Strings first) {
    first.insert(first.end(), usual.begin(), usual.end());
    return first;
  };
  EXPECT_EQ(header_of("exitsnoop", {"-t"}), with({"TIME"}));
  EXPECT_EQ(header_of("exitsnoop", {"--utc", "--label", "x"}), with({"TIME-UTC", "LABEL"}));
  Child child([] { kill_with(SIGKILL); });
  ::setenv("TZ", "UTC-5", 1);
  Tracer tracer("exitsnoop", {"-t", "--utc", "--label", "web 1", "-p", child.id()});
  ::unsetenv("TZ");
  auto from = ::time(nullptr);
  child.end();
  auto until = ::time(nullptr);
  std::istringstream lines(tracer.stop_text());
  std::string header, line;
  std::getline(lines, header);
  ASSERT_TRUE(std::getline(lines, line));
  static const std::regex row(
      R"((\d\d):(\d\d:\d\d)\.\d{3} (\d\d):(\d\d:\d\d)\.\d{3} web 1 +\S+ +\d+ +\d+ +\d+ +\d+\.\d\d +signal 9 \(KILL\) *)");
  std::smatch part;
  ASSERT_TRUE(std::regex_match(line, part, row)) << line;
  EXPECT_EQ(part[2], part[4]);
  EXPECT_EQ((std::stoi(part[3]) + 5) % 24, std::stoi(part[1])) << "five hours east";
  auto hour = [](time_t t) { return t / 3600 % 24; };
  EXPECT_TRUE(std::stoi(part[3]) == hour(from) || std::stoi(part[3]) == hour(until));
}

const DeclareTests kExitsnoop{{
    .name = "exitsnoop",
    .events = {"-e", "forker --children 3 --ms 5"},
    .stress = {.workload = "runner --count {n}",
               .events = 600,
               .truth = "storm+execs+fails",
               .tiny = "--ring-size 4096",
               .by_cgroup = true},
    .long_run = {{.arguments = "-T"}},
}};

}  // namespace
}  // namespace coretap::tooltest
