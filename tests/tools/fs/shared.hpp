// Shared by tests of files and of memory.
#pragma once

#include <future>

#include "../harness.hpp"

namespace coretap::tooltest {

/// Blocks of extent metadata of a file system, and pages of a workload's own code.
inline constexpr std::uint64_t kFewPages = 64;
/// Calls with which a workload prints its truth and waits for the test.
inline constexpr std::uint64_t kFewCalls = 10;

/// Checks the titles and rows of a table; returns the number of rows.
inline std::size_t expect_table(const std::string& text, const Strings& titles,
                                const std::string& row, Location where = Location::current()) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), text);
  auto rows = lines(text);
  EXPECT_EQ(words(text), titles);
  if (!rows.empty()) rows.erase(rows.begin());
  for (auto& line : rows) EXPECT_TRUE(std::regex_match(line, std::regex(row))) << line;
  return rows.size();
}

/// A number of /proc/meminfo.
inline std::uint64_t meminfo_bytes(const std::string& key) {
  for (auto& line : lines(slurp("/proc/meminfo")))
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) << 10;
  throw std::runtime_error(key + " is not in /proc/meminfo");
}

/// Its kernel stack has a frame with each of these, and none of our programs.
inline void expect_kernel_frames(const Json& event, std::initializer_list<const char*> parts,
                                 Location where = Location::current()) {
  const testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), event.text());
  for (auto* part : parts) EXPECT_TRUE(has_frame(event, "kernel_stack", part)) << part;
  EXPECT_FALSE(has_frame(event, "kernel_stack", "bpf_")) << "our own frames are left out";
}

/// Observes a workload; also returns the truth of another one, finished before; {other} is its PID.
inline std::pair<Observed, Json> observe_beside(const Strings& other, const Strings& tools,
                                                const Strings& workload,
                                                const Workload::How& how = kLinger) {
  for (auto& tool : tools) require_tool(words(tool).at(0));
  Scene scene(workload, how);
  auto beside = Workload::of(other, how);
  for (auto& tool : tools)
    scene.trace(std::regex_replace(tool, std::regex("\\{other\\}"), beside.id()));
  beside.release();
  auto truth = beside.truth();
  return {scene.finish(), truth};
}

/// The tests of a tool that counts calls by which processes read and write.
inline ToolTests of_reads_and_writes(const std::string& tool, std::uint64_t slack = 0) {
  return {
      .name = tool,
      .events = {{}, "fileio --count 5"},
      .stress = count_row("fileio --count {n}", 20000, "reads+writes", "calls").with_slack(slack)};
}

/// A tool's output for a thread that does only this work.
inline Observed observe_thread(const Strings& tool, const std::function<void()>& work) {
  require_tool(tool.at(0));
  std::promise<pid_t> id;
  std::jthread thread([&](const std::stop_token& go) {
    id.set_value(gettid());
    while (!go.stop_requested()) nap(std::chrono::milliseconds(1));
    work();
  });
  Strings options(tool.begin() + 1, tool.end());
  Tracer tracer(tool[0], options + Strings{"-t", std::to_string(id.get_future().get())});
  thread.request_stop();
  thread.join();
  Observed seen;
  seen.add(tracer);
  return seen;
}

/// Files that a command maps when it starts: by its own output, and by a tool.
struct MappedFiles {
  Report report;
  std::set<std::string> mapped, shown;
};
inline MappedFiles maps_of_command(const std::string& tool) {
  MappedFiles maps;
  std::string json;
  for (auto& line : lines(output_of(tool + " --json -- cat /proc/self/maps"))) {
    if (line[0] == '{')
      json += line + "\n";
    else if (auto path = line.find('/'); path != line.npos)
      maps.mapped.insert(line.substr(path));
  }
  maps.report = parse_report(json, "");
  for (auto& row : maps.report.body)
    if (!row["file"].is_null()) maps.shown.insert(row["file"].str());
  return maps;
}

// ---- file systems with several files of one inode number ----

/// A shell's command: makes a file system on a separate disk, goes there and does `then`.
inline std::string on_own_disk(const std::string& directory, const std::string& mkfs,
                               const std::string& then) {
  return "cd " + directory + " && truncate -s 150M image && " + mkfs +
         " image >/dev/null && mkdir disk && mount -o loop image disk && cd disk && " + then;
}
inline constexpr char kOverlay[] =
    "mkdir low up work all && "
    "mount -t overlay -o lowerdir=low,upperdir=up,workdir=work none all || exit 9; ";

/// The tool's report of the command, in a mount namespace that ends with it.
inline Report trace_mounts(const Strings& tool, const std::string& command) {
  const Strings shell{"unshare", "-m", "/bin/sh", "-c", command};
  auto traced = run(Strings{tool_path(tool[0])} + Strings(tool.begin() + 1, tool.end()) +
                    Strings{"--json", "--exit-status", "--"} + shell);
  if (traced.status) throw Skip("no such file system here: " + traced.err);
  return parse_report(traced.out, traced.err);
}

/// Such files are distinguished by types of modules, which exist since 5.11.
inline void require_types_of_modules() {
  if (kernel_before(5, 11)) throw Skip("the kernel has no types of modules");
}

// ---- tools with two ways to trace operations of a file system (bpf/lib/fs/fs_call.bpf.h) ----

inline constexpr char kFileSystems[] = "ext4 xfs btrfs f2fs fuse nfs";

/// As /proc/filesystems names it.
inline std::string type_of_mount(const std::string& type) { return type == "nfs" ? "nfs4" : type; }

/// Whether the report was made with programs at functions.
inline bool uses_functions(const Report& report) {
  for (auto& hook : report.header["hooks"].items())
    for (auto& attached : hook["attached"].strings())
      if (attached.starts_with("fentry/")) return true;
  return false;
}

/// Whether functions must be used for a type, as its module has BTF.
inline bool has_functions(const std::string& type) {
  return type != "fuse" && type != "nfs" && !kernel_before(5, 17) &&
         !slurp("/sys/kernel/btf/" + type).empty();
}

/// By the peers' names ("zfsslower"), as links, for file systems without a module in most kernels.
inline void expect_missing_modules(const std::string& suffix) {
  TemporaryDirectory links;
  int absent = 0;
  for (std::string type : {"zfs", "bcachefs"}) {
    SCOPED_TRACE(type);
    if (contains(slurp("/proc/filesystems"), "\t" + type + "\n")) continue;
    absent++;
    auto link = links.path() + "/" + type + suffix;
    ASSERT_EQ(::symlink(tool_path("coretap").c_str(), link.c_str()), 0);
    for (auto& command : {Strings{link}, Strings{tool_path("coretap"), type + suffix}}) {
      auto result = run(command);
      EXPECT_EQ(result.status, 3);
      EXPECT_EQ(result.out, "");
      expect_contains(result.err, {"does not know the file system '" + type + "'",
                                   "hint: load the module (modprobe " + type + ")"});
    }
  }
  if (!absent) throw Skip("this kernel knows them all");
}

}  // namespace coretap::tooltest
