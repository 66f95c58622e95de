// Tools under adverse conditions: one of each kind of report, or all (CORETAP_ALL_TOOLS=1). For
// normal conditions see tests/tools/life_test.cpp. CORETAP_STRESS_SCALE multiplies the events;
// CORETAP_GUEST=1: tests may change this machine.
#include <sys/prctl.h>

#include "scene.hpp"
#include "tools/harness.hpp"

namespace coretap::stress {
namespace {

using namespace std::chrono_literals;
using namespace tooltest;

double scale() {
  auto* wanted = ::getenv("CORETAP_STRESS_SCALE");
  return (wanted ? std::strtod(wanted, nullptr) : 1) / (slowness() > 3 ? 5 : 1);
}
bool is_long() { return ::getenv("CORETAP_STRESS_SCALE") != nullptr; }

std::chrono::milliseconds suspension() { return is_long() ? 3000ms : 1000ms; }

// ---- one tool under one condition ----

/// One workload on each CPU, each with this fraction of the row's events.
Scene set(const Row& row, double part = 1) {
  auto events = std::llround(static_cast<double>(row.events) * scale() * part);
  return {row,
          {.events = std::max<std::uint64_t>(2, static_cast<std::uint64_t>(events)),
           .workloads = row.workloads}};
}

void expect_data_lost(const Outcome& o) {
  if (o.seen() == o.shown && !o.missed) throw Wrong("all of it had room: " + o.sum());
}

/// After it was asked to end.
Outcome finish(Scene& scene, Tracer& tracer) {
  int status = tracer.process().wait(3 * kPatience);
  if (status) throw Wrong("exit status " + std::to_string(status) + ": " + tracer.process().err());
  return scene.judge(tracer.process().out());
}

Outcome stop(Scene& scene, Tracer& tracer) {
  tracer.process().signal(SIGINT);
  return finish(scene, tracer);
}

// ---- conditions ----

/// Processes that only start and exit, four at a time.
class Churn {
 public:
  Churn() {
    for (auto& pid : pids_) {
      pid = ::fork();
      if (pid == 0) churn();
    }
  }
  ~Churn() {
    for (auto pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

 private:
  [[noreturn]] static void churn() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
      pid_t pid = ::fork();
      if (pid == 0) ::_exit(0);
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
  }
  pid_t pids_[4];
};

/// The result of `before` is kept until the tool has ended; `during` runs while the workloads run.
template <class Before, class During>
Outcome in_trouble(const Row& row, Before before, During during) {
  auto scene = set(row);
  Tracer tracer(row.tool, scene.options());
  [[maybe_unused]] auto trouble = before(tracer.process());
  scene.release();
  during(tracer.process());
  scene.finish();
  return stop(scene, tracer);
}

// The ring is not read meanwhile: whatever does not fit is lost.
Outcome tiny(const Row& row) {
  if (row.tiny.empty()) throw Skip("counters");
  auto scene = set(row);
  Tracer tracer(row.tool, scene.options(row.tiny));
  tracer.process().signal(SIGSTOP);
  scene.release();
  scene.finish();
  tracer.process().signal(SIGCONT);
  auto o = stop(scene, tracer);
  // Rare events may be too few to fill a ring.
  if (row.events >= 100) expect_data_lost(o);
  return o;
}

Outcome suspended(const Row& row) {
  return in_trouble(
      row, [](Process& tool) { return tool.signal(SIGSTOP), nullptr; },
      [](Process& tool) {
        nap(suspension());
        tool.signal(SIGCONT);
      });
}

Outcome unread(const Row& row) {
  return in_trouble(
      row, [](Process& tool) { return tool.read_stdout(false), nullptr; },
      [](Process& tool) {
        nap(suspension());
        tool.read_stdout(true);
      });
}

Outcome short_lived(const Row& row) {
  return in_trouble(
      row, [](Process&) { return std::make_unique<Churn>(); }, [](Process&) {});
}

// All of the report, or a message and exit status 1.
Outcome full_disk(const Row& row) {
  constexpr std::size_t kRoom = 4096;
  Mounted disk("tmpfs", "size=65536");
  {
    std::ofstream most(disk.path() + "/most");
    most << std::string(65536 - kRoom, 'x') << std::flush;
    if (!most) throw Wrong("no room on a new disk");
  }
  auto path = disk.path() + "/report";
  auto scene = set(row);
  Tracer tracer(row.tool, scene.options(), {.stdout_path = path, .attached = false});
  auto& process = tracer.process();
  auto attached = [&](auto&, auto&) { return contains(slurp(path), "\"header\""); };
  if (!process.await(attached)) throw Wrong("does not start: " + process.err());
  scene.release();
  scene.finish();
  // It must end on its own when the disk is full; after a signal it might not print the cause.
  auto full = [&] { return std::filesystem::file_size(path) >= kRoom; };
  for (int i = 0; i < 5 * slowness() && !full(); i++) std::this_thread::sleep_for(100ms);
  if (!full()) process.signal(SIGINT);
  int status = process.wait();
  if (status == 0) return scene.judge(slurp(path));
  if (status != 1 || !contains(process.err(), "No space left"))
    throw Wrong("exit status " + std::to_string(status) + ": " + process.err());
  Outcome o;
  o.reason = "told";
  return o;
}

/// Memory of a process and of the kernel's maps that it holds.
std::uint64_t memory_of(pid_t pid) {
  auto directory = "/proc/" + std::to_string(pid);
  std::uint64_t kb = 0, locked = 0;
  std::istringstream status(slurp(directory + "/status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) kb = std::stoull(line.substr(6));
  for (auto& entry : std::filesystem::directory_iterator(directory + "/fdinfo")) {
    std::istringstream lines(slurp(entry.path()));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("memlock:")) locked += std::stoull(line.substr(8));
  }
  return kb * 1024 + locked;
}

Outcome copies(const Row& row) {
  constexpr std::uint64_t kMost = 128 << 20;
  const int count = slowness() > 3 ? 4 : is_long() ? 24 : row.copies;
  auto scene = set(row, 0.25);  // each copy reads each event
  std::vector<std::unique_ptr<Tracer>> tracers;
  tracers.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; i++)
    tracers.push_back(
        std::make_unique<Tracer>(row.tool, scene.options(), Tracer::How{.attached = false}));
  for (auto& tracer : tracers)
    if (!tracer->attached()) throw Wrong("one of many does not start: " + tracer->process().err());
  scene.release();
  scene.finish();
  std::uint64_t largest = 0;
  for (auto& tracer : tracers) {
    largest = std::max(largest, memory_of(tracer->process().pid()));
    tracer->process().signal(SIGINT);
  }
  Outcome first;
  for (auto& tracer : tracers) {
    auto o = finish(scene, *tracer);
    if (tracer == tracers.front()) first = o;
  }
  if (largest > kMost) throw Wrong("one of them takes " + std::to_string(largest) + " bytes");
  first.reason = std::to_string(largest >> 20) + " MiB each";
  return first;
}

void only_in_guests() {
  if (!in_guest()) throw Skip("host");
}

Outcome reused_pids(const Row& row) {
  only_in_guests();
  struct Few {
    Setting small{"/proc/sys/kernel/pid_max", "400"};
    Churn churn;
  };
  return in_trouble(
      row, [](Process&) { return std::make_unique<Few>(); }, [](Process&) {});
}

void step_clock(std::int64_t seconds) {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += seconds;
  ::clock_settime(CLOCK_REALTIME, &t);
}

Outcome stepped_clock(const Row& row) {
  only_in_guests();
  return in_trouble(
      row, [](Process&) { return nullptr; },
      [](Process&) {
        for (int i = 0; i < 4; i++) {
          step_clock(i % 2 ? -3600 : 3600);
          nap(50ms);
        }
      });
}

Outcome cpu_goes(const Row& row) {
  only_in_guests();
  const std::string online = "/sys/devices/system/cpu/cpu1/online";
  if (::access(online.c_str(), W_OK)) throw Skip("fixed");
  return in_trouble(
      row, [](Process&) { return nullptr; },
      [&](Process&) {
        Setting off(online, "0");
        nap(200ms);
      });
}

struct Trouble {
  const char* name;
  Outcome (*with)(const Row&);
};
constexpr Trouble kTroubles[] = {
    {"tiny", tiny},
    {"suspended", suspended},
    {"unread", unread},
    {"short_lived", short_lived},
    {"full_disk", full_disk},
    {"copies", copies},
    {"reused_pids", reused_pids},
    {"stepped_clock", stepped_clock},
    {"cpu_goes", cpu_goes},
};

// ---- the table ----

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return all + '"';
}

void record(const Outcome& o) {
  std::string line =
      "{\"tool\":" + quoted(o.tool) + ",\"trouble\":" + quoted(o.trouble) +
      ",\"result\":" + quoted(o.result) + ",\"reason\":" + quoted(o.reason) +
      ",\"truth\":" + std::to_string(o.truth) + ",\"shown\":" + std::to_string(o.shown) +
      ",\"missed\":" + std::to_string(o.missed) + ",\"seconds\":" + std::to_string(o.seconds);
  for (auto& [cause, count] : o.not_shown) line += ",\"" + cause + "\":" + std::to_string(count);
  line += "}\n";
  std::printf("%s", line.c_str());
}

Outcome outcome(const Row& row, const Trouble& trouble) {
  Outcome o;
  try {
    if (row.workload.empty()) throw Skip("snapshots");
    if (row.uncounted) throw Skip("uncounted");
    require_tool(row.tool);
    o = trouble.with(row);
    o.result = "ok";
  } catch (const Skip& skip) {
    o.result = "skip";
    o.reason = skip.what();
  } catch (const std::exception& e) {
    o.result = "FAILED";
    o.reason = e.what();
  }
  return o;
}

using Cell = std::tuple<std::string, Trouble>;

class Stress : public ::testing::TestWithParam<Cell> {};

std::string name_of(const ::testing::TestParamInfo<Cell>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
}

/// Of each kind of report the tool that sees the most events, runs in seconds, and allows buffers
/// that are too small; or all.
Strings chosen() {
  constexpr std::uint64_t kMost = 20'000;
  if (with_all_tools()) return tool_names();
  std::map<ReportKind, const Row*> most;
  for (auto& [name, tests] : declared_tests()) {
    auto& row = tests.stress;
    if (row.tiny.empty() || row.uncounted || row.events > kMost) continue;
    if (expected_missing(name)) continue;
    auto& best = most[tests.reports.at(0).kind];
    if (!best || row.events > best->events) best = &row;
  }
  Strings tools;
  for (auto& [kind, row] : most) tools.push_back(row->tool);
  return tools;
}

INSTANTIATE_TEST_SUITE_P(Tools, Stress,
                         ::testing::Combine(::testing::ValuesIn(chosen()),
                                            ::testing::ValuesIn(kTroubles)),
                         name_of);

TEST_P(Stress, SeenIsWhatHappened) {
  auto& [tool, trouble] = GetParam();
  auto began = now_ns();
  auto o = outcome(tests_of(tool).stress, trouble);
  o.tool = tool;
  o.trouble = trouble.name;
  o.seconds = static_cast<double>(now_ns() - began) / 1e9;
  record(o);
  if (o.result == "skip") GTEST_SKIP() << o.reason;
  EXPECT_EQ(o.result, "ok") << o.reason;
}

// After a command's process ends, another process gets its PID.
TOOL_TEST(StressFollow, ReusedPids) {
  only_in_guests();
  require_tool("opensnoop");
  Setting small("/proc/sys/kernel/pid_max", "400");
  Tracer tracer("opensnoop", {"--json", "--", "sh", "-c",
                              "i=0; while [ $i -lt 100 ]; do (:); i=$((i+1)); done; sleep 3"});
  Process others({.argv = {"sh", "-c", "while :; do (exec 3</dev/null); done"}});
  auto report = tracer.finish();
  std::uint64_t wrong = 0;
  for (auto& event : report.body)
    if (!event["path"].is_null() && event["path"].str() == "/dev/null") wrong++;
  EXPECT_EQ(wrong, 0u) << "events of others that have the pids of the command's children";
}

}  // namespace
}  // namespace coretap::stress
