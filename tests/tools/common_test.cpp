// Behaviour of all tools: command line, exit, output, leftovers.
#include <linux/capability.h>
#include <poll.h>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

Strings with(const std::string& tool, const Strings& arguments) {
  return Strings{tool_path(tool)} + arguments;
}
std::unique_ptr<Process> start(const std::string& tool, const Strings& arguments,
                               const std::string& stdout_path = {}) {
  return std::make_unique<Process>(
      Spawn{.argv = with(tool, arguments), .stdout_path = stdout_path});
}

bool has_interval(const std::string& tool) { return has_option(tool, "[INTERVAL"); }
bool prints_events(const std::string& tool) {
  return has_option(tool, "--ring-size") || has_option(tool, "--dump-on-exit");
}

/// A process that does nothing until it is released.
struct Idle : Workload {
  Idle() : Workload("sleeper", {"--sleeps", "1", "--ms", "1"}) {}
};

/// A named pipe, without a reader unless requested.
class UnreadPipe {
 public:
  UnreadPipe() : path_(directory_.path() + "/pipe") {
    if (::mkfifo(path_.c_str(), 0600)) throw std::runtime_error("mkfifo");
    fd_ = ::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd_ < 0) throw std::runtime_error(path_);
  }
  ~UnreadPipe() { ::close(fd_); }
  UnreadPipe(const UnreadPipe&) = delete;
  UnreadPipe& operator=(const UnreadPipe&) = delete;

  const std::string& path() const { return path_; }
  void shrink() { ::fcntl(fd_, F_SETPIPE_SZ, 4096); }
  /// Blocks the next write; drain() does not return the bytes written here.
  void fill() {
    static const std::string filler(4096, 'x');
    for (ssize_t n; (n = ::write(fd_, filler.data(), filler.size())) > 0;)
      filled_ += static_cast<std::size_t>(n);
  }
  bool full() const {
    pollfd room{fd_, POLLOUT, 0};
    return ::poll(&room, 1, 0) == 0;
  }
  std::string drain() {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    auto own = std::min(filled_, text.size());
    filled_ -= own;
    return text.substr(own);
  }

 private:
  TemporaryDirectory directory_;
  std::string path_;
  int fd_ = -1;
  std::size_t filled_ = 0;
};

/// Whether it is blocked within a report by a full pipe: otherwise its event loop waits.
bool waits_for_its_reader(pid_t pid) {
  auto call = slurp("/proc/" + std::to_string(pid) + "/syscall");
  for (int number : {
#ifdef SYS_poll
           static_cast<int>(SYS_poll),
#endif
           static_cast<int>(SYS_ppoll), static_cast<int>(SYS_write)})
    if (call.starts_with(std::to_string(number) + " ")) return true;
  return false;
}

bool await_programs(pid_t pid) {
  return until([&] { return !bpf_ids(pid).programs.empty(); });
}

void expect_report(const std::string& tool, const Report& report) {
  expect_complete(tool, report);
  // Tables and stacks have a line for each key with events, and no other lines.
  if (!prints_events(tool) && !has_option(tool, "--stack-storage-size") &&
      !has_option(tool, "--top ROWS") && !tests_of(tool).nothing_when_idle) {
    EXPECT_FALSE(report.body.empty()) << "no report";
  }
}

// ---- each tool ----

TEST(DeclaredTests, OfEveryTool) {
  std::set<std::string> tools;
  for (auto& line : lines(run_tool("coretap", "list --json").out)) {
    auto tool = Json::parse(line);
    auto name = tools.insert(tool["tool"].str()).first;
    EXPECT_TRUE(declared_tests().contains(*name))
        << "tests/tools/" << tool["subsystem"].str() << "/" << *name
        << "_test.cpp has no TESTS_OF for " << *name << " (see docs/new-tool.md)";
  }
  for (auto& [name, tests] : declared_tests()) {
    EXPECT_TRUE(tools.contains(name)) << "tests are declared of " << name << ", which is no tool";
    EXPECT_FALSE(tests.reports.empty()) << name;
    EXPECT_FALSE(tests.events.command.empty()) << name;
    EXPECT_FALSE(tests.long_run.empty()) << name;
    // A snapshot has no events to lose.
    auto is_snapshot = [](auto& report) { return report.kind == ReportKind::snapshot; };
    if (std::all_of(tests.reports.begin(), tests.reports.end(), is_snapshot)) continue;
    EXPECT_TRUE(!tests.stress.workload.empty() && tests.stress.events) << name;
    EXPECT_TRUE(tests.stress.truth || tests.stress.uncounted || !tests.stress.kernel_event.empty())
        << name;
  }
}

TEST(DeclaredTests, OfEveryKindOfReport) {
  for (auto kind : kReportKinds) {
    auto has = [kind](auto& entry) {
      auto& reports = entry.second.reports;
      return std::any_of(reports.begin(), reports.end(),
                         [kind](auto& r) { return r.kind == kind; });
    };
    EXPECT_TRUE(std::any_of(declared_tests().begin(), declared_tests().end(), has))
        << name_of(kind);
  }
}

// ---- each kind of report, with one tool that has it ----

class CommonKind : public ::testing::TestWithParam<ReportKind> {};
INSTANTIATE_TEST_SUITE_P(Reports, CommonKind, ::testing::ValuesIn(kReportKinds),
                         [](auto& info) { return std::string(name_of(info.param)); });

/// The tool that represents a kind, and its options.
struct OfKind {
  explicit OfKind(ReportKind of) : kind(of) {
    auto chosen = representative(of);
    tool = chosen.tool;
    options = chosen.options;
  }
  Strings with_options(const Strings& more) const { return options + more; }

  ReportKind kind;
  bool attaches = kind != ReportKind::snapshot;
  std::string tool;
  Strings options;
};

#define TEST_KIND(name)                                                           \
  struct KindTest_##name : OfKind {                                               \
    using OfKind::OfKind;                                                         \
    void test() const;                                                            \
  };                                                                              \
  TEST_P(CommonKind, name) { TOOL_TEST_BODY(KindTest_##name(GetParam()).test()) } \
  void KindTest_##name::test() const

TEST_KIND(WithoutRights) {
  // Other users may have no access to the directory of the executables.
  std::string cannot;
  for (auto& in_child : {as_nobody({}), as_root({})}) {
    auto result = run_tool(tool, with_options("--json --duration 0.1"), in_child);
    if (result.status >= 126) {
      if (!cannot.empty()) throw Skip("cannot give up rights here: " + cannot + result.err);
      cannot = result.err;
      continue;
    }
    if (!attaches) {
      EXPECT_EQ(result.status, 0) << "it reads what everybody may: " << result.err;
      continue;
    }
    expect_refusal(tool, result, 3, "CAP_BPF");
    EXPECT_TRUE(contains(result.err, "CAP_PERFMON")) << result.err;
  }
}

// A full pipe blocks it before its exit, so that its BPF objects can be checked.
TEST_KIND(ExplainsWithoutAttaching) {
  require_tool(tool);
  UnreadPipe pipe;
  pipe.fill();
  auto process = start(tool, with_options("--explain"), pipe.path());
  ASSERT_TRUE(await_sleep(process->pid()));
  auto held = bpf_ids(process->pid());
  EXPECT_EQ(held.programs.size(), 0u);
  EXPECT_EQ(held.links.size(), 0u);
  auto text = pipe.drain();
  EXPECT_EQ(process->wait(), 0) << process->err();
  text += pipe.drain();
  bool any = false;
  auto place = attaches ? "  * " : "reads ";
  for (auto& line : lines(text)) any |= line.starts_with(place) && line.size() > 6;
  EXPECT_TRUE(any) << "no attach point: " << text;
  EXPECT_FALSE(contains(process->err(), "Ctrl-C to end")) << process->err();
}

// With --strict no event may be lost.
TEST_KIND(EndsByItselfAndLosesNothing) {
  require_tool(tool);
  Idle idle;
  auto begun = Clock::now();
  Strings words("--json --strict --duration 0.3");
  for (auto& word : attaches ? Strings{"--pid", idle.id()} : Strings("0.1")) words.push_back(word);
  auto report = Tracer(tool, with_options(words), {.attached = false}).finish();
  EXPECT_GE(Clock::now() - begun, 300ms);
  EXPECT_FALSE(report.ledger["data_lost"].boolean());
  if (!attaches) return;
  expect_report(tool, report);
  EXPECT_EQ(report.header["options"]["pid"].str(), idle.id());
}

TEST_KIND(WrongCommandLines) {
  for (auto& wrong :
       std::vector<Strings>{"--no-such-option", "--\x1b[31m\xff", "--duration soon\x07"}) {
    SCOPED_TRACE(::testing::PrintToString(wrong));
    expect_refusal(tool, run_tool(tool, with_options(wrong)), 2);
  }
  if (!attaches)
    expect_refusal(tool, run_tool(tool, with_options("--json -p 1")), 2, "filtered by task");
}

TEST_KIND(SignalsEndItWithTheLastReport) {
  require_tool(tool);
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  std::vector<std::unique_ptr<Process>> processes;
  // A snapshot without an interval is one report.
  Strings last = attaches ? Strings{} : Strings("1000"), first = last;
  first.insert(first.begin(), "--json");
  // Also as `coretap TOOL`; all at once.
  processes.push_back(start("coretap", tool + with_options(first)));
  for (int i = 1; i < 3; i++) processes.push_back(start(tool, with_options(first)));
  auto text = start(tool, with_options(last));
  for (auto& process : processes)
    ASSERT_TRUE(process->await([](auto& out, auto&) {
      return contains(out, "\"type\":\"header\"");
    })) << process->err();
  ASSERT_TRUE(attaches ? await_programs(text->pid()) : await_sleep(text->pid()));
  for (int i = 0; i < 3; i++) {
    SCOPED_TRACE(kSignals[i]);
    auto& process = *processes[static_cast<std::size_t>(i)];
    process.signal(kSignals[i]);
    EXPECT_EQ(process.wait(), 0) << process.err();
    parse_report(process.out(), process.err());
  }
  ASSERT_TRUE(await_sleep(text->pid()));
  text->signal(SIGINT);
  EXPECT_EQ(text->wait(), 0) << text->err();
  EXPECT_TRUE(safe_for_terminals(text->out()));
  lines(text->out());
}

// SIGHUP stays ignored (nohup); background commands of scripts, which start with SIGINT ignored,
// still end by SIGINT.
TEST_KIND(SignalsIgnoredAtStart) {
  require_tool(tool);
  Strings words("--json");
  if (!attaches) words.emplace_back("1000");
  Process process({.argv = with(tool, with_options(words)), .in_child = [] {
                     for (int signal : {SIGHUP, SIGINT}) ::signal(signal, SIG_IGN);
                   }});
  ASSERT_TRUE(process.await([](auto& out, auto&) { return contains(out, "\"type\":\"header\""); }))
      << process.err();
  ASSERT_TRUE(await_sleep(process.pid()));
  process.signal(SIGHUP);
  std::this_thread::sleep_for(300ms);
  ASSERT_FALSE(process.ended());
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 0) << process.err();
  parse_report(process.out(), process.err());
}

// A file or map that is opened later must not become the tool's output.
TEST_KIND(ClosedStandardFiles) {
  require_tool(tool);
  // A snapshot ends on its own.
  auto words = with_options(attaches ? Strings("--json --duration 0.2") : Strings("--json"));
  for (auto& closed : std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1, 2}}) {
    SCOPED_TRACE(::testing::PrintToString(closed));
    auto begun = Clock::now();
    auto result = run_tool(tool, words, [&] {
      for (int fd : closed) ::close(fd);
    });
    EXPECT_LT(Clock::now() - begun, soon());
    EXPECT_EQ(result.status, 0) << result.err;
    if (closed[0] == 1 || closed.size() > 1) {
      EXPECT_EQ(result.out, "");
    } else {
      parse_report(result.out, result.err);
    }
  }
}

TEST_KIND(ReaderGoesAway) {
  require_tool(tool);
  Idle idle;
  auto words = with_options(attaches ? Strings{"--pid", idle.id()} : Strings{});
  if (has_interval(tool)) words.emplace_back("1000");
  auto silent = start(tool, words);
  ASSERT_TRUE(attaches ? silent->await([](auto&, auto& err) { return contains(err, "Ctrl-C"); })
                       : await_sleep(silent->pid()));
  auto before = silent->err();
  silent->close_stdout();
  EXPECT_EQ(silent->wait(soon()), 0);
  EXPECT_EQ(silent->err(), before);
  if (!has_interval(tool)) return;
  auto busy = start(tool, with_options("0.05"));
  ASSERT_TRUE(busy->await([](auto& out, auto&) { return !out.empty(); }));
  before = busy->err();
  busy->close_stdout();
  EXPECT_EQ(busy->wait(soon()), 0);
  EXPECT_EQ(busy->err(), before);
}

TEST_KIND(FullDisk) {
  require_tool(tool);
  std::vector<Strings> all{{"--help"},
                           {"--version"},
                           {"--explain"},
                           with_options("--json"),  // without a reader it could run forever
                           with_options("--csv --duration 0.2")};
  // Only kinds that print even without events.
  if (kind == ReportKind::aggregate || kind == ReportKind::snapshot)
    all.push_back(with_options("--duration 0.2"));
  for (auto& words : all) {
    SCOPED_TRACE(::testing::PrintToString(words));
    auto result = run_tool(tool, words, {}, "/dev/full");
    EXPECT_EQ(result.status, 1) << result.err;
    expect_contains(result.err, {tool + ": ", "No space left"});
  }
}

TEST_KIND(StalledReader) {
  require_tool(tool);
  UnreadPipe pipe;
  pipe.fill();
  auto process = start(tool, with_options("--json"), pipe.path());
  if (attaches) {
    ASSERT_TRUE(await_programs(process->pid()));
  }
  ASSERT_TRUE(await_sleep(process->pid()));
  auto held = bpf_ids(process->pid());
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(soon()), 0) << process->err();
  EXPECT_EQ(bpf_left(held), Strings{});
}

TEST_KIND(CommandsAndTheirStatus) {
  require_tool(tool);
  if (!attaches) {
    expect_refusal(tool, run_tool(tool, with_options("--json -- true")), 2);
    return;
  }
  auto missing = start(tool, with_options({"--", "no-such-command-\x1b"}));
  auto ignored = start(tool, with_options({"--json", "--", "sh", "-c", "exit 7"}));
  auto passed = start(tool, with_options({"--json", "--exit-status", "--", "sh", "-c", "exit 7"}));
  EXPECT_EQ(missing->wait(), 127);
  EXPECT_FALSE(contains(missing->err(), "Ctrl-C")) << "it began: " << missing->err();
  expect_contains(missing->err(), {tool + ": ", "no-such-command-\\x1b"});
  EXPECT_TRUE(safe_for_terminals(missing->err()));
  EXPECT_EQ(ignored->wait(), 0) << ignored->err();
  parse_report(ignored->out(), ignored->err());
  EXPECT_EQ(passed->wait(), 7) << passed->err();
  parse_report(passed->out(), passed->err());
}

// Data and the command's output are separate.
TEST_KIND(OutputToAFile) {
  require_tool(tool);
  TemporaryDirectory directory;
  auto file = directory.path() + "/data";
  for (auto& options : std::vector<Strings>{{"--json"}, {"--csv"}, {}}) {
    SCOPED_TRACE(::testing::PrintToString(options));
    auto words = with_options(options);
    words = words + Strings{"--output", file};
    if (attaches) words = words + Strings{"--", "sh", "-c", "echo by the command"};
    auto result = run_tool(tool, words);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, attaches ? "by the command\n" : "");
    if (options == Strings("--json")) parse_report(slurp(file), result.err);
    struct stat st {};
    ASSERT_EQ(::stat(file.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
  }
  auto refused = run_tool(tool, with_options("--output /no/such/directory/file"));
  expect_refusal(tool, refused, 1, "/no/such/directory/file");
}

// ---- losses ----

TOOL_TEST(Common, StrictTellsOfLostStacks) {
  auto forker = workload_path("forker");
  Strings command{"--", forker, "--children", "4", "--depth", "2"};
  Strings strict("--json --strict --stack-storage-size 2"), lenient = strict;
  lenient.erase(lenient.begin() + 1);
  for (auto* options : {&strict, &lenient}) {
    options->insert(options->end(), command.begin(), command.end());
    Tracer tracer("offcputime", *options);
    auto report = tracer.finish(options == &strict ? 4 : 0);
    EXPECT_GT(report.lost("stacks_failed") + report.lost("untracked"), 0u);
    EXPECT_TRUE(report.ledger["data_lost"].boolean());
    EXPECT_TRUE(contains(report.err, "--stack-storage-size") || contains(report.err, "not tracked"))
        << report.err;
  }
}

// ---- slow readers ----

TOOL_TEST(Common, StalledReaderOfManyReports) {
  require_tool("runqlat");
  Workload workload("runqueue", "--threads 16 --ms 60000");
  UnreadPipe pipe;
  auto process = start("runqlat", "--json -L 0.05", pipe.path());
  ASSERT_TRUE(await_programs(process->pid()));
  workload.release();
  ASSERT_TRUE(until([&] { return pipe.full() && waits_for_its_reader(process->pid()); }))
      << process->err();
  auto held = bpf_ids(process->pid());
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(soon()), 0) << process->err();
  EXPECT_EQ(bpf_left(held), Strings{});
  auto out = pipe.drain();
  // Partly filled pages of the pipe count as full.
  EXPECT_GE(out.size(), 16u << 10);
  EXPECT_TRUE(out.starts_with("{\"type\":\"header\"")) << out.substr(0, 200);
}

// The last report waits for slow readers, such as a pager.
TOOL_TEST(Common, SlowReaderGetsTheLastReport) {
  require_tool("runqlat");
  Workload workload("runqueue", "--threads 16 --ms 100", kLinger);
  UnreadPipe pipe;
  pipe.shrink();
  auto process = start("runqlat", {"-L", "-p", workload.id()}, pipe.path());
  ASSERT_TRUE(process->await([](auto&, auto& err) { return contains(err, "Tracing "); }));
  workload.release();
  workload.truth();
  process->signal(SIGINT);
  ASSERT_TRUE(until([&] { return pipe.full() && waits_for_its_reader(process->pid()); }));
  std::string out;
  ASSERT_TRUE(until([&] {
    out += pipe.drain();
    return state_of(process->pid()) == 'Z';
  }));
  EXPECT_EQ(process->wait(), 0) << process->err();
  out += pipe.drain();
  EXPECT_GT(out.size(), 4096u);
  EXPECT_TRUE(safe_for_terminals(out));
  lines(out);
}

TOOL_TEST(Common, SecondInterruptGivesUpTheLastReport) {
  require_tool("runqlat");
  UnreadPipe pipe;
  pipe.fill();
  auto process = start("runqlat", {}, pipe.path());
  ASSERT_TRUE(process->await([](auto&, auto& err) { return contains(err, "Tracing "); }));
  auto held = bpf_ids(process->pid());
  process->signal(SIGINT);
  ASSERT_EQ(bpf_left({.programs = {}, .links = held.links, .maps = {}}), Strings{})
      << "detached before the last report";
  ASSERT_TRUE(await_sleep(process->pid()));
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(soon()), 0) << process->err();
}

// ---- rights, commands ----

TOOL_TEST(Common, NamesTheRightThatIsMissing) {
  auto tool = tool_names().at(0);
  auto perfmon = run_tool(tool, "--duration 0.1", as_root({CAP_BPF}));
  if (perfmon.status >= 126) throw Skip("cannot give up rights here: " + perfmon.err);
  expect_refusal(tool, perfmon, 3, "CAP_PERFMON");
  EXPECT_FALSE(contains(perfmon.err, "CAP_BPF")) << perfmon.err;
  auto bpf = run_tool(tool, "--duration 0.1", as_root({CAP_PERFMON}));
  expect_refusal(tool, bpf, 3, "CAP_BPF");
  EXPECT_FALSE(contains(bpf.err, "CAP_PERFMON")) << bpf.err;
}

// The command is not run when the options are rejected.
TOOL_TEST(Common, RefusedItRunsNoCommand) {
  TemporaryDirectory directory;
  auto mark = directory.path() + "/mark";
  expect_refused({"runqlat", "-c", "/tmp", "--", "touch", mark});
  EXPECT_FALSE(std::filesystem::exists(mark));
}

// Also where a tool could do without that hook, or looks for several functions.
TOOL_TEST(Common, LibraryThatIsNotThere) {
  for (auto& tool : tool_names()) {
    if (!has_option(tool, "--library PATH") || expected_missing(tool)) continue;
    SCOPED_TRACE(tool);
    expect_refusal(tool, run_tool(tool, "--library /nowhere/at_all --duration 0.1"), 2,
                   "'/nowhere/at_all': No such file or directory");
  }
}

// The tool does not kill a command that continues after the tool is interrupted.
TOOL_TEST(Common, InterruptLeavesTheCommand) {
  Tracer tracer("runqlat",
                {"--json", "--exit-status", "--", "sh", "-c", "exec sleep 60 >/dev/null 2>&1"});
  auto report = tracer.stop(SIGTERM);
  expect_report("runqlat", report);
  EXPECT_TRUE(contains(report.err, "goes on")) << report.err;
}

TOOL_TEST(Common, HelpAndVersion) {
  auto tool = tool_names().at(0);
  auto help = said_by(tool + " --help"), by_coretap = said_by("coretap help " + tool);
  EXPECT_TRUE(help.starts_with(tool + ": ")) << help;
  expect_contains(help, {"Usage: " + tool + " [OPTIONS]"});
  expect_contains(by_coretap, {"Usage: coretap " + tool + " [OPTIONS]"});
  EXPECT_EQ(said_by("coretap " + tool + " -h"), by_coretap);

  auto version = said_by(tool + " --version");
  EXPECT_TRUE(version.starts_with(tool + " (coretap) ")) << version;
  auto said = lines(version);
  ASSERT_EQ(said.size(), 2u);
  expect_contains(said[1], {"libbpf "});
  EXPECT_EQ(said_by("coretap " + tool + " -V"), version);
}

TOOL_TEST(Common, List) {
  auto names = tool_names();
  ASSERT_GE(names.size(), 6u);
  auto text = said_by("coretap list");
  for (auto& name : names) expect_contains(text, {"  " + name + " "});
  std::set<std::string> listed;
  for (auto& line : lines(said_by("coretap list --json"))) {
    auto tool = Json::parse(line);
    EXPECT_TRUE(listed.insert(tool["tool"].str()).second) << line;
    EXPECT_FALSE(tool["subsystem"].str().empty());
    expect_contains(text, {tool["summary"].str()});
    EXPECT_EQ(::access(tool_path(tool["tool"].str()).c_str(), X_OK), 0) << line;
  }
  EXPECT_EQ(listed.size(), names.size());
}

TOOL_TEST(Common, Doctor) {
  auto text = start("coretap", "doctor"), json = start("coretap", "doctor --json");
  // It loads the programs of all tools, which takes long under emulation.
  EXPECT_EQ(text->wait(3 * kPatience), 0) << text->err();
  EXPECT_EQ(json->wait(3 * kPatience), 0) << json->err();
  EXPECT_TRUE(safe_for_terminals(text->out()));
  std::map<std::string, std::string> states;
  std::size_t checks = 0;
  for (auto& line : lines(json->out())) {
    auto found = Json::parse(line);
    if (found["type"].str() == "tool") {
      EXPECT_TRUE(states.emplace(found["tool"].str(), found["state"].str()).second) << line;
    } else {
      EXPECT_EQ(found["type"].str(), "check");
      EXPECT_TRUE(contains(text->out(), found["check"].str())) << line;
      checks++;
    }
  }
  EXPECT_GT(checks, 5u);
  EXPECT_EQ(states.size(), tool_names().size());
  for (auto& name : tool_names()) {
    EXPECT_TRUE(contains(text->out(), "\n" + name + " ")) << name;
    auto state = states[name];
    EXPECT_TRUE(state == "runs" || state == "limited" || state == "cannot") << name << state;
    EXPECT_EQ(state == "cannot", expected_missing(name).has_value()) << name << ": " << state;
  }
}

TOOL_TEST(Common, DoctorOfSomeTools) {
  Strings tools;
  for (auto& line : lines(said_by("coretap doctor --json runqlat ext4slower runqlat"))) {
    auto found = Json::parse(line);
    if (found["type"].str() == "tool") tools.push_back(found["tool"].str());
  }
  EXPECT_EQ(tools, (Strings("runqlat fsslower")));
  auto text = said_by("coretap doctor runqlat");
  expect_contains(text, {"\nrunqlat "});
  EXPECT_FALSE(contains(text, "\nbiolatency ")) << text;
  // One tool that cannot run makes it fail, for use in scripts.
  for (auto& name : tool_names()) {
    if (!expected_missing(name)) continue;
    EXPECT_EQ(run_tool("coretap", {"doctor", "runqlat", name}).status, 3) << name;
    break;
  }
}

TOOL_TEST(Common, DoctorWithoutRights) {
  auto result = run_tool("coretap", "doctor --json", as_nobody({}));
  if (result.status >= 126) throw Skip("cannot give up rights here: " + result.err);
  EXPECT_EQ(result.status, 3) << result.err;
  std::size_t tools = 0;
  for (auto& line : lines(result.out)) {
    auto found = Json::parse(line);
    if (found["type"].str() != "tool") continue;
    tools++;
    const auto tool = found["tool"].str();
    const bool loads = has_kernel_program(tool), needs = loads || tool == "perfcount";
    EXPECT_EQ(found["state"].str(), needs ? "cannot" : "runs") << line;
    auto missing = !needs ? "" : loads ? "CAP_BPF" : "CAP_PERFMON";
    EXPECT_TRUE(contains(found["why"].str(), missing)) << line;
  }
  EXPECT_EQ(tools, tool_names().size());
}

TOOL_TEST(Common, CommandsOfCoretap) {
  for (auto& wrong :
       std::vector<Strings>{"list --nonsense", "list --json more", "find", "find --json",
                            "doctor --nonsense", "doctor runqlat nosuchtool", "doctor runqlat list",
                            "help nosuchtool\x1b", "nosuchtool", "nosuchtool\x1b --json"}) {
    SCOPED_TRACE(::testing::PrintToString(wrong));
    auto result = run_tool("coretap", wrong);
    expect_refusal("coretap", result, 2, "hint: ");
    auto command =
        wrong[0] == "list" || wrong[0] == "find" || (wrong[0] == "doctor" && wrong[1] != "runqlat");
    EXPECT_TRUE(contains(result.err, command ? "coretap " + wrong[0] + " --help" : "coretap list"))
        << result.err;
  }
  for (auto* command : {"list", "find", "guide", "doctor", "tplist", "bpflist", "link", "help",
                        "man", "completion", "version", "why", "compare"}) {
    auto help = said_by({"coretap", command, "--help"});
    expect_contains(help, {"Usage: coretap " + std::string(command)});
    EXPECT_EQ(said_by({"coretap", "help", command}), help);
  }
  auto nothing = run_tool("coretap", {});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_TRUE(contains(nothing.err, "Usage: coretap TOOL")) << nothing.err;
  EXPECT_EQ(said_by("coretap --help"), nothing.err);
  auto version = said_by("coretap --version");
  EXPECT_TRUE(version.starts_with("coretap ")) << version;
  EXPECT_EQ(said_by("coretap version"), version);
}

TOOL_TEST(Common, ManualPages) {
  TemporaryDirectory place;
  for (auto& name : tool_names())
    expect_contains(said_by("coretap man --source " + name), {"\n.Nm coretap-" + name + "\n"});
  EXPECT_EQ(run_tool("coretap", "man no-such-tool").status, 2);
  EXPECT_EQ(run_tool("coretap", {"man", "--write", place.path()}).status, 0);
  EXPECT_EQ(run_tool("coretap", "man --source output").out,
            run({"/bin/cat", place.path() + "/man7/coretap-output.7"}).out);
  EXPECT_EQ(run_tool("coretap", "man --write /proc/self/no-such-place").status, 1);
  std::filesystem::remove_all(place.path() + "/man7");
  std::filesystem::remove_all(place.path() + "/man8");
}

TOOL_TEST(Common, Find) {
  // Any case, singular for plural, prefixes of words; the best match comes first.
  auto files = said_by("coretap find FILES opens");
  expect_contains(files, {"Which process opens that file?\n      coretap opensnoop -F\n",
                          "Tools:\n  opensnoop "});
  EXPECT_FALSE(contains(files, "biosnoop")) << files;
  auto locks = said_by("coretap find lock");
  expect_contains(locks, {"wait for locks?"});
  EXPECT_FALSE(contains(locks, "block I/O latency")) << locks;
  expect_contains(said_by("coretap find exit-status"),
                  {"Options:\n      --exit-status\n", "      in all tools\n"});
  expect_refused("coretap find --full-path");
  expect_contains(said_by("coretap find full-path"), {"      in opensnoop\n"});
  // Without a match it exits like grep, and names the list of all tools.
  expect_refusal("coretap", run_tool("coretap", {"find", "file", "qwzx wzxq\x1b"}), 1,
                 "coretap list");
  for (auto* no_word : {"--", "\xc3\xa9", " "})
    expect_refusal("coretap", run_tool("coretap", {"find", "--", no_word}), 1, "coretap list");
  auto elsewhere = said_by("coretap find false sharing");
  EXPECT_TRUE(elsewhere.starts_with("Not in coretap:\n  perf c2c record\n")) << elsewhere;
  auto first = lines(said_by("coretap find --json THP")).at(0);
  EXPECT_EQ(Json::parse(first)["tool"].str(), "hfaults") << first;
  expect_contains(said_by("coretap find huge pages"), {"\nGuide:\n", "  memory "});
}

TOOL_TEST(Common, NamesOfTools) {
  TemporaryDirectory place;
  said_by({"coretap", "link", "--prefix", "ct-", place.path()});
  for (auto& name : tool_names()) {
    auto version = run({place.path() + "/ct-" + name, "--version"});
    EXPECT_TRUE(version.out.starts_with(name + " ")) << version.out << version.err;
  }
  said_by({"coretap", "link", "--remove", "--prefix=other-", place.path()});
  EXPECT_FALSE(std::filesystem::is_empty(place.path()));
  said_by({"coretap", "link", "--remove", place.path()});
  EXPECT_TRUE(std::filesystem::is_empty(place.path()));

  std::filesystem::create_symlink("/nonexistent", place.path() + "/runqlat");
  expect_refused({"coretap", "link", place.path()}, {"--prefix", "runqlat"}, 1);
  for (auto& wrong :
       std::vector<Strings>{"--prefix ct", "--prefix ../-", "--prefix -", "--prefix", "--nonsense",
                            Strings{""}, Strings{place.path(), place.path()}})
    expect_refused("coretap link" + wrong, {"coretap link --help"});
}

TOOL_TEST(Common, CoretapOnAFullDisk) {
  for (auto& arguments : std::vector<Strings>{"list",
                                              "list --json",
                                              "help",
                                              "find file",
                                              "--version",
                                              "man output",
                                              "completion bash",
                                              {"__complete", ""},
                                              "doctor --json"}) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    auto result = run_tool("coretap", arguments, {}, "/dev/full");
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, "No space left")) << result.err;
  }
}

}  // namespace
}  // namespace coretap::tooltest
