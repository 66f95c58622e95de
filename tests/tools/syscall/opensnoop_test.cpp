// opensnoop against a program that knows the result of each of its opens.
#include "calls.hpp"

namespace coretap::tooltest {
namespace {

/// The known values of one call of the scene; `whole`: with --full-path.
void expect_call(const Json& event, const Json& truth, bool whole) {
  auto mode = truth["mode"].u64();
  expect_same(event, truth, {"call", "fd", {"open_flags", "flags"}});
  expect_fields(event,
                {{"error", error_name(truth["error"].i64())}, {"open_mode", or_null(mode, mode)}});
  EXPECT_GT(event["latency_ns"].u64(), 0u);
  auto given = unhex(truth["given_hex"].str()), full = unhex(truth["full_hex"].str());
  if (given == "?") return expect_fields(event, {{"path", nullptr}});
  bool cut = given.size() > 4095;
  auto beyond = full.size() - given.size() + 4095;
  auto shown = [&](const std::string& path, std::size_t size) {
    return cut ? path.substr(0, size) + "..." : in_json(path);
  };
  expect_fields(event, {{"incomplete", cut},
                        {"argument", shown(given, 4095)},
                        {"path", whole ? shown(full, beyond) : shown(given, 4095)}});
}

TOOL_TEST(Opensnoop, EveryCallWithItsResult) {
  auto seen = observe_all(
      {"opensnoop --json -p {pid}", "opensnoop --json -F -p {pid}", "opensnoop --json -x -p {pid}",
       "opensnoop --json --strict -p {pid} -f O_WRONLY -f O_EXCL",
       "opensnoop -T -U -e -L -n opener"},
      "opener --scene --count 20", {});
  auto calls = seen.truth["scene"].items();
  auto bulk = seen.truth["bulk"].u64();
  ASSERT_EQ(calls.size(), seen.truth["scene_opens"].u64());
  for (bool whole : {false, true}) {
    auto report = seen.report(whole ? 1 : 0);
    EXPECT_EQ(report.lost("lost"), 0u);
    auto events = report.of_process(seen.truth["pid"].u64());
    ASSERT_EQ(events.size(), bulk + calls.size());
    auto own = "/proc/" + (whole ? std::to_string(seen.pid) : "self") + "/comm";
    for (std::uint64_t i = 0; i < bulk; i++) EXPECT_EQ(events[i]["path"].str(), own);
    for (std::size_t i = 0; i < calls.size(); i++) {
      SCOPED_TRACE(i);
      expect_call(events[bulk + i], calls[i], whole);
    }
    // The path that is too long for the kernel as well is truncated, and that is reported.
    EXPECT_EQ(report.lost("truncated"), 1u);
  }
  auto failures = seen.report(2).body;
  EXPECT_EQ(failures.size(), seen.truth["failures"].u64());
  for (auto& event : failures) EXPECT_FALSE(event["error"].is_null());
  std::size_t writes = 0;
  for (auto& call : calls)
    writes += (call["flags"].u64() & O_ACCMODE) == O_WRONLY || call["flags"].u64() & O_EXCL;
  EXPECT_EQ(seen.report(3).body.size(), writes);

  auto shown = seen.text(4);
  EXPECT_TRUE(safe_for_terminals(shown));
  expect_row(lines(shown).at(0), "TIME(s) UID PID COMM FD ERR FLAGS MODE LAT(us) PATH");
  expect_contains(shown, {"\\x1b]0;x\\x07\\x0a\"\\\\xff\\xc3(, end\n", " 00001101 0604 "});
}

// A long burst without a pause: all events arrive.
TOOL_TEST(Opensnoop, LosesNothingInAStorm) {
  const std::uint64_t count = slowness() > 3 ? 20000 : 100000;
  Scene scene("opener --count " + std::to_string(count), {});
  scene.trace("opensnoop --strict -p {pid}", {.stdout_path = "/dev/null"});
  scene.trace("opensnoop --json --strict -f O_TMPFILE -p {pid}");
  auto seen = scene.finish();
  expect_contains(seen.err[0], {std::to_string(count) + " shown"});
  EXPECT_FALSE(contains(seen.err[0], "missed: ")) << seen.err[0];
  EXPECT_TRUE(seen.report(1).body.empty());
  EXPECT_GE(seen.report(1).lost("filtered"), count);
}

TOOL_TEST(Opensnoop, Filters) {
  // Substrings, whole names, lists and repetition. Other processes may have such names, too.
  struct {
    bool named;
    std::size_t shown;
    std::vector<Strings> options;
  } filters[] = {
      {false, 7, {"-p {0}", "-t {0}", "-p {0},{1} --not-comm op-other"}},
      {false, 10, {"-p {0},{1}"}},
      {false, 0, {"-u 54321", "-u 54321,54322", "-p {0},{1} --not-comm opener,op-other"}},
      {true, 7, {"-n opener", "-n pene", "--comm op-other,opener -n pen"}},
      {true, 3, {"-n p-oth", "--comm op-other", "-n o --not-pid {0}"}},
      {true, 3, {"--comm op-other -u 54321 -u " + std::to_string(::getuid())}},
      {true, 10, {"-n opener --name -other", "--comm op-other,opener"}},
      {true, 10, {"--comm opener --comm op-other"}},
      {true, 0, {"-n p-othx", "--comm pene", "-n o --not-pid {0},{1}"}}};
  std::vector<Strings> tools;
  for (auto& filter : filters)
    for (auto& options : filter.options) tools.push_back("opensnoop --json --strict" + options);
  auto [wanted, other] =
      watch_each({{"opener --count 7", tools}, {"opener --comm op-other --count 3"}}, {});
  std::size_t next = 0;
  for (auto& [named, shown, all] : filters)
    for (auto& options : all) {
      SCOPED_TRACE(join(options));
      auto report = wanted.report(next++);
      EXPECT_EQ(report.of_process(wanted.pid).size() + report.of_process(other.pid).size(), shown);
      EXPECT_TRUE(named || report.body.size() == shown);
    }
}

// A cgroup as created by a container runtime; its name is unknown, as no runtime runs here.
TOOL_TEST(Opensnoop, ContainersAndUnits) {
  require_tool("opensnoop");
  const std::string id(64, 'a');
  Cgroup container, unit("-test.service");
  auto scope = container.path() + "/docker-" + id + ".scope";
  ASSERT_EQ(::mkdir(scope.c_str(), 0755), 0);
  Scene inside("opener --count 5", {}), served("opener --count 3", {});
  std::ofstream(scope + "/cgroup.procs") << inside.workload().id() << std::flush;
  unit.add(served.workload().pid());
  served.trace("opensnoop --json --strict -p {pid}," + inside.workload().id());
  served.trace("opensnoop --json --strict --container " + id.substr(0, 12));
  served.trace("opensnoop --containers -p {pid}");
  auto of_inside = inside.finish(), seen = served.finish();
  auto report = seen.report();
  for (auto& line : report.of_process(of_inside.pid)) {
    expect_fields(line, {{"container_id", id}, {"container", nullptr}, {"unit", nullptr}});
    EXPECT_TRUE(line["cgroup"].str().ends_with("/docker-" + id + ".scope"));
  }
  for (auto& line : report.of_process(seen.pid)) {
    EXPECT_TRUE(line["unit"].str().ends_with("-test.service"));
    EXPECT_TRUE(line["container_id"].is_null());
  }
  EXPECT_EQ(report.body.size(), 8u);
  EXPECT_EQ(seen.report(1).body.size(), 5u);
  expect_contains(seen.text(2), {"-test.service"});
  expect_refusals("opensnoop",
                  {{"--container no-such", "--container no-such: there is none here"}});
  ::rmdir(scope.c_str());
}

// The workload's calls come from its main(), through syscall(), which has no frame pointer.
TOOL_TEST(Opensnoop, Callers) {
  auto seen = observe_all({"opensnoop --json --callers -p {pid}"}, "opener --count 20", {});
  auto report = seen.report();
  std::uint64_t cut = 0;
  for (auto& event : report.body) {
    EXPECT_FALSE(event["user_stack"].strings().empty());
    cut += !event["user_stack_truncated"].is_null();
  }
  EXPECT_GE(report.body.size(), seen.truth["bulk"].u64());
  EXPECT_EQ(report.lost("stacks_truncated"), cut);
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
  auto text = run({tool_path("opensnoop"), "--callers", "--", "cat", "/dev/null"}).out;
  expect_contains(text, {"\n        "});
#ifdef __x86_64__
  // The files of a command are read before it starts: all its stacks are complete, with names.
  expect_contains(text, {"        __libc_start_main"});
  EXPECT_FALSE(contains(text, "[truncated: ")) << text;
#endif
}

TESTS_OF(opensnoop, .events = {"-e -F -U", "opener --count 3"}, .user_stacks = {"-c"},
         .stress = event_row("opener --count {n}", 20000, "bulk").with_copies(8));

}  // namespace
}  // namespace coretap::tooltest
