// timeline: its trace, read as the importer of Perfetto does, against workloads that count
// themselves, the kernel's accounts and cpudist.
#include "../perfetto_reader.hpp"
#include "shared.hpp"

namespace coretap::tooltest {

namespace {

/// A trace of a workload, and the line about it.
struct TraceOf {
  TemporaryDirectory directory{};
  std::string path = directory.path() + "/t.pftrace";
  Observed seen{};
  Json json{};

  /// `stalled`: the tool does not read while the workload works.
  TraceOf(const Strings& options, const Strings& workload, bool stalled = false) {
    Scene scene(workload);
    auto& tool = scene.trace(Strings("timeline --json -o") + path + options).process();
    if (stalled) tool.signal(SIGSTOP);
    scene.workload().release();
    scene.workload().truth();
    if (stalled) tool.signal(SIGCONT);
    seen = scene.collect();
    json = read_trace(path);
    const auto about = only(seen.body());
    EXPECT_EQ(about["file"].str(), path);
    EXPECT_EQ(about["bytes"].u64(), std::filesystem::file_size(path));
    EXPECT_EQ(json["twice"].u64(), 0u) << "a task on two CPUs at once";
    EXPECT_TRUE(json["unknown"].items().empty()) << "tasks without a process";
    // Each CPU begins with a switch that importers ignore, and one to what it runs.
    auto gaps = about["gaps"].u64() + seen.report().lost("unmatched");
    EXPECT_GE(json["switches"].u64(), about["switches"].u64());
    EXPECT_LE(json["switches"].u64(), about["switches"].u64() + 2 * json["begun"].u64() + 3 * gaps);
    EXPECT_EQ(json["wake_count"].u64(), about["wakeups"].u64());
  }
  std::vector<Json> of(const char* what, const char* key, std::uint64_t value) const {
    std::vector<Json> found;
    for (auto& item : json[what].items())
      if (item.has(key) && item[key].u64() == value) found.push_back(item);
    return found;
  }
  std::vector<Json> slices(const char* track, const std::string& name) const {
    std::vector<Json> found;
    for (auto& s : json["slices"].items())
      if (s["track"].str().ends_with(track) && (name.empty() || s["slice"].str() == name))
        found.push_back(s);
    return found;
  }
};

}  // namespace

TOOL_TEST(Timeline, EachWakeupHasItsWaker) {
  TraceOf trace("--only sched", "sleeper --ms 10 --block-on pipe --sleeps 20");
  auto thread = trace.seen.truth["threads"].items().at(0);
  auto reader = thread["tid"].u64(), writer = thread["waker_tid"].u64();
  std::uint64_t by_writer = 0, by_timer = 0;
  for (auto& w : trace.of("wakes", "tid", reader))
    by_writer += w["waker"].u64() == writer && w["flags"].u64() == 0 && w["blocked"].i64() == 1;
  for (auto& w : trace.of("wakes", "tid", writer)) by_timer += (w["flags"].u64() & 24) != 0;
  // Its end wakes the reader once more, if that waits for it.
  EXPECT_GE(by_writer, 20u) << "a task woke it";
  EXPECT_LE(by_writer, 21u);
  EXPECT_GE(by_timer, 10u) << "an interrupt woke it";
  // Both have their process, and its name.
  auto process = only(trace.of("processes", "pid", trace.seen.pid));
  EXPECT_EQ(process["name"].str(), "sleeper");
  for (auto tid : {reader, writer})
    EXPECT_EQ(only(trace.of("threads", "tid", tid))["tgid"].u64(), trace.seen.pid);
}

TOOL_TEST(Timeline, TimeOnTheCpuAsOtherTellIt) {
  TemporaryDirectory directory;
  auto path = directory.path() + "/t.pftrace";
  Scene scene("runqueue --threads 3 --ms 400");
  scene.trace(Strings("timeline --json --only sched -o") + path);
  scene.trace("cpudist --json -L -p {pid}");
  auto seen = scene.finish();
  auto json = read_trace(path);
  std::map<std::uint64_t, double> traced;
  for (auto& t : json["on_cpu"].items()) traced[t["tid"].u64()] = t["ns"].real();
  for (auto& thread : seen.truth["threads"].items()) {
    auto tid = thread["tid"].u64();
    // The kernel excludes interrupts and stolen time.
    auto kernel = thread["on_cpu_ns"].real();
    expect_between(traced[tid], 0.97 * kernel, 1.10 * kernel + 2e6);
    double dist = 0;
    for (auto& line : lines_with(seen.body(1), {{"tid", tid}})) dist += line["total_ns"].real();
    if (seen.unreported.at(0) || seen.unreported.at(1)) continue;
    EXPECT_NEAR(traced[tid], dist, dist / 1000 + 20'000) << "cpudist";
  }
}

TOOL_TEST(Timeline, StatesAreThoseOfTheKernel) {
  TraceOf trace("--only sched", "sleeper --ms 2 --sleeps 10 --spin 300");
  std::uint64_t slept = 0;
  double ran = 0;
  for (auto& r : trace.of("runs", "tid", trace.seen.pid)) {
    slept += r["state"].i64() == 1;
    ran += r["end"].real() - r["begin"].real();
  }
  EXPECT_GE(slept, 10u);
  auto spun = trace.seen.truth["threads"].items().at(0)["spun_cpu_ns"].real();
  EXPECT_GE(ran, 0.97 * spun);
  EXPECT_LE(ran, 1.10 * spun + 5e7);
}

TOOL_TEST(Timeline, GapsAreDrawn) {
  TraceOf trace("--only sched --ring-size 4096", "sleeper --ms 1 --threads 8 --sleeps 100", true);
  auto about = only(trace.seen.body());
  auto lost = trace.slices("coretap: lost", "");
  EXPECT_GT(lost.size(), 0u) << "a buffer of a page overflows";
  EXPECT_GT(about["gap_events"].u64(), 1000u);
  EXPECT_EQ(lost.size(), about["gaps"].u64());
  double events = 0;
  for (auto& s : lost) events += s["args"]["events"].real();
  EXPECT_EQ(events, about["gap_events"].real());
  EXPECT_EQ(events, static_cast<double>(trace.seen.report().lost("lost")));
  // In a gap the CPU runs no task, and every CPU runs something all the time.
  std::map<std::uint64_t, double> end;
  std::size_t drawn = 0;
  auto runs = trace.json["runs"].items();
  std::ranges::sort(runs, {}, [](auto& r) { return r["begin"].real(); });
  for (auto& r : runs) {
    auto cpu = r["cpu"].u64();
    if (end.contains(cpu)) {
      EXPECT_EQ(end[cpu], r["begin"].real());
    }
    end[cpu] = r["end"].real();
    drawn += r["name"].str() == "[events lost]";
  }
  EXPECT_GT(drawn, 0u);
}

TOOL_TEST(Timeline, InterruptsAsTheKernelCountsThem) {
  auto before = counts_in("/proc/softirqs");
  TraceOf trace("--only irq", "sleeper --ms 10 --sleeps 50");
  auto after = counts_in("/proc/softirqs");
  std::uint64_t all = 0;
  Counts shown;
  for (auto& s : trace.slices(" softirqs", "")) shown[s["slice"].str()]++;
  for (auto& [name, n] : shown) {
    EXPECT_LE(n, after[name] - before[name]) << name;
    all += n;
  }
  EXPECT_GT(all, 0u);
  EXPECT_EQ(all, only(trace.seen.body())["softirqs"].u64());
  EXPECT_GE(trace.slices(" interrupts", "").size(), 50u) << "a timer for each sleep";
  EXPECT_EQ(trace.json["switches"].u64(), 0u);
}

TOOL_TEST(Timeline, SystemCallsOfATask) {
  TraceOf trace("--only sched,syscalls -p {pid}", "sleeper --ms 5 --sleeps 20");
  std::uint64_t calls = 0;
  double ns = 0;
  for (auto& s : trace.of("slices", "tid", trace.seen.pid)) {
    EXPECT_EQ(s["pid"].u64(), trace.seen.pid);
    if (!s["slice"].str().ends_with("nanosleep")) continue;
    calls++;
    ns += s["dur"].real();
    EXPECT_GE(s["dur"].real(), 5e6);
    EXPECT_EQ(s["args"]["result"].i64(), 0);
  }
  // It waits for its end in a call that has not ended.
  auto own = trace.of("slices", "tid", trace.seen.pid);
  EXPECT_EQ(std::ranges::count_if(own, [](auto& s) { return s["args"].has("unfinished"); }), 1);
  EXPECT_EQ(calls, 20u);
  EXPECT_LE(ns, trace.seen.truth["threads"].items().at(0)["slept_ns"].real());
  for (auto& s : trace.json["slices"].items())
    if (s.has("tid")) {
      EXPECT_EQ(s["tid"].u64(), trace.seen.pid) << "only this process";
    }
}

TOOL_TEST(Timeline, OnlySlowSystemCalls) {
  TraceOf trace("--only syscalls --min-us 4000 -p {pid}", "sleeper --ms 5 --sleeps 5");
  auto calls = trace.of("slices", "tid", trace.seen.pid);
  EXPECT_GE(calls.size(), 5u);
  for (auto& s : calls) EXPECT_GE(s["dur"].real(), 4e6);
}

TOOL_TEST(Timeline, RequestsAndTheirArrows) {
  TemporaryDirectory directory;
  auto path = directory.path() + "/t.pftrace";
  auto result = result_of(Strings("timeline --json --only block -o") + path + "--" + "dd" +
                          "if=/dev/zero" + ("of=" + directory.path() + "/data") + "bs=64k" +
                          "count=20" + "oflag=direct" + "status=none");
  if (result.status) throw Skip(result.err);
  if (!contains(result.out, "\"requests\"") || contains(result.out, "\"requests\":0"))
    throw Skip("no block device below " + directory.path());
  auto json = read_trace(path);  // flows lead somewhere, and end
  std::uint64_t submits = 0, writes = 0, completes = 0, bytes = 0;
  for (auto& s : json["slices"].items()) {
    auto name = s["slice"].str();
    submits += name.starts_with("submits W") && s.has("tid");
    completes += name.starts_with("completes W");
    if (!name.starts_with("W")) continue;
    writes++;
    bytes += s["args"]["bytes"].u64();
    EXPECT_GT(s["dur"].u64(), 0u);
    EXPECT_EQ(s["flows"].items().size(), 1u);
  }
  EXPECT_GE(writes, 20u);
  EXPECT_GE(bytes, 20u * 65536);
  EXPECT_EQ(writes, completes);
  EXPECT_GE(submits, 20u);
}

TOOL_TEST(Timeline, PageFaultsThatTakeTime) {
  TraceOf trace("--only faults -p {pid}", "faulter");
  for (auto& s : trace.of("slices", "tid", trace.seen.pid)) {
    EXPECT_TRUE(s["slice"].str().ends_with("page fault")) << s["slice"].str();
    EXPECT_GE(s["dur"].u64(), 10'000u);
    EXPECT_GT(s["args"]["address"].u64(), 0u);
  }
  EXPECT_GT(trace.seen.report().lost("filtered") + only(trace.seen.body())["faults"].u64(), 0u);
}

// Both ends of connections over the loopback: arrows lead from connects, and to accepts.
TOOL_TEST(Timeline, ConnectionsAndTheirStates) {
  TraceOf trace("--only net", "tcp --sessions 3");
  const auto& truth = trace.seen.truth;
  std::uint64_t sent = 0, received = 0, connects = 0, accepts = 0, states = 0;
  const auto client = trace.seen.pid;
  for (auto& s : trace.json["slices"].items()) {
    const auto name = s["slice"].str();
    const bool own =
        s.has("pid") && (s["pid"].u64() == client ||
                         (truth.has("server_pid") && s["pid"].u64() == truth["server_pid"].u64()));
    connects += own && name == "connects";
    accepts += own && name == "accepts";
    if (own && name == "sends") sent += s["args"]["bytes"].u64();
    if (own && name == "receives") received += s["args"]["bytes"].u64();
    states += s["track"].str().starts_with("TCP ") && name == "ESTABLISHED";
  }
  EXPECT_GE(connects, 3u);
  EXPECT_GE(accepts, 3u);
  EXPECT_GE(states, 6u) << "both ends";
  EXPECT_EQ(sent, received);
}

TOOL_TEST(Timeline, OnlyTheLastPart) {
  TemporaryDirectory directory;
  auto path = directory.path() + "/t.pftrace";
  auto report = report_of(Strings("timeline --json --only sched,irq --last 0.5 -o") + path + "2.5");
  auto json = read_trace(path);
  auto ms = (json["last"].real() - json["first"].real()) / 1e6;
  EXPECT_GE(ms, 400);
  EXPECT_LE(ms, 500 + 600 * slowness());
  EXPECT_GT(report.lost("overwritten"), 0u);
  auto about = only(report.body);
  EXPECT_EQ(json["wake_count"].u64(), about["wakeups"].u64());
  EXPECT_GT(json["wake_count"].u64(), 0u);
  EXPECT_TRUE(json["unknown"].items().empty());
}

TOOL_TEST(Timeline, TheLastPartOnRequest) {
  TemporaryDirectory directory;
  auto path = directory.path() + "/t.pftrace";
  Tracer tracer("timeline", Strings("--json --last 10 -o") + path);
  nap(std::chrono::milliseconds(400));
  tracer.process().signal(SIGUSR1);
  ASSERT_TRUE(until([&] { return std::filesystem::exists(path); }));
  auto first = read_trace(path);
  nap(std::chrono::milliseconds(300));
  auto report = tracer.stop();
  auto second = read_trace(path + ".2");
  ASSERT_EQ(report.body.size(), 2u);
  EXPECT_EQ(report.body[1]["file"].str(), path + ".2");
  EXPECT_GT(second["last"].real(), first["last"].real());
  EXPECT_NEAR(second["first"].real(), first["first"].real(), 5e6) << "the same beginning";
}

// The names are those of an untrusted user; the reader refuses control characters.
TOOL_TEST(Timeline, HostileNames) {
  TraceOf trace("--only sched,syscalls -p {pid}", "hostile --action sleep");
  EXPECT_NE(only(trace.of("processes", "pid", trace.seen.pid))["name"].str().find("\\x1b"),
            std::string::npos);
}

TOOL_TEST(Timeline, AFileThatCannotBeWritten) {
  expect_refused("timeline -o /nonexistent/x 1", {"/nonexistent/x"}, 1);
  auto full = result_of("timeline -o /dev/full 0.3");
  EXPECT_EQ(full.status, 1) << full.err;
  expect_contains(full.err, {"No space left"});
}

TOOL_TEST(Timeline, WrongOptions) {
  expect_refusals("timeline", {{"--only", ""},
                               {"--only cpu", "sched"},
                               {"--only sched,", "sched"},
                               {"--only sched --min-us 5", "--min-us"},
                               {{"-o", ""}, "file"},
                               {"--last x", "--last"},
                               {"--min-us x", "--min-us"}});
}

TESTS_OF(timeline, .events = {"-o /dev/null", "sleeper --sleeps 3"},
         .stress = stress::Row{.workload = "syscalls --calls {n} --restarts 0",
                               .events = 5000,
                               .options = "--only syscalls -o /dev/null",
                               .shown = "syscalls",
                               .tiny = "--ring-size 4096"}
                       .not_known(),
         .long_run = {{.arguments = "-o /dev/null"}});

}  // namespace coretap::tooltest
