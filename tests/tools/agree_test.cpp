// Tools that observe the same events by different means at the same time: their counts agree
// exactly, and times taken at different points are ordered as the points are.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t signed_sum(const std::vector<Json>& lines, const char* key) {
  return static_cast<std::int64_t>(sum(lines, key));
}

/// Several tools, each under a name for this test.
class Tools {
 public:
  void start(const std::string& key, const std::string& tool, const Strings& options) {
    require_tool(tool);
    running_[key] = std::make_unique<Tracer>(tool, "--json" + options);
  }
  void stop() {
    for (auto& [key, tracer] : running_) reports_.emplace(key, tracer->stop());
    for (auto& [key, report] : reports_) {
      for (auto* cause : {"lost", "untracked"})
        EXPECT_EQ(report.lost(cause), 0u) << key << ": " << cause;
      EXPECT_LE(report.lost("unmatched"), report.unreported) << key;
    }
  }
  const Report& operator[](const std::string& key) const { return reports_.at(key); }
  /// Events that both together may miss: at tracepoints that can be preempted (syscalls, in new
  /// kernels) the kernel sometimes skips a program, and the tool reports how often.
  std::uint64_t missed(const std::string& a, const std::string& b) const {
    return reports_.at(a).lost("missed") + reports_.at(b).lost("missed");
  }

 private:
  std::map<std::string, std::unique_ptr<Tracer>> running_;
  std::map<std::string, Report> reports_;
};

// ---- one thread's time: on a CPU, waiting for one, blocked ----

/// The kernel's accounting of a process's first thread.
using Account = stress::Rest::Thread;
stress::Rest at_rest(const Workload& workload) { return stress::Rest::of(workload.pid()); }

struct Sum {
  std::int64_t ns = 0, count = 0;
};
bool is_blocked(const Json& line) { return !line["runnable"].boolean(); }

template <class Condition>
Sum sum_where(const Report& report, Condition condition) {
  auto lines = lines_where(report, [&](auto& line) {
    // Other tools show only waits that have ended.
    return !(line.has("still_waiting") && line["still_waiting"].boolean()) && condition(line);
  });
  return {signed_sum(lines, "total_ns"), signed_sum(lines, "count")};
}
Sum sum_all(const Report& report) {
  return sum_where(report, [](auto&) { return true; });
}

/// Calls that started and ended while traced.
Sum calls_of(const Report& report, const std::string& name) {
  auto calls = lines_where(report, [&](auto& line) {
    return line["type"].str() == "call" && line["syscall"].str() == name &&
           !line["latency_ns"].is_null() && !line["result"].is_null();
  });
  return {signed_sum(calls, "latency_ns"), std::ssize(calls)};
}

constexpr std::int64_t kFrequency = 199;

// All trace the main thread of one process, which blocks in reads of a pipe, and then shares a CPU
// with two others. It sleeps when tracing starts and ends, so all switches in between are complete:
// one block more than those that ended, the last.
//
// Each tool reads the clock itself, one after another in the same tracepoint: for each event they
// differ by at most the run time of the others' programs, including stack walks.
TOOL_TEST(Agree, TimesOfAThread) {
  constexpr std::int64_t kReads = 20;
  Workload rivals("runqueue", "--threads 2 --ms 1500", kLinger);
  Workload workload(
      "sleeper",
      "--sleeps 20 --ms 5 --block-on pipe --spin 600 --cpu " + rivals.ready()["cpu"].text(),
      kLinger);
  auto tid = workload.id();
  Tools tools;
  tools.start("off", "offcputime", {"-t", tid});
  tools.start("blocked", "offcputime", {"--state", "3", "-t", tid});
  tools.start("preempted", "offcputime", {"--state", "0", "-K", "-t", tid});
  tools.start("off and waker", "offwaketime", {"-t", tid});
  tools.start("until waking", "wakeuptime", {"-t", tid});
  tools.start("chains", "chaintrace", {"-t", tid});
  tools.start("queued", "runqlat", {"-t", tid});
  tools.start("samples", "profile", {"-F", std::to_string(kFrequency), "-L", tid});
  tools.start("calls", "syscount", {"-L", "-t", tid});
  // There are many calls where clocks are read by system calls.
  tools.start("recorder", "traceloop", {"--dump-on-exit", "-s", "131072", "-t", tid});

  auto before = at_rest(workload);
  auto begun = Clock::now();
  workload.release();
  rivals.release();
  auto truth = workload.truth()["threads"].items().at(0);
  auto after = at_rest(workload);
  auto lived = static_cast<std::int64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count());
  rivals.truth();
  tools.stop();
  auto growth = [&](std::uint64_t Account::*count) {
    return static_cast<std::int64_t>(after.threads.at(tid).*count - before.threads.at(tid).*count);
  };
  const auto on_cpu_ns = growth(&Account::on_cpu_ns), runs = growth(&Account::slices);

  auto is_runnable = [](auto& line) { return line["runnable"].boolean(); };
  auto in_pipe = [](auto& line) {
    return is_blocked(line) && has_frame(line, "kernel_stack", "pipe_read");
  };
  auto off = sum_all(tools["off"]), blocked = sum_all(tools["blocked"]),
       preempted = sum_all(tools["preempted"]), until_waking = sum_all(tools["until waking"]),
       chains = sum_all(tools["chains"]), both = sum_all(tools["off and waker"]),
       queued = sum_all(tools["queued"]);

  // Switches.
  auto expect_all = [&](const char* key, std::int64_t count, std::int64_t truth) {
    expect_switches(tools[key], static_cast<std::uint64_t>(count),
                    static_cast<std::uint64_t>(truth));
  };
  const bool exact = !tools["off"].unreported;
  expect_all("blocked", blocked.count, growth(&Account::voluntary) - 1);
  expect_all("preempted", preempted.count, growth(&Account::preempted));
  EXPECT_GT(preempted.count, 2) << "the rivals ran as well";
  if (exact) {
    EXPECT_EQ(off.count, blocked.count + preempted.count);
  }
  EXPECT_EQ(sum_where(tools["off"], is_blocked).count, blocked.count);
  EXPECT_EQ(sum_where(tools["off"], is_runnable).count, preempted.count);
  EXPECT_EQ(both.count, blocked.count);
  EXPECT_EQ(chains.count, blocked.count);
  EXPECT_EQ(until_waking.count, blocked.count);
  // It waited for a CPU after each block, and once at its start.
  expect_all("off", off.count + 1, queued.count);
  EXPECT_EQ(queued.count, runs);

  // Equal times.
  const auto each = static_cast<std::int64_t>(200'000 * slowness());
  auto near = [&](std::int64_t a, std::int64_t b, std::int64_t events) {
    return std::llabs(a - b) <= events * each;
  };
  EXPECT_PRED3(near, off.ns, blocked.ns + preempted.ns, off.count);
  EXPECT_PRED3(near, both.ns, blocked.ns, blocked.count);
  EXPECT_PRED3(near, chains.ns, blocked.ns, blocked.count);
  EXPECT_PRED3(near, queued.ns, growth(&Account::run_delay_ns), 1);
  // Blocked until woken, then queued like preempted tasks; the first wait precedes everything.
  auto first_wait = lived - on_cpu_ns - off.ns;
  EXPECT_LE(until_waking.ns, blocked.ns + blocked.count * each);
  EXPECT_GE(until_waking.ns + queued.ns, off.ns - off.count * each);
  EXPECT_LE(until_waking.ns + queued.ns, off.ns + first_wait + off.count * each);
  // On or off CPU from its start to its end; the test sees both slightly earlier or later.
  EXPECT_LE(off.ns + on_cpu_ns, lived + off.count * each);
  if (exact) {
    EXPECT_GE(off.ns + on_cpu_ns + off.count * each, truth["slept_ns"].i64() + 600'000'000);
  }

  // A read is called, blocks, continues, and returns.
  auto read_off = sum_where(tools["off"], in_pipe);
  auto read_woken = sum_where(tools["off and waker"], in_pipe);
  auto reads = sum_where(tools["calls"], [](auto& row) { return row["syscall"].str() == "read"; });
  auto recorded = calls_of(tools["recorder"], "read");
  auto missed = static_cast<std::int64_t>(tools.missed("calls", "recorder"));
  EXPECT_GT(read_off.count, 0);
  EXPECT_LE(read_off.count, kReads) << "what was written already is not waited for";
  EXPECT_EQ(read_woken.count, read_off.count);
  EXPECT_LE(std::llabs(reads.count - recorded.count), missed);
  if (!missed) {
    EXPECT_LE(read_off.ns, reads.ns + kReads * each);
    EXPECT_PRED3(near, reads.ns, recorded.ns, reads.count);
  }
  EXPECT_LE(recorded.ns, truth["slept_ns"].i64() + recorded.count * each);
  for (auto& row : tools["calls"].body) {
    auto name = row["syscall"].str();
    EXPECT_LE(std::llabs(row["count"].i64() - calls_of(tools["recorder"], name).count), missed)
        << name;
  }

  // Samples are CPU time: that of the scheduler, and of the ticks in /proc. Each stretch on a CPU
  // may have one sample more or fewer than its length; ticks are hundredths of a second. Under
  // emulation without dedicated CPUs, late timers merge.
  auto samples = static_cast<double>(tools["samples"].sum("count"));
  auto either = 3 * std::sqrt(static_cast<double>(runs)) + 10;
  for (auto ns : {on_cpu_ns, growth(&Account::ticks_ns)}) {
    auto expected = static_cast<double>(ns) / 1e9 * kFrequency;
    EXPECT_LT(samples, expected * 1.25 + either);
    if (slowness() < 3) {
      EXPECT_GT(samples, expected * 0.75 - either);
    }
  }
  EXPECT_GT(samples, 0);
}

// ---- calls of a cgroup ----

/// Counts of the same events, some of which may have been missed.
void expect_same(const Counts& a, const Counts& b, std::uint64_t missed) {
  if (!missed) {
    EXPECT_EQ(a, b);
    return;
  }
  auto all = a;
  all.insert(b.begin(), b.end());
  auto of = [](const Counts& counts, const std::string& key) {
    auto found = counts.find(key);
    return found == counts.end() ? 0 : static_cast<std::int64_t>(found->second);
  };
  for (auto& [key, count] : all)
    EXPECT_LE(std::llabs(of(a, key) - of(b, key)), static_cast<std::int64_t>(missed)) << key;
}

/// Opens files, runs programs, and makes other calls, in a cgroup; five tools trace the cgroup.
TOOL_TEST(Agree, CallsOfACgroup) {
  Cgroup cgroup;
  constexpr std::uint64_t kPrograms = 10;
  Workload opener("opener", "--scene --count 40", kLinger), runner("runner", "--count 10", kLinger),
      caller("syscalls", "--ms 5 --restarts 0", kLinger);
  const std::vector<Workload*> workloads{&opener, &runner, &caller};
  for (auto* workload : workloads) cgroup.add(workload->pid());
  Tools tools;
  tools.start("opens", "opensnoop", {"--cgroup", cgroup.path()});
  tools.start("failed opens", "opensnoop", {"-x", "--cgroup", cgroup.path()});
  tools.start("execs", "execsnoop", {"-x", "--cgroup", cgroup.path()});
  tools.start("calls", "syscount", {"--cgroup", cgroup.path()});
  tools.start("failed calls", "syscount", {"-x", "--cgroup", cgroup.path()});
  tools.start("processes", "syscount", {"-P", "--cgroup", cgroup.path()});
  tools.start("recorder", "traceloop", {"--dump-on-exit", "--cgroup", cgroup.path()});
  for (auto* workload : workloads) workload->release();
  for (auto* workload : workloads) workload->truth();
  for (auto* workload : workloads) at_rest(*workload);
  tools.stop();

  auto& recorder = tools["recorder"];
  EXPECT_EQ(recorder.lost("overwritten"), 0u);
  // The recorder shows both returns of a fork; the result of rt_sigreturn is the restored value.
  auto ended = lines_where(recorder, [](auto& line) {
    return line["type"].str() == "call" && !line["result"].is_null() &&
           !(line["syscall"].str() == "clone" && line["result"].i64() == 0);
  });
  auto failed = lines_where(recorder, [](auto& line) {
    return line["type"].str() == "call" && !line["error"].is_null() &&
           line["syscall"].str() != "rt_sigreturn";
  });
  auto calls = counts_by(tools["calls"], "syscall");
  auto failures = counts_by(tools["failed calls"], "syscall");
  expect_same(calls, counts_by(ended, "syscall", nullptr), tools.missed("calls", "recorder"));
  expect_same(failures, counts_by(failed, "syscall", nullptr),
              tools.missed("failed calls", "recorder"));

  // Files: by the system call that opened them, and by result.
  auto opens = counts_by(tools["opens"], "call", nullptr);
  auto bad_opens =
      counts_by(lines_where(tools["opens"], [](auto& line) { return !line["error"].is_null(); }),
                "call", nullptr);
  expect_same(bad_opens, counts_by(tools["failed opens"], "call", nullptr),
              tools.missed("opens", "failed opens"));
  auto only = [](Counts counts) {
    const std::set<std::string> opening{"open", "creat", "openat", "openat2"};
    std::erase_if(counts, [&](auto& entry) { return !opening.contains(entry.first); });
    return counts;
  };
  expect_same(opens, only(calls), tools.missed("opens", "calls"));
  expect_same(bad_opens, only(failures), tools.missed("opens", "failed calls"));
  EXPECT_GE(opens["openat"] + tools["opens"].lost("missed"), 40u);
  EXPECT_GT(bad_opens["openat"], 0u);

  // Programs.
  auto execs = tools["execs"].body.size(),
       run = lines_with(tools["execs"].body, {{"ret", 0}}).size();
  expect_same({{"execve", execs}}, {{"execve", calls["execve"]}}, tools.missed("execs", "calls"));
  expect_same({{"execve", execs - run}}, {{"execve", failures["execve"]}},
              tools.missed("execs", "failed calls"));
  EXPECT_EQ(run, runner.truth()["execs"].u64() + kPrograms);

  // Processes.
  expect_same(counts_by(tools["processes"], "pid"), counts_by(ended, "pid", nullptr),
              tools.missed("processes", "recorder"));
  expect_same({{"all", tools["processes"].sum("count")}}, {{"all", tools["calls"].sum("count")}},
              tools.missed("processes", "calls"));
}

// ---- requests of a disk ----

struct DiskCounts {
  std::uint64_t requests = 0, sectors = 0, ms = 0;
};
/// Without flushes; their time is that of the requests that wait for them.
DiskCounts diskstats_of(const std::string& disk) {
  auto found = diskstats(disk);
  if (!found) throw std::runtime_error(disk + " is not in /proc/diskstats");
  auto& value = *found;
  return {value[0] + value[4] + value[11], value[2] + value[6] + value[13],
          value[3] + value[7] + value[14]};
}

// One read at a time from a disk without other users.
TOOL_TEST(Agree, RequestsOfADisk) {
  constexpr std::uint64_t kCount = 60;
  Workload workload("blockio", "--make loop --op read --count 60 --pattern random --size 16384",
                    kLinger);
  auto disk = workload.ready()["disk"].str();
  Tools tools;
  tools.start("lines", "biosnoop", {"-Q", "-d", disk});
  tools.start("own lines", "biosnoop", {"-d", disk, "-p", workload.id()});
  tools.start("issued", "biolatency", {"-d", disk});
  tools.start("queued", "biolatency", {"-Q", "-d", disk});
  tools.start("flags", "biolatency", {"-F", "-D", "-d", disk});
  tools.start("own", "biolatency", {"-d", disk, "-p", workload.id()});
  tools.start("blocked", "offcputime", {"-t", workload.id()});
  tools.start("calls", "syscount", {"-L", "-t", workload.id()});
  auto before = diskstats_of(disk);
  workload.release();
  auto truth = workload.truth();
  at_rest(workload);
  auto after = diskstats_of(disk);
  tools.stop();

  auto& lines = tools["lines"];
  auto requests = lines.body.size();
  EXPECT_EQ(requests, kCount);
  EXPECT_EQ(requests, tools["own lines"].body.size());
  for (auto* key : {"issued", "queued", "flags", "own"})
    EXPECT_EQ(tools[key].sum("count"), requests) << key;
  EXPECT_EQ(requests, after.requests - before.requests);
  EXPECT_EQ(lines.sum("bytes"), (after.sectors - before.sectors) * 512);
  auto by_flags = counts_by(lines, "flags", nullptr);
  EXPECT_EQ(counts_by(tools["flags"], "flags"), by_flags);
  EXPECT_EQ(lines_with(tools["flags"].body, {{"disk", disk}}).size(), by_flags.size());

  // Each program reads the clock once, one after another at both ends.
  const auto each = static_cast<std::int64_t>(100'000 * slowness());
  auto slack = static_cast<std::int64_t>(requests) * each;
  auto near = [&](std::int64_t a, std::int64_t b) { return std::llabs(a - b) <= slack; };
  auto latency = signed_sum(lines.body, "latency_ns"), waited = signed_sum(lines.body, "queued_ns");
  EXPECT_PRED2(near, latency, signed_sum(tools["issued"].body, "total_ns"));
  EXPECT_PRED2(near, latency, signed_sum(tools["own"].body, "total_ns"));
  EXPECT_PRED2(near, latency, signed_sum(tools["own lines"].body, "latency_ns"));
  EXPECT_PRED2(near, latency, signed_sum(tools["flags"].body, "total_ns"));
  EXPECT_PRED2(near, latency + waited, signed_sum(tools["queued"].body, "total_ns"));
  // From the issue to the completion; from allocation to release of the request; the whole call.
  auto counted = static_cast<std::int64_t>(after.ms - before.ms + 1) * 1'000'000;
  auto in_calls =
      sum_where(tools["calls"], [](auto& row) { return row["syscall"].str() == "pread64"; });
  EXPECT_LE(latency, counted + slack);
  EXPECT_LE(in_calls.ns, truth["took_ns"].i64() + slack);
  if (!tools["calls"].lost("missed")) {
    EXPECT_EQ(in_calls.count, static_cast<std::int64_t>(kCount));
    EXPECT_LE(latency, in_calls.ns + slack);
    EXPECT_LE(sum_where(tools["blocked"], is_blocked).ns, in_calls.ns + slack);
  }
}

// ---- memory of a program ----

// Held memory is the difference of all allocations and frees of the same run.
TOOL_TEST(Agree, AllocationsAndWhatIsHeld) {
  Workload workload("leaker", "--rounds 10 --churn 300 --threads 2 --no-mappings", kLinger);
  Tools tools;
  tools.start("held", "memleak", {"-a", "-o", "0", "-i", "1000", "-p", workload.id()});
  tools.start("sums", "memleak", {"-C", "-i", "1000", "-p", workload.id()});
  tools.start("events", "memleak", {"-t", "-p", workload.id()});
  workload.release();
  workload.truth();
  at_rest(workload);
  tools.stop();

  std::map<std::uint64_t, std::uint64_t> blocks, shown;
  for (auto& event : tools["events"].body) {
    auto at = event["address"].u64();
    if (event["bytes"].is_null()) {
      blocks.erase(at);
      continue;
    }
    if (!event["old_address"].is_null() && (at || !event["bytes"].u64()))
      blocks.erase(event["old_address"].u64());
    if (at) blocks[at] = event["bytes"].u64();
  }
  std::uint64_t bytes = 0;
  for (auto& [at, size] : blocks) bytes += size;
  for (auto* key : {"held", "sums"})
    expect_within(tools[key], {exactly("bytes", bytes), exactly("count", blocks.size())});
  for (auto& line : tools["held"].body)
    for (auto& one : line["allocations"].items()) shown[one["address"].u64()] = one["bytes"].u64();
  EXPECT_EQ(shown, blocks);
}

}  // namespace
}  // namespace coretap::tooltest
