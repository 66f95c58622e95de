// One run of each tool, from start to exit, with all checks that must hold on every kernel: it
// attaches, drops its rights, sees exactly the events that happened, exits on request and leaves
// nothing behind. Tools run in batches, so that their waits overlap.
#include <linux/capability.h>

#include "harness.hpp"
#include "rights.hpp"
#include "stress/scene.hpp"

namespace coretap::tooltest {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kBatch = 8;
/// Events that are rare or slow happen as often as the row sets. Samples have to be many.
std::uint64_t events_of(const stress::Row& row) {
  if (row.tolerance > 0) return row.events / 4;
  return std::min<std::uint64_t>(row.events, slowness() > 3 ? 20 : 100);
}

/// 15 bytes: ESC, BEL, newline, quotes, a backslash, and an invalid UTF-8 byte.
constexpr char kLifeName[] = "\\x1b]0;x\\x07\\x0a\"\\\\'<%s|\\xff";
constexpr char kLifeNameJson[] = "\x1b]0;x\x07\n\"\\'<%s|\xef\xbf\xbd";

/// If the number of events is unknown: some are shown.
void show_data(const std::string& tool) {
  auto events = events_for(tool);
  auto result = result_of(tool + " --json --exit-status" + events.options + "--" + events.command);
  if (result.status == 77) throw Skip("no events of " + tool + " here: " + result.err);
  if (auto why = expected_missing(tool); why && result.status == 3) throw Skip(*why);
  ASSERT_EQ(result.status, 0) << result.err;
  auto report = parse_report(result.out, result.err);
  expect_complete(tool, report);
  EXPECT_FALSE(report.body.empty()) << result.out;
  EXPECT_GT(report.ledger["shown"].u64(), 0u) << result.out;
}

class Lived {
 public:
  explicit Lived(const ToolTests& tests) : tests_(tests) {}

  // The steps of a run; those of a batch are in step.
  void start(int cpu);
  void attach();
  void work();
  void interrupt();
  bool ended();
  /// Checks everything.
  void judge();

  /// Runs a step, unless the run has ended.
  template <class Step>
  void run(const Step& step) {
    if (over()) return;
    auto begun = Clock::now();
    try {
      step();
    } catch (const Skip& skip) {
      skip_ = skip.what();
    } catch (const std::exception& e) {
      wrong_ = e.what();
    }
    took_ += Clock::now() - begun;
  }
  bool over() const { return !wrong_.empty() || !skip_.empty(); }
  std::chrono::duration<double> took() const { return took_; }

 private:
  void expect_rights_given_up(const Report& report) const;
  void expect_names(const Report& report);
  void expect_user_stacks(const Report& report) const;

  const ToolTests& tests_;
  std::optional<stress::Scene> scene_;
  std::unique_ptr<Tracer> tracer_;
  std::string skip_, wrong_;
  bool counted_ = false;  ///< its workload could make its events, and print their number
  std::map<std::string, std::uint64_t> capabilities_;
  std::string status_;
  BpfIds held_;
  Clock::time_point interrupted_, ended_;
  std::chrono::duration<double> took_{};
};

void Lived::start(int cpu) {
  auto& row = tests_.stress;
  Strings options("--json");
  try {
    scene_.emplace(row, stress::Scene::Size{.events = events_of(row),
                                            .workloads = 1,
                                            .first_cpu = cpu,
                                            .more = {"--comm", kLifeName}});
    options = scene_->options() + tests_.user_stacks;
  } catch (const Skip&) {  // the tool runs anyway
    options = options + row.options + Strings{"--pid", std::to_string(::getpid())};
  }
  tracer_ = std::make_unique<Tracer>(tests_.name, options, Tracer::How{.attached = false});
}

void Lived::attach() {
  auto& process = tracer_->process();
  auto why = expected_missing(tests_.name);
  if (!tracer_->attached()) {
    auto status = process.wait();
    if (why && status == 3) throw Skip(*why);
    throw std::runtime_error("ended with " + std::to_string(status) + ": " + process.err());
  }
  if (why) throw std::runtime_error("runs, but is expected to be missing " + *why);
  for (auto* set : {"CapPrm", "CapEff", "CapInh", "CapAmb"})
    capabilities_[set] = capabilities_of(process.pid(), set);
  status_ = slurp("/proc/" + std::to_string(process.pid()) + "/status");
  held_ = bpf_ids(process.pid());
  note_that_it_runs(tests_.name);
}

void Lived::work() {
  if (!scene_) return;
  try {
    scene_->release();
    scene_->finish();
    scene_->truth();
    counted_ = true;
  } catch (const Skip&) {
  }
}

void Lived::interrupt() {
  if (scene_) scene_->traced_until_now();
  interrupted_ = Clock::now();
  tracer_->process().signal(SIGINT);
}

bool Lived::ended() {
  if (ended_ == Clock::time_point{} && tracer_->process().ended()) ended_ = Clock::now();
  return ended_ != Clock::time_point{};
}

// Root's rights, too.
void Lived::expect_rights_given_up(const Report& report) const {
  auto kept = capabilities_.at("CapEff"), reserve = capabilities_.at("CapPrm") & ~kept;
  EXPECT_EQ(capabilities_.at("CapInh"), 0u);
  EXPECT_EQ(capabilities_.at("CapAmb"), 0u);
  EXPECT_TRUE(contains(status_, "NoNewPrivs:\t1")) << status_;
  // Capabilities that kernels before 5.19 require at each map lookup, and those for other
  // processes' files and memory.
  std::uint64_t allowed = 1ULL << CAP_BPF;
  for (auto& right : asked_by(tests_.name))
    if (right.number == CAP_SYS_PTRACE)
      allowed |=
          1ULL << CAP_SYS_PTRACE | 1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_CHECKPOINT_RESTORE;
  // For clocks of CPUs that come online later; Debian's kernels have a value that requires more.
  const bool for_admin = std::stoi(slurp("/proc/sys/kernel/perf_event_paranoid")) > 2;
  for (auto& hook : report.header["hooks"].items())
    for (auto& target : hook["attached"].strings())
      if (target.starts_with("perf_event/")) {
        allowed |= 1ULL << CAP_PERFMON;
        if (for_admin) reserve &= ~(1ULL << CAP_SYS_ADMIN);
      }
  EXPECT_EQ(kept & ~allowed, 0u) << std::hex << kept;
  EXPECT_EQ(reserve, 0u) << std::hex << reserve;
}

/// The workload's name comes from an untrusted user.
void Lived::expect_names(const Report& report) {
  bool any = false, named = false;
  auto pid = static_cast<std::uint64_t>(scene_->loads().front()->workload().pid());
  for (auto& line : report.body) {
    if (!line.has("comm") || !line["comm"].is_string()) continue;
    any = true;
    auto comm = line["comm"].str();
    named |= comm == kLifeNameJson;
    if (line.has("pid") && line["pid"].is_count() && line["pid"].u64() == pid) {
      EXPECT_EQ(comm, kLifeNameJson);
    }
  }
  EXPECT_EQ(any, named) << "no line has the workload's name";
}

/// A kernel that has no memory for a walk has none for all of them.
void Lived::expect_user_stacks(const Report& report) const {
  if (tests_.user_stacks.empty()) return;
  bool found = false;
  for (auto& line : report.body) found |= !line["user_stack"].items().empty();
  EXPECT_TRUE(found) << "no user stack has a frame";
}

void Lived::judge() {
  if (!wrong_.empty()) FAIL() << wrong_;
  if (!skip_.empty()) throw Skip(skip_);
  auto& process = tracer_->process();
  auto status = process.wait(0ms);
  auto ending = std::chrono::duration_cast<std::chrono::milliseconds>(ended_ - interrupted_);
  ::testing::Test::RecordProperty("ending_ms", static_cast<int>(ending.count()));
  EXPECT_LE(ending, ends_within()) << "took long to end";
  // Where tracepoints can be preempted, the kernel sometimes skips a program; the tool reports it.
  EXPECT_TRUE(status == 0 || (status == 4 && contains(process.err(), "missed: BPF program")))
      << status << ": " << process.err();
  EXPECT_TRUE(safe_for_terminals(process.err()));
  auto report = parse_report(process.out(), process.err());
  expect_complete(tests_.name, report);
  expect_rights_given_up(report);
  EXPECT_GT(held_.programs.size(), 0u);
  EXPECT_EQ(bpf_left(held_), Strings{}) << "left behind in the kernel";
  if (!counted_) return show_data(tests_.name);
  scene_->judge(process.out());
  expect_names(report);
  expect_user_stacks(report);
}

// ---- batches ----

/// The tools whose tests this process runs, by filters and shards.
Strings wanted() {
  Strings tools;
  auto* all = ::testing::UnitTest::GetInstance();
  auto* suite = all->current_test_info()->test_suite_name();
  for (int i = 0; i < all->total_test_suite_count(); i++) {
    auto* one = all->GetTestSuite(i);
    if (std::string_view(one->name()) != suite) continue;
    for (int j = 0; j < one->total_test_count(); j++) {
      std::string name = one->GetTestInfo(j)->name();
      if (one->GetTestInfo(j)->should_run()) tools.push_back(name.substr(name.find('/') + 1));
    }
  }
  return tools;
}

bool is_snapshot(const ToolTests& tests) { return tests.stress.workload.empty(); }
/// Its workload uses up the machine's memory, or a resource that exists once.
bool is_alone(const ToolTests& tests) {
  return tests.events.in_turns || tests.stress.workloads == 1;
}

/// The tools that run beside this one.
Strings batch_of(const std::string& tool) {
  if (is_alone(tests_of(tool))) return {tool};
  Strings batch;
  bool mine = false;
  for (auto& name : wanted()) {
    auto& tests = tests_of(name);
    if (is_alone(tests) || is_snapshot(tests)) continue;
    if (batch.size() == kBatch) {
      if (mine) return batch;
      batch.clear();
    }
    batch.push_back(name);
    mine |= name == tool;
  }
  return batch;
}

using Lives = std::map<std::string, std::unique_ptr<Lived>>;

void live(const Strings& batch, Lives& lives) {
  std::vector<Lived*> all;
  for (auto& name : batch)
    all.push_back((lives[name] = std::make_unique<Lived>(tests_of(name))).get());
  int cpu = 0;
  for (auto* one : all) one->run([&] { one->start(cpu++); });
  for (auto* one : all) one->run([&] { one->attach(); });
  for (auto* one : all) one->run([&] { one->work(); });
  for (auto* one : all) one->run([&] { one->interrupt(); });
  auto over = [](Lived* one) {
    bool ended = true;
    one->run([&] { ended = one->ended(); });
    return ended;
  };
  until([&] { return std::count_if(all.begin(), all.end(), over) == std::ssize(all); });
}

TOOL_SUITE(Life, (tool_names()));

TOOL_TEST_P(Life, SeenIsWhatHappened, tool) {
  if (is_snapshot(tests_of(tool))) return show_data(tool);
  static Lives lives;
  if (!lives.contains(tool)) live(batch_of(tool), lives);
  auto mine = std::move(lives.extract(tool).mapped());
  ::testing::Test::RecordProperty("own_ms", static_cast<int>(1000 * mine->took().count()));
  mine->judge();
}

}  // namespace
}  // namespace coretap::tooltest
