// tplist and bpflist beside tracefs, the notes of a workload, and the BPF objects of a running
// tool.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

namespace fs = std::filesystem;

Result list(Strings arguments, const std::function<void()>& in_child = {}) {
  arguments.insert(arguments.begin(), tool_path("coretap"));
  return run(arguments, in_child);
}

std::vector<Json> objects(const Result& result) {
  EXPECT_EQ(result.status, 0) << result.err;
  std::vector<Json> all;
  for (auto& line : lines(result.out)) all.push_back(Json::parse(line));
  return all;
}

TOOL_TEST(Tplist, HasTheTracepointsOfTracefs) {
  Mounted tracefs("tracefs");
  const fs::path events = fs::path(tracefs.path()) / "events";
  std::set<std::string> there, listed;
  for (auto& category : fs::directory_iterator(events))
    if (category.is_directory())
      for (auto& event : fs::directory_iterator(category.path()))
        // Some of the function tracer's own are no tracepoints.
        if (fs::exists(event.path() / "enable"))
          there.insert(category.path().filename().string() + ":" +
                       event.path().filename().string());
  for (auto& line : lines(list({"tplist"}).out)) listed.insert(line);
  EXPECT_EQ(listed, there);
  EXPECT_GT(listed.size(), 100u);
}

TOOL_TEST(Tplist, HasFields) {
  auto text = list({"tplist", "-v", "sched:sched_process_exit"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(
      text.out.starts_with("sched:sched_process_exit\n    char comm[16];\n    pid_t pid;\n"))
      << text.out;
  EXPECT_FALSE(contains(text.out, "common_")) << text.out;
  EXPECT_EQ(list({"tplist", "sched_process_exit"}).out, "sched:sched_process_exit\n");
  EXPECT_TRUE(contains(list({"tplist", "-vv", "sched_process_exit"}).out,
                       "    pid_t pid;  offset 24, 4 bytes, signed\n"));
  auto json = objects(list({"tplist", "--json", "sched:sched_process_exit"}));
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["type"].str(), "tracepoint");
  EXPECT_EQ(json[0]["category"].str(), "sched");
  EXPECT_EQ(json[0]["fields"].items().at(1)["offset_bytes"].u64(), 24u);
  auto types = list({"tplist", "-b", "sched_switch"});
  EXPECT_TRUE(types.out.starts_with("sched_switch(bool")) << types.out;
  EXPECT_TRUE(contains(types.out, "struct task_struct *")) << types.out;
  EXPECT_FALSE(contains(types.out, "__data")) << types.out;
}

TOOL_TEST(Tplist, HasTheProbesOfAFile) {
  auto file = workload_path("probes");
  auto text = list({"tplist", "-l", file});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, file + " coretap_test:gated\n" + file + " coretap_test:plain\n");
  auto json = objects(list({"tplist", "--json", "-l", file, "plain"}));
  ASSERT_EQ(json.size(), 1u);
  auto places = json[0]["locations"].items();
  auto more = list({"tplist", "-vv", "-l", file, "coretap_test:pl*"});
  EXPECT_TRUE(contains(more.out, "  1 argument(s)\n")) << more.out;
  auto notes = run({"/usr/bin/readelf", "-n", file});
  if (notes.status != 0) throw Skip("no readelf here");
  std::size_t there = 0;
  for (auto& line : lines(notes.out)) there += line.ends_with("Name: plain");
  EXPECT_EQ(places.size(), there);
  for (auto& place : places)
    EXPECT_TRUE(contains(notes.out, "Arguments: " + place["arguments"].str())) << notes.out;
}

TOOL_TEST(Tplist, HasTheProbesOfAProcess) {
  Workload workload("probes", {});
  auto text = list({"tplist", "-p", workload.id(), "coretap_test:*"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(lines(text.out).size(), 2u) << text.out;
  auto functions = list({"tplist", "-f", "-p", workload.id(), "counted_*"});
  EXPECT_EQ(functions.status, 0) << functions.err;
  for (auto* name : {" counted_each\n", " counted_even\n", " counted_never\n"})
    EXPECT_TRUE(contains(functions.out, name)) << functions.out;
  workload.release();
}

TOOL_TEST(Tplist, HasFunctionsOfTheKernel) {
  auto text = list({"tplist", "-f", "-v", "vfs_fsync"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, "vfs_fsync\n    int vfs_fsync(struct file *file, int datasync);\n");
  auto json = objects(list({"tplist", "-f", "--json", "vfs_*"}));
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
  auto text = list({"tplist", "-f", "-v", "9pnet:p9_client_open"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("p9_client_open [9pnet]")) << text.out;
  EXPECT_EQ(contains(text.out, "\n    int p9_client_open(struct p9_fid *fid, int mode);\n"), known)
      << text.out;
  auto event = list({"tplist", "-b", "9p_client_req"});
  if (known) {
    EXPECT_TRUE(event.out.starts_with("9p_client_req(struct p9_client *")) << event.out;
    EXPECT_TRUE(event.out.ends_with(" [9pnet]\n")) << event.out;
    auto json = objects(list({"tplist", "-b", "--json", "9p_client_req"}));
    ASSERT_EQ(json.size(), 1u);
    EXPECT_EQ(json[0]["module"].str(), "9pnet");
  } else {
    EXPECT_EQ(event.status, 1) << event.out;
  }
}

TOOL_TEST(Tplist, RefusesWhatItCannotList) {
  auto nothing = list({"tplist", "sched:sched_swich"});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_EQ(nothing.out, "");
  EXPECT_TRUE(contains(nothing.err, "did you mean 'sched:sched_switch'")) << nothing.err;
  for (auto& wrong : std::vector<Strings>{{"-b", "-f"},
                                          {"-p", "x"},
                                          {"-p", "2147483647"},
                                          {"-l", "/nonexistent\x1b"},
                                          {"-l", ""},
                                          {"a", "b"},
                                          {""},
                                          {"--nonsense"}}) {
    SCOPED_TRACE(::testing::PrintToString(wrong));
    Strings arguments{"tplist"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    auto result = list(arguments);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(safe_for_terminals(result.err)) << result.err;
  }
  auto file = list({"tplist", "-l", "/etc/passwd"});
  EXPECT_EQ(file.status, 1);
  EXPECT_TRUE(contains(file.err, "no program or library")) << file.err;
  auto user = list({"tplist"}, as_nobody({}));
  if (user.status >= 126) throw Skip("cannot give up rights here: " + user.err);
  if (user.status != 0) {
    EXPECT_EQ(user.status, 3);
    EXPECT_TRUE(contains(user.err, "hint: ")) << user.err;
  }
}

TOOL_TEST(Bpflist, HasTheObjectsOfATool) {
  Tracer tracer("opensnoop", {"--json"});
  auto pid = static_cast<std::uint64_t>(tracer.process().pid());
  std::uint64_t counted = 0;
  for (auto& row : objects(list({"bpflist", "--json"}))) {
    if (row["pid"].is_null() || row["pid"].u64() != pid) continue;
    EXPECT_EQ(row["comm"].str(), "opensnoop");
    counted += row["count"].u64();
  }
  std::set<std::string> kinds;
  std::uint64_t listed = 0;
  for (auto& row : objects(list({"bpflist", "-l", "--json"}))) {
    if (row["pid"].is_null() || row["pid"].u64() != pid) continue;
    listed++;
    auto type = row["type"].str(), id = std::to_string(row["id"].u64());
    kinds.insert(type);
    auto shown = run({"/usr/sbin/bpftool", "-j", type, "show", "id", id});
    if (shown.status != 0) continue;
    auto other = Json::parse(shown.out);
    EXPECT_EQ(other["id"].u64(), row["id"].u64());
    if (type == "link") {
      EXPECT_EQ(other["prog_id"].u64(), row["prog_id"].u64());
      continue;
    }
    EXPECT_EQ(other["type"].str(), row["kind"].str());
    EXPECT_EQ(other["bytes_memlock"].u64(), row["memory_bytes"].u64());
    if (type == "map") {
      EXPECT_EQ(other["max_entries"].u64(), row["max_entries"].u64());
      EXPECT_EQ(other["bytes_key"].u64(), row["key_bytes"].u64());
    }
  }
  EXPECT_EQ(listed, counted);
  EXPECT_TRUE(kinds.contains("map") && kinds.contains("prog")) << ::testing::PrintToString(kinds);
  auto text = list({"bpflist", "-vv"});
  EXPECT_TRUE(text.out.starts_with("PID     COMM             TYPE       COUNT\n")) << text.out;
  EXPECT_TRUE(contains(text.out, "opensnoop")) << text.out;
  EXPECT_TRUE(contains(list({"bpflist", "-l"}).out, "  ATTACH\n"));
  tracer.stop_text();
}

TOOL_TEST(Bpflist, WithoutRights) {
  auto all = list({"bpflist", "-l"}, as_nobody({}));
  if (all.status >= 126) throw Skip("cannot give up rights here: " + all.err);
  EXPECT_EQ(all.status, 3) << all.err;
  EXPECT_EQ(all.out, "");
  EXPECT_TRUE(contains(all.err, "CAP_SYS_ADMIN")) << all.err;
  auto own = list({"bpflist"}, as_nobody({}));
  EXPECT_EQ(own.status, 3) << own.err;
  EXPECT_EQ(list({"bpflist", "word"}).status, 2);
}

TOOL_TEST(Lists, RunByTheirOwnNames) {
  for (std::string name : {"tplist", "bpflist"}) {
    auto help = run({tool_path(name), "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_TRUE(contains(help.out, "\nUsage: " + name + " [OPTIONS]")) << help.out;
    EXPECT_TRUE(contains(list({name, "--help"}).out, "\nUsage: coretap " + name)) << help.out;
    EXPECT_TRUE(contains(run({tool_path(name), "__complete", "--j"}).out, "--json\t"));
    EXPECT_TRUE(contains(list({"man", name}).out, "\n.Nm coretap-" + name + "\n"));
    EXPECT_TRUE(contains(list({"list"}).out, "\n  " + name + " "));
  }
}

}  // namespace
}  // namespace coretap::tooltest
