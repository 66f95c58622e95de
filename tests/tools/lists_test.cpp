// tplist and bpflist against tracefs, the notes of a workload, and the BPF objects of a running
// tool.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

namespace fs = std::filesystem;

Result list(const Strings& arguments, const std::function<void()>& in_child = {}) {
  return result_of("coretap" + arguments, in_child);
}
/// Output of a successful call; notes about missing kernel features are allowed.
std::string listed(const Strings& arguments) {
  auto result = list(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

std::vector<Json> objects(const Strings& arguments) {
  std::vector<Json> all;
  for (auto& line : lines(listed(arguments))) all.push_back(Json::parse(line));
  return all;
}

TOOL_TEST(Tplist, HasTheTracepointsOfTracefs) {
  Mounted tracefs("tracefs");
  const fs::path events = fs::path(tracefs.path()) / "events";
  std::set<std::string> there;
  for (auto& category : fs::directory_iterator(events))
    if (category.is_directory())
      for (auto& event : fs::directory_iterator(category.path()))
        // Some events of the function tracer are not tracepoints.
        if (fs::exists(event.path() / "enable"))
          there.insert(category.path().filename().string() + ":" +
                       event.path().filename().string());
  auto all = lines(listed("tplist"));
  EXPECT_EQ((std::set<std::string>{all.begin(), all.end()}), there);
  EXPECT_GT(there.size(), 100u);
}

TOOL_TEST(Tplist, HasFields) {
  auto text = listed("tplist -v sched:sched_process_exit");
  EXPECT_TRUE(text.starts_with("sched:sched_process_exit\n    char comm[16];\n    pid_t pid;\n"))
      << text;
  EXPECT_FALSE(contains(text, "common_")) << text;
  EXPECT_EQ(listed("tplist sched_process_exit"), "sched:sched_process_exit\n");
  expect_contains(listed("tplist -vv sched_process_exit"),
                  {"    pid_t pid;  offset 24, 4 bytes, signed\n"});
  auto event = only(objects("tplist --json sched:sched_process_exit"));
  expect_fields(event, {{"type", "tracepoint"}, {"category", "sched"}});
  EXPECT_EQ(event["fields"].items().at(1)["offset_bytes"].u64(), 24u);
  auto types = listed("tplist -b sched_switch");
  EXPECT_TRUE(types.starts_with("sched_switch(bool")) << types;
  expect_contains(types, {"struct task_struct *"});
  EXPECT_FALSE(contains(types, "__data")) << types;
}

TOOL_TEST(Tplist, HasTheProbesOfAFile) {
  auto file = workload_path("probes");
  EXPECT_EQ(listed("tplist -l " + file),
            file + " coretap_test:gated\n" + file + " coretap_test:plain\n");
  auto places = only(objects("tplist --json plain -l " + file))["locations"].items();
  expect_contains(listed("tplist -vv coretap_test:pl* -l " + file), {"  1 argument(s)\n"});
  auto notes = run({"/usr/bin/readelf", "-n", file});
  if (notes.status != 0) throw Skip("no readelf here");
  std::size_t there = 0;
  for (auto& line : lines(notes.out)) there += line.ends_with("Name: plain");
  EXPECT_EQ(places.size(), there);
  for (auto& place : places) expect_contains(notes.out, {"Arguments: " + place["arguments"].str()});
  auto without = list("tplist -l " + workload_path("declared"));
  EXPECT_EQ(without.status, 0);
  expect_contains(without.err, {"no USDT probes in ", "declared"});
  EXPECT_EQ(list("tplist -l nosuchlib").status, 2) << "usage";
}

TOOL_TEST(Tplist, HasTheProbesOfAProcess) {
  Workload workload("probes", {});
  EXPECT_EQ(lines(listed("tplist coretap_test:* -p " + workload.id())).size(), 2u);
  expect_contains(listed("tplist -f counted_* -p " + workload.id()),
                  {" counted_each\n", " counted_even\n", " counted_never\n"});
  workload.release();
}

TOOL_TEST(Tplist, HasFunctionsOfTheKernel) {
  EXPECT_EQ(listed("tplist -f -v vfs_fsync"),
            "vfs_fsync\n    int vfs_fsync(struct file *file, int datasync);\n");
  auto json = objects("tplist -f --json vfs_*");
  EXPECT_GT(json.size(), 20u);
  for (auto& function : json) {
    EXPECT_TRUE(function["name"].str().starts_with("vfs_"));
    auto traceable = function["traceable"];
    if (!traceable.is_null()) {
      EXPECT_EQ(traceable.boolean(), function["why"].str().empty());
    }
  }
}

TOOL_TEST(Tplist, HasPrototypesOfModules) {
  if (access("/sys/module/9pnet/coresize", R_OK) != 0)
    throw Skip("no module 9pnet here: guests have it");
  const bool known = access("/sys/kernel/btf/9pnet", R_OK) == 0;
  auto text = listed("tplist -f -v 9pnet:p9_client_open");
  EXPECT_TRUE(text.starts_with("p9_client_open [9pnet]")) << text;
  EXPECT_EQ(contains(text, "\n    int p9_client_open(struct p9_fid *fid, int mode);\n"), known)
      << text;
  auto event = list("tplist -b 9p_client_req");
  if (known) {
    EXPECT_TRUE(event.out.starts_with("9p_client_req(struct p9_client *")) << event.out;
    EXPECT_TRUE(event.out.ends_with(" [9pnet]\n")) << event.out;
    expect_fields(only(objects("tplist -b --json 9p_client_req")), {{"module", "9pnet"}});
  } else {
    EXPECT_EQ(event.status, 1) << event.out;
  }
}

TOOL_TEST(Tplist, RefusesWhatItCannotList) {
  expect_refused("coretap tplist sched:sched_swich", {"did you mean 'sched:sched_switch'"}, 1);
  expect_refused("coretap tplist -l /etc/passwd", {"no program or library"}, 1);
  for (auto& wrong : {Strings("-b -f"), Strings("-p 2147483647"), Strings("-l /nonexistent\x1b"),
                      Strings("a b"), Strings{""}})
    expect_refused("coretap tplist" + wrong);
  auto user = list("tplist", as_nobody({}));
  if (user.status >= 126) throw Skip("cannot give up rights here: " + user.err);
  if (user.status != 0) {
    EXPECT_EQ(user.status, 3);
    expect_contains(user.err, {"hint: "});
  }
}

TOOL_TEST(Bpflist, HasTheObjectsOfATool) {
  Tracer tracer("opensnoop", "--json");
  const auto pid = tracer.process().pid();
  auto counts = lines_with(objects("bpflist --json"), {{"pid", pid}});
  for (auto& row : counts) expect_fields(row, {{"comm", "opensnoop"}});
  std::set<std::string> kinds;
  auto all = lines_with(objects("bpflist -l --json"), {{"pid", pid}});
  EXPECT_EQ(all.size(), sum(counts, "count"));
  for (auto& row : all) {
    auto type = row["type"].str(), id = std::to_string(row["id"].u64());
    kinds.insert(type);
    auto shown = run({"/usr/sbin/bpftool", "-j", type, "show", "id", id});
    if (shown.status != 0) continue;
    auto other = Json::parse(shown.out);
    expect_same(row, other, {"id"});
    if (type == "link")
      expect_same(row, other, {"prog_id"});
    else
      expect_same(row, other, {{"kind", "type"}, {"memory_bytes", "bytes_memlock"}});
    if (type == "map") expect_same(row, other, {"max_entries", {"key_bytes", "bytes_key"}});
  }
  EXPECT_TRUE(kinds.contains("map") && kinds.contains("prog")) << ::testing::PrintToString(kinds);
  auto text = listed("bpflist -vv");
  EXPECT_TRUE(text.starts_with("PID     COMM             TYPE       COUNT\n")) << text;
  expect_contains(text, {"opensnoop"});
  expect_contains(listed("bpflist -l"), {"  ATTACH\n"});
  tracer.stop_text();
}

TOOL_TEST(Bpflist, WithoutRights) {
  auto all = list("bpflist -l", as_nobody({}));
  if (all.status >= 126) throw Skip("cannot give up rights here: " + all.err);
  EXPECT_EQ(all.status, 3) << all.err;
  EXPECT_EQ(all.out, "");
  expect_contains(all.err, {"CAP_SYS_ADMIN"});
  EXPECT_EQ(list("bpflist", as_nobody({})).status, 3);
  expect_refused("coretap bpflist word");
}

TOOL_TEST(Lists, RunByTheirOwnNames) {
  for (std::string name : {"tplist", "bpflist"}) {
    expect_contains(said_by(name + " --help"), {"\nUsage: " + name + " [OPTIONS]"});
    expect_contains(listed(name + " --help"), {"\nUsage: coretap " + name});
    expect_contains(result_of(name + " __complete --j").out, {"--json\t"});
    expect_contains(listed("man --source " + name), {"\n.Nm coretap-" + name + "\n"});
    expect_contains(listed("list"), {"\n  " + name + " "});
  }
}

}  // namespace
}  // namespace coretap::tooltest
