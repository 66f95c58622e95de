// Every tool in every kind of trouble. CORETAP_STRESS_CELLS: a file that gets a line for each cell;
// CORETAP_STRESS_SCALE: this many times the events; CORETAP_GUEST=1: this machine is ours to
// change.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cells.hpp"

namespace coretap::stress {
namespace {

using namespace std::chrono_literals;
using tooltest::Cgroup;
using tooltest::contains;
using tooltest::in_guest;
using tooltest::Setting;
using tooltest::Skip;
using tooltest::slowness;
using tooltest::slurp;
using tooltest::Tracer;

double scale() {
  auto* wanted = ::getenv("CORETAP_STRESS_SCALE");
  return (wanted ? std::strtod(wanted, nullptr) : 1) / (slowness() > 3 ? 5 : 1);
}
bool is_long() { return ::getenv("CORETAP_STRESS_SCALE") != nullptr; }

std::chrono::milliseconds suspension() { return is_long() ? 3000ms : 1000ms; }

std::uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// ---- one cell ----

/// The workloads, held, and how a tool is given them.
struct Scene {
  explicit Scene(const Row& of) : row(of) {
    if (row.by_cgroup) cgroup.emplace();
    auto events = std::max<std::uint64_t>(
        2, static_cast<std::uint64_t>(std::llround(static_cast<double>(row.events) * scale())));
    for (int i = 0; i < row.workloads; i++) {
      loads.push_back(std::make_unique<Load>(row.workload, row.arguments(events), i % cpus()));
      if (cgroup) cgroup->add(loads.back()->workload().pid());
    }
  }
  static int cpus() { return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)); }

  Strings options(const Strings& more = {}) {
    Strings all{"--json"};
    all.insert(all.end(), row.options.begin(), row.options.end());
    all.insert(all.end(), more.begin(), more.end());
    if (cgroup) {
      all.insert(all.end(), {"--cgroup", cgroup->path()});
      return all;
    }
    std::string pids;
    for (auto& load : loads)
      for (auto& pid : row.pids ? row.pids(*load) : Strings{load->workload().id()})
        pids += (pids.empty() ? "" : ",") + pid;
    all.insert(all.end(), {"-p", pids});
    return all;
  }

  void release() {
    if (!row.kernel_event.empty()) trace.emplace(row.kernel_event);  // as the tool: not their start
    began_ns = now_ns();
    for (auto& load : loads) load->release();
  }
  void finish() {
    for (auto& load : loads) load->finish();
    if (trace) trace->stop();
    ended_ns = now_ns();
  }
  std::uint64_t truth() {
    std::uint64_t sum = 0;
    for (auto& load : loads)
      sum += trace ? trace->lines(load->workload().pid()).size() : row.truth(*load);
    if (!sum) throw Skip("none-here");
    return sum;
  }

  const Row& row;
  std::optional<Cgroup> cgroup;
  std::optional<tooltest::Trace> trace;
  std::vector<std::unique_ptr<Load>> loads;
  std::uint64_t began_ns = 0, ended_ns = 0;
};

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Nothing happened before the workloads were released, nor took longer than they did.
void check_times(const Scene& scene, const Json& line) {
  constexpr std::uint64_t kSlack = 5'000'000'000;  // what still went on when they had ended
  auto last = (scene.ended_ns ? scene.ended_ns : now_ns()) + kSlack, span = last - scene.began_ns;
  auto check = [&](const char* key, std::uint64_t least, std::uint64_t most) {
    if (!line.has(key) || line[key].is_null()) return;
    auto value = line[key].u64();
    if (value < least || value > most)
      throw Wrong(std::string(key) + " is " + std::to_string(value) + ", not within " +
                  std::to_string(least) + " to " + std::to_string(most));
  };
  if (line["type"].str() == "event") check("monotonic_ns", scene.began_ns, last);
  check("latency_ns", 0, span);
  if (line.has("count") && line.has("total_ns")) check("total_ns", 0, line["count"].u64() * span);
}

/// What a tool printed, against the truth.
Outcome judge(Scene& scene, const std::string& out) {
  Outcome o;
  o.truth = scene.truth();
  auto ledger = tooltest::read_report(out, [&](const Json& line) {
    check_times(scene, line);
    o.shown += scene.row.shown(line);
  });
  for (auto* cause : kNotShown) o.not_shown[cause] = ledger[cause].u64();
  o.missed = ledger["missed"].u64();
  auto seen = static_cast<double>(o.seen()), truth = static_cast<double>(o.truth);
  // The kernel counts what it skipped for all tasks.
  auto most = truth * (1 + scene.row.tolerance) + (scene.row.tolerance > 0 ? 20 : 0) +
              static_cast<double>(scene.row.slack * static_cast<unsigned>(scene.row.workloads));
  auto least = truth * (1 - scene.row.tolerance) - static_cast<double>(o.missed);
  // An emulated CPU that waits for its host takes several ticks of a clock for one.
  if (scene.row.tolerance > 0 && slowness() > 3) {
    least = 1;
    o.reason = "no lower bound";
  }
  if (seen < least || seen > most) throw Wrong(o.sum());
  return o;
}

void expect_data_lost(const Outcome& o) {
  if (o.seen() == o.shown && !o.missed) throw Wrong("all of it had room: " + o.sum());
}

/// Once it has been told to end.
Outcome finish(Scene& scene, Tracer& tracer) {
  int status = tracer.process().wait(3 * tooltest::kPatience);
  if (status) throw Wrong("exit status " + std::to_string(status) + ": " + tracer.process().err());
  return judge(scene, tracer.process().out());
}

Outcome stop(Scene& scene, Tracer& tracer) {
  tracer.process().signal(SIGINT);
  return finish(scene, tracer);
}

// ---- kinds of trouble ----

/// Processes that only start and exit, by four at a time.
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

/// A number in a file, for the time of this object's life.
Outcome saturation(const Row& row) {
  Scene scene(row);
  Tracer tracer(row.tool, scene.options());
  scene.release();
  scene.finish();
  return stop(scene, tracer);
}

// The ring is not emptied meanwhile: what does not fit is lost for certain.
Outcome tiny(const Row& row) {
  if (row.tiny.empty()) throw Skip("counters");
  Scene scene(row);
  Tracer tracer(row.tool, scene.options(row.tiny));
  tracer.process().signal(SIGSTOP);
  scene.release();
  scene.finish();
  tracer.process().signal(SIGCONT);
  auto o = stop(scene, tracer);
  // A ring that is full is a matter of numbers: of rare events there may be too few.
  if (row.events >= 100) expect_data_lost(o);
  return o;
}

Outcome suspended(const Row& row) {
  Scene scene(row);
  Tracer tracer(row.tool, scene.options());
  tracer.process().signal(SIGSTOP);
  scene.release();
  std::this_thread::sleep_for(suspension());
  tracer.process().signal(SIGCONT);
  scene.finish();
  return stop(scene, tracer);
}

Outcome unread(const Row& row) {
  Scene scene(row);
  Tracer tracer(row.tool, scene.options());
  tracer.process().read_stdout(false);
  scene.release();
  std::this_thread::sleep_for(suspension());
  tracer.process().read_stdout(true);
  scene.finish();
  return stop(scene, tracer);
}

Outcome short_lived(const Row& row) {
  Scene scene(row);
  Tracer tracer(row.tool, scene.options());
  Churn churn;
  scene.release();
  scene.finish();
  return stop(scene, tracer);
}

// All of the report, or a message and exit status 1.
Outcome full_disk(const Row& row) {
  constexpr std::size_t kRoom = 4096;
  tooltest::Mounted disk("tmpfs", "size=65536");
  {
    std::ofstream most(disk.path() + "/most");
    most << std::string(65536 - kRoom, 'x') << std::flush;
    if (!most) throw Wrong("no room on a new disk");
  }
  auto path = disk.path() + "/report";
  Scene scene(row);
  Tracer tracer(row.tool, scene.options(), {.stdout_path = path, .attached = false});
  auto& process = tracer.process();
  auto attached = [&](auto&, auto&) { return contains(slurp(path), "\"header\""); };
  if (!process.await(attached)) throw Wrong("does not start: " + process.err());
  scene.release();
  scene.finish();
  // It ends by itself where it finds no room; told so meanwhile, it might not say why.
  auto full = [&] { return std::filesystem::file_size(path) >= kRoom; };
  for (int i = 0; i < 5 * slowness() && !full(); i++) std::this_thread::sleep_for(100ms);
  if (!full()) process.signal(SIGINT);
  int status = process.wait();
  if (status == 0) return judge(scene, slurp(path));
  if (status != 1 || !contains(process.err(), "No space left"))
    throw Wrong("exit status " + std::to_string(status) + ": " + process.err());
  Outcome o;
  o.reason = "told";
  return o;
}

/// Bytes of a process and of the kernel's maps that it holds.
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
  Scene scene(row);
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
  Scene scene(row);
  Tracer tracer(row.tool, scene.options());
  Setting small("/proc/sys/kernel/pid_max", "400");
  Churn churn;
  scene.release();
  scene.finish();
  return stop(scene, tracer);
}

void step_clock(std::int64_t seconds) {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += seconds;
  ::clock_settime(CLOCK_REALTIME, &t);
}

Outcome stepped_clock(const Row& row) {
  only_in_guests();
  Scene scene(row);
  Tracer tracer(row.tool, scene.options());
  scene.release();
  for (int i = 0; i < 4; i++) {
    step_clock(i % 2 ? -3600 : 3600);
    std::this_thread::sleep_for(50ms);
  }
  scene.finish();
  return stop(scene, tracer);
}

Outcome cpu_goes(const Row& row) {
  only_in_guests();
  const std::string online = "/sys/devices/system/cpu/cpu1/online";
  if (::access(online.c_str(), W_OK)) throw Skip("fixed");
  Scene scene(row);
  Tracer tracer(row.tool, scene.options());
  scene.release();
  {
    Setting off(online, "0");
    std::this_thread::sleep_for(200ms);
  }
  scene.finish();
  return stop(scene, tracer);
}

struct Trouble {
  const char* name;
  Outcome (*with)(const Row&);
};
constexpr Trouble kTroubles[] = {
    {"saturation", saturation},
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
      ",\"missed\":" + std::to_string(o.missed) + ",\"attempts\":" + std::to_string(o.attempts) +
      ",\"seconds\":" + std::to_string(o.seconds);
  for (auto& [cause, count] : o.not_shown) line += ",\"" + cause + "\":" + std::to_string(count);
  line += "}\n";
  std::printf("%s", line.c_str());
  if (auto* path = ::getenv("CORETAP_STRESS_CELLS")) {
    int fd = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    (void)!::write(fd, line.data(), line.size());
    ::close(fd);
  }
}

// Where the kernel leaves tracepoints out now and then a cell may be tried again; guests never do.
Outcome tried(const Row& row, const Trouble& trouble) {
  const int most = in_guest() ? 1 : 5;
  const auto began = now_ns();
  for (int attempt = 1;; attempt++) {
    try {
      auto o = trouble.with(row);
      o.attempts = attempt;
      o.result = "ok";
      return o;
    } catch (const Skip& skip) {
      Outcome o;
      o.result = "skip";
      o.reason = skip.what();
      return o;
    } catch (const std::exception& e) {
      std::printf("%s, %s, attempt %d: %s\n", row.tool.c_str(), trouble.name, attempt, e.what());
      if (attempt < most && now_ns() - began < 20'000'000'000) continue;
      Outcome o;
      o.result = "FAILED";
      o.reason = e.what();
      o.attempts = attempt;
      return o;
    }
  }
}

using Cell = std::tuple<std::string, Trouble>;

class Stress : public ::testing::TestWithParam<Cell> {};

std::string name_of(const ::testing::TestParamInfo<Cell>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Tools, Stress,
                         ::testing::Combine(::testing::ValuesIn(tooltest::tool_names()),
                                            ::testing::ValuesIn(kTroubles)),
                         name_of);

TEST_P(Stress, SeenIsWhatHappened) {
  auto& [tool, trouble] = GetParam();
  auto& row = tooltest::tests_of(tool).stress;
  Outcome o;
  auto began = now_ns();
  try {
    if (row.workload.empty()) throw Skip("snapshots");
    tooltest::require_tool(tool);
    o = tried(row, trouble);
  } catch (const Skip& skip) {
    o.result = "skip";
    o.reason = skip.what();
  }
  o.tool = tool;
  o.trouble = trouble.name;
  o.seconds = static_cast<double>(now_ns() - began) / 1e9;
  record(o);
  if (o.result == "skip") GTEST_SKIP() << o.reason;
  EXPECT_EQ(o.result, "ok") << o.reason;
}

// A command's process ends, and somebody else's has its number.
TOOL_TEST(StressFollow, ReusedPids) {
  only_in_guests();
  tooltest::require_tool("opensnoop");
  Setting small("/proc/sys/kernel/pid_max", "400");
  Tracer tracer("opensnoop", {"--json", "--", "sh", "-c",
                              "i=0; while [ $i -lt 100 ]; do (:); i=$((i+1)); done; sleep 3"});
  tooltest::Process others({.argv = {"sh", "-c", "while :; do (exec 3</dev/null); done"}});
  auto report = tracer.finish();
  std::uint64_t wrong = 0;
  for (auto& event : report.body)
    if (!event["path"].is_null() && event["path"].str() == "/dev/null") wrong++;
  EXPECT_EQ(wrong, 0u) << "events of others that have the pids of the command's children";
}

}  // namespace
}  // namespace coretap::stress
