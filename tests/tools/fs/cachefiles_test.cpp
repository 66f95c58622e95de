// cachefiles against a program that holds a file with a known number of cached pages (mincore), and
// /proc/meminfo.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

namespace fs = std::filesystem;

/// A line of /proc/meminfo, in KB.
std::uint64_t meminfo(const std::string& name) {
  for (auto& line : complete_lines(slurp("/proc/meminfo")))
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1));
  return 0;
}

/// The row of the workload's file among those of this process.
Json row_of(const Workload& workload, const Strings& options = {}) {
  auto report = report_of(Strings("cachefiles --json -p") + Strings{workload.id()} + options);
  return line_with(report.body, {{"inode", workload.ready()["inode"].u64()}, {"kind", "file"}});
}

std::uint64_t cached_bytes(const Workload& workload) {
  return workload.ready()["cached_pages"].u64() * workload.ready()["page"].u64();
}

TOOL_TEST(Cachefiles, AnOpenFile) {
  require_tool("cachefiles");
  for (auto* options : {"--size 3000000", "--half", "--half --threads 64", "--size 1"}) {
    Workload workload("caching", Strings(options));
    auto row = row_of(workload);
    expect_fields(row, {{"cached_bytes", cached_bytes(workload)},
                        {"size_bytes", workload.ready()["size"].u64()},
                        {"path", workload.ready()["path"].str()},
                        {"pid", workload.pid()},
                        {"comm", "caching"},
                        {"processes", 1},
                        {"mapped", false},
                        {"dirty", false},
                        {"writeback", false},
                        {"deleted", false}});
    workload.release();
  }
}

// Any thread stands for its process.
TOOL_TEST(Cachefiles, OfAThread) {
  require_tool("cachefiles");
  Workload workload("caching", "--threads 3");
  for (auto& thread : fs::directory_iterator("/proc/" + workload.id() + "/task")) {
    auto tid = thread.path().filename().string();
    auto report = report_of(Strings("cachefiles --json -t") + Strings{tid});
    auto row = line_with(report.body, {{"inode", workload.ready()["inode"].u64()}});
    expect_fields(row, {{"pid", workload.pid()}, {"processes", 1}});
  }
  workload.release();
}

TOOL_TEST(Cachefiles, OfSeveralProcessesAndWithoutAName) {
  require_tool("cachefiles");
  Workload workload("caching", "--unlink --children 5");
  auto report = report_of("cachefiles --json");
  auto row =
      line_with(report.body, {{"inode", workload.ready()["inode"].u64()}, {"deleted", true}});
  expect_fields(row, {{"cached_bytes", cached_bytes(workload)}, {"processes", 6}});
  workload.release();
}

TOOL_TEST(Cachefiles, AMappedFile) {
  require_tool("cachefiles");
  Workload workload("caching", "--mapped");
  if (!report_of("cachefiles --json 1 1").header["limits"].items().empty())
    throw Skip("no iterator over mappings");
  expect_fields(row_of(workload), {{"cached_bytes", cached_bytes(workload)},
                                   {"path", workload.ready()["path"].str()},
                                   {"mapped", true}});
  workload.release();
}

// The kernel writes them back after 30 s.
TOOL_TEST(Cachefiles, DirtyPages) {
  require_tool("cachefiles");
  for (int pages : {1, 200}) {
    Workload workload("caching", "--dirty " + std::to_string(pages));
    expect_fields(row_of(workload), {{"dirty", true}});
    auto detailed = result_of(Strings("cachefiles --json --details -p") + Strings{workload.id()});
    if (detailed.status == 3) {
      workload.release();
      continue;
    }
    auto row = line_with(parse_report(detailed.out, detailed.err).body,
                         {{"inode", workload.ready()["inode"].u64()}, {"kind", "file"}});
    if (!row["dirty_bytes"].is_null()) {  // overlayfs and 9p act on each close
      // A large folio is dirty as a whole.
      EXPECT_GE(row["dirty_bytes"].u64(),
                static_cast<std::uint64_t>(pages) * workload.ready()["page"].u64());
      EXPECT_LE(row["dirty_bytes"].u64(), row["cached_bytes"].u64());
      EXPECT_EQ(row["writeback_bytes"].u64(), 0u);
    }
    workload.release();
  }
}

// All rows add up to what the kernel counts.
TOOL_TEST(Cachefiles, NothingIsLeftOut) {
  Workload one("caching", ""), other("caching", "");
  auto before = (meminfo("Cached") + meminfo("Buffers")) << 10;
  for (auto* options : {"cachefiles --json", "cachefiles --json --top 3"}) {
    auto report = report_of(options);
    auto after = (meminfo("Cached") + meminfo("Buffers")) << 10;
    auto slack = std::max(before, after) / 10 + (16 << 20);
    expect_within(report,
                  {between("cached_bytes", std::min(before, after) - std::min(slack, before),
                           std::max(before, after) + slack)});
    EXPECT_EQ(lines_with(report.body, {{"kind", "rest"}}).size(), 1u);
  }
  auto top = report_of("cachefiles --json --top 1").body;
  EXPECT_EQ(lines_with(top, {{"kind", "others"}}).size(), 1u);
  EXPECT_EQ(lines_with(top, {{"kind", "file"}}).size(), 1u);
  one.release();
  other.release();
}

TOOL_TEST(Cachefiles, ByDirectory) {
  require_tool("cachefiles");
  Workload workload("caching", "--half");
  auto path = fs::path(workload.ready()["path"].str());
  auto report = report_of(Strings("cachefiles --json --by-directory -p") + Strings{workload.id()});
  auto row = line_with(report.body, {{"directory", path.parent_path().string()}});
  EXPECT_GE(row["cached_bytes"].u64(), cached_bytes(workload));
  EXPECT_GE(row["file_count"].u64(), 1u);
  workload.release();
}

/// A directory where the workload has found a disk.
struct OwnDirectory {
  explicit OwnDirectory(const Workload& workload)
      : path(fs::path(workload.ready()["path"].str()).parent_path() /
             ("cachefiles-" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~OwnDirectory() { fs::remove_all(path); }
  fs::path path;
};

// The output of the kernel's iterator is full many times meanwhile: no file gets lost, and each
// has its path, though all are opened twice.
TOOL_TEST(Cachefiles, ManyFilesWithLongNames) {
  require_tool("cachefiles");
  constexpr int kFiles = 400;
  Workload workload("caching", "");
  OwnDirectory directory(workload);
  struct Open {
    ~Open() {
      for (int fd : all) ::close(fd);
    }
    std::vector<int> all;
  } open;
  std::set<std::string> names;
  for (int i = 0; i < kFiles; i++) {
    auto name = directory.path / (std::string(200, 'n') + std::to_string(i));
    for (int twice = 0; twice < 2; twice++)
      open.all.push_back(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::write(open.all.back(), "x", 1), 1) << strerror(errno);
    names.insert(name.string());
  }
  auto report = report_of(Strings("cachefiles --json -p") + Strings{std::to_string(::getpid())});
  for (auto& row : report.body)
    if (row["path"].is_string()) names.erase(row["path"].str());
  EXPECT_TRUE(names.empty()) << names.size() << " have no row: " << *names.begin();
  workload.release();
}

// A file that is closed.
TOOL_TEST(Cachefiles, BelowADirectory) {
  Workload workload("caching", "--half --mapped");
  OwnDirectory own(workload);
  auto& directory = own.path;
  fs::create_directories(directory / "below");
  auto file = directory / "below" / "closed", fifo = directory / "fifo";
  std::ofstream(file) << std::string(300'000, 'x') << std::flush;
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink(workload.ready()["path"].str(), directory / "link");
  workload.release();

  auto result = result_of(Strings("cachefiles --json --below") + Strings{directory.string()});
  if (result.status == 3) throw Skip("no cachestat(2)");
  ASSERT_EQ(result.status, 0) << result.err;
  auto row = line_with(parse_report(result.out, result.err).body, {{"kind", "file"}});
  expect_fields(row, {{"path", file.string()}, {"size_bytes", 300'000}});
  EXPECT_GE(row["cached_bytes"].u64(), 300'000u);
  EXPECT_LE(row["dirty_bytes"].u64(), row["cached_bytes"].u64());
  expect_refused("cachefiles --below /proc", {"/proc"});
  expect_refused("cachefiles --below /no/such/directory");
  expect_refused("cachefiles --below / -p 1");
}

// A file that a process has open, and another one read in a memory cgroup that cannot hold it.
TOOL_TEST(Cachefiles, Owner) {
  Workload workload("rereads", "--rounds 2 --size 40000000", kLinger);
  workload.release();
  auto truth = workload.truth();
  auto report = report_of(Strings("cachefiles --json --owner -p") + Strings{workload.id()});
  auto row = line_with(report.body, {{"size_bytes", 40'000'000}, {"kind", "file"}});
  expect_fields(row, {{"owner_cgroup_id", truth["cgroup_id"].u64()}});
  EXPECT_EQ(row["owner_ratio"].real(), 1.0);
  if (!row["owner_cgroup"].is_null()) {  // version 1 has its names elsewhere
    EXPECT_TRUE(truth["cgroup"].str().ends_with(row["owner_cgroup"].str())) << row.text();
  }
  for (auto& line : report.body)
    if (!line["owner_ratio"].is_null()) {
      expect_between(line["owner_ratio"].real(), 0.0, 1.0);
    }
  expect_refused("cachefiles --owner --by-cgroup", {"--owner"});
}

// A cgroup that holds the pages of a file that is read in it.
TOOL_TEST(Cachefiles, ByCgroup) {
  auto rows = report_of("cachefiles --json --by-cgroup").body;
  auto root = line_with(rows, {{"cgroup", "/"}});
  auto most = root["cached_bytes"].u64() * 11 / 10 + (16 << 20);
  for (auto& row : rows) EXPECT_LE(row["cached_bytes"].u64(), most);
  EXPECT_EQ(rows[0]["cached_bytes"].u64(), root["cached_bytes"].u64());
}

TOOL_TEST(Cachefiles, Text) {
  auto lines = complete_lines(output_of("cachefiles --top 2"));
  EXPECT_EQ(words(lines.at(0)), words("CACHED(KB) IN-CACHE% STATE PROCS COMM FILE"));
  lines = complete_lines(output_of("cachefiles -e --top 2"));
  EXPECT_EQ(words(lines.at(0)),
            words("CACHED(KB) SIZE(KB) IN-CACHE% STATE PROCS PID COMM FS DEV INODE FILE"));
  EXPECT_LE(lines.size(), 6u);
  expect_refused("cachefiles --by-cgroup --by-directory");
  expect_refused("cachefiles --by-cgroup -p 1");
}

TESTS_OF(cachefiles, .reports = {{ReportKind::snapshot}},
         .events = {.options = "0.1", .command = "caching --threads 4 --ms 1000"},
         .long_run = {{.arguments = "1"}});

}  // namespace
}  // namespace coretap::tooltest
