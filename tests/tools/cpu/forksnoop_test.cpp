// forksnoop against a program that makes tasks in each way, and knows their ids and flags.
#include "shared.hpp"

namespace coretap::tooltest {

TOOL_TEST(Forksnoop, EachProcessWithFlagsAndNamespaces) {
  const std::vector<Strings> tools = {Strings("forksnoop --json --strict"),
                                      Strings("forksnoop --json --strict -H -p {pid}"),
                                      Strings("forksnoop --json --strict -u 54321")};
  auto all = watch_all({{"newtasks --count 3 --threads 5", tools}}).at(0);
  auto everybody = all.report(0);
  for (auto& truth : all.truth["made"].items()) {
    auto event = line_with(everybody.body, {{"child_pid", truth["pid"].u64()}});
    expect_fields(event, {{"pid", truth["maker"].u64()},
                          {"tid", truth["maker"].u64()},
                          {"child_tid", truth["pid"].u64()},
                          {"child_ppid", truth["parent"].u64()},
                          {"comm", "newtasks"},
                          {"uid", 0}});
    if (truth["maker"].u64() != all.pid) expect_fields(event, {{"ppid", all.pid}});
    Strings namespaces;
    if (truth["new_uts"].u64()) namespaces = {"uts", "ipc"};
    if (truth["new_pid"].u64()) namespaces = {"pid"};
    EXPECT_EQ(event["new_namespaces"].strings(), namespaces);
    const std::map<std::uint64_t, std::string> words = {
        {0, "0"},
        {CLONE_VM | CLONE_VFORK, "CLONE_VM|CLONE_VFORK"},
        {CLONE_NEWPID, "CLONE_NEWPID"},
        {CLONE_NEWUTS | CLONE_NEWIPC, "CLONE_NEWUTS|CLONE_NEWIPC"},
        {CLONE_PARENT, "CLONE_PARENT"}};
    EXPECT_EQ(event["clone_flags"].str(), words.at(truth["flags"].u64()));
  }
  EXPECT_TRUE(lines_where(everybody, [](auto& line) {
                return contains(line["clone_flags"].str(), "CLONE_THREAD");
              }).empty());
  // Those that it makes itself: its children's are theirs.
  auto filtered = all.report(1);
  auto threads = lines_with(filtered.body, {{"child_pid", all.pid}});
  auto tids = all.truth["tids"].items();
  ASSERT_EQ(threads.size(), tids.size());
  for (std::size_t i = 0; i < threads.size(); i++) {
    expect_fields(threads[i], {{"child_tid", tids[i].u64()}});
    expect_contains(threads[i]["clone_flags"].str(), {"CLONE_VM", "CLONE_THREAD"});
  }
  EXPECT_EQ(filtered.body.size(), all.number("tasks") - 2 * 3);
  EXPECT_TRUE(all.report(2).body.empty());
}

// The cgroup of a new task is that of its creator.
TOOL_TEST(Forksnoop, CgroupOfANewTask) {
  Cgroup cgroup;
  Tracer tracer("forksnoop", "--json --strict -c " + cgroup.path());
  run({"sh", "-c", "echo $$ >" + cgroup.path() + "/cgroup.procs; (exit 0); (exit 0); exit 0"});
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 2u);
  for (auto& event : report.body)
    EXPECT_TRUE(cgroup.path().ends_with(event["cgroup"].str())) << event["cgroup"].str();
}

TESTS_OF(forksnoop, .events = {"-H", "newtasks --count 1 --plain"},
         .stress = event_row("newtasks --plain --count {n}", 300, "tasks", "-H"),
         .long_run = {{.arguments = "-H"}});

}  // namespace coretap::tooltest
