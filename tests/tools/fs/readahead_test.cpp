// readahead against a process that reads a file of known size which is not in the cache.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// Blocks that the file system looks its extents up in, and pages of the workload's own code.
constexpr std::uint64_t kFew = 64;

/// What the counters of a report say of each other.
void check(const Json& line) {
  EXPECT_EQ(line["type"].str(), "histogram");
  check_histogram(line, 1'000'000);
  auto read = line["read_pages"].u64(), used = line["used_pages"].u64(),
       dropped = line["dropped_pages"].u64();
  EXPECT_EQ(line["unused_pages"].u64(), read > used + dropped ? read - used - dropped : 0);
  EXPECT_LE(line["count"].u64(), read);
}

struct Observed {
  Json line, truth;
  std::uint64_t pages;
};

Observed observe(Strings arguments) {
  require_tool("readahead");
  Workload workload("pagecache", std::move(arguments), kLinger);
  Tracer tracer("readahead", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  if (report.body.size() != 1) throw std::runtime_error("one report was expected");
  check(report.body[0]);
  return {report.body[0], truth, truth["file_pages"].u64()};
}

TOOL_TEST(Readahead, ReadsUseAllOfIt) {
  for (auto* size : {"4096", "65536", "1m"}) {
    SCOPED_TRACE(size);
    auto seen = observe({"--phase", "cold", "--read-size", size});
    EXPECT_GE(seen.line["read_pages"].u64(), seen.pages);
    EXPECT_LE(seen.line["read_pages"].u64(), seen.pages + kFew);
    EXPECT_GE(seen.line["used_pages"].u64(), seen.pages);
    EXPECT_LE(seen.line["unused_pages"].u64(), kFew);
    EXPECT_EQ(seen.line["count"].u64(), seen.line["used_pages"].u64());
    // The oldest page is no older than the reading took.
    EXPECT_LE(seen.line["total_ns"].u64(),
              seen.pages * seen.truth["phases"].items().at(0)["took_ns"].u64());
  }
}

TOOL_TEST(Readahead, FaultsUseIt) {
  auto seen = observe({"--phase", "mmap-cold"});
  EXPECT_GE(seen.line["read_pages"].u64(), seen.pages);
  EXPECT_LE(seen.line["read_pages"].u64(), seen.pages + kFew);
  EXPECT_GE(seen.line["used_pages"].u64(), seen.pages);
  EXPECT_LE(seen.line["unused_pages"].u64(), kFew);
}

TOOL_TEST(Readahead, WarmReadsAndWritesReadNothing) {
  for (auto* phase : {"warm", "write"}) {
    SCOPED_TRACE(phase);
    auto seen = observe({"--phase", phase});
    EXPECT_LE(seen.line["read_pages"].u64(), kFew);
  }
}

/// A file on a disk, none of it in the cache.
class ColdFile {
 public:
  explicit ColdFile(std::size_t bytes) {
    for (std::string directory : {"/mnt/disk", "/var/tmp", "/tmp"}) {
      auto path = directory + "/coretap-readahead-XXXXXX";
      fd_ = ::mkostemp(path.data(), O_CLOEXEC);
      if (fd_ < 0) continue;
      ::unlink(path.c_str());
      std::string content(bytes, 'x');
      if (::write(fd_, content.data(), bytes) != static_cast<ssize_t>(bytes) || ::fsync(fd_))
        throw std::runtime_error("cannot write " + path);
      bytes_ = bytes;
      for (int i = 0; i < 50 && cached(); i++) {
        drop();
        ::usleep(10'000);
      }
      if (!cached()) return;
      ::close(fd_);
    }
    throw Skip("no directory on a disk whose files leave the cache");
  }
  ~ColdFile() { ::close(fd_); }
  ColdFile(const ColdFile&) = delete;
  ColdFile& operator=(const ColdFile&) = delete;

  int fd() const { return fd_; }
  void drop() const { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED); }
  std::uint64_t cached() const {
    auto pages = bytes_ / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> in_core(pages);
    auto* at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED || ::mincore(at, bytes_, in_core.data()))
      throw std::runtime_error("mincore");
    ::munmap(at, bytes_);
    return static_cast<std::uint64_t>(
        std::count_if(in_core.begin(), in_core.end(), [](auto c) { return c & 1; }));
  }

 private:
  int fd_ = -1;
  std::size_t bytes_ = 0;
};

// Read ahead on advice, left for a while, used in part, and the rest dropped.
TOOL_TEST(Readahead, UnusedAndDropped) {
  require_tool("readahead");
  ColdFile file(1 << 20);
  Tracer tracer("readahead", {"--json", "--strict", "-p", std::to_string(::getpid())});
  if (::posix_fadvise(file.fd(), 0, 1 << 20, POSIX_FADV_WILLNEED))
    throw std::runtime_error("fadvise");
  // They count as cached when the device has delivered them.
  std::uint64_t ahead = 0;
  for (int i = 0; i < 100 && (!ahead || ahead != file.cached()); i++) {
    ahead = file.cached();
    ::usleep(50'000);
  }
  ASSERT_GT(ahead, 0u);
  ::usleep(200'000);
  char page[4096];
  for (off_t at = 0; at < 1 << 18; at += sizeof page)
    ASSERT_EQ(::pread(file.fd(), page, sizeof page, at), static_cast<ssize_t>(sizeof page));
  auto wanted = (1u << 18) / static_cast<unsigned>(::sysconf(_SC_PAGESIZE));
  auto grown = file.cached();  // a page read may begin more read-ahead
  for (int i = 0; i < 50 && file.cached(); i++) {
    file.drop();
    ::usleep(10'000);
  }
  auto left = file.cached();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto line = report.body[0];
  check(line);
  EXPECT_GE(line["read_pages"].u64(), grown);
  EXPECT_LE(line["read_pages"].u64(), grown + kFew);
  EXPECT_GE(line["used_pages"].u64(), wanted);
  EXPECT_LE(line["used_pages"].u64(), wanted + kFew) << "a large folio is used as a whole";
  EXPECT_GE(line["dropped_pages"].u64() + left + kFew, grown - wanted);
  EXPECT_LE(line["dropped_pages"].u64(), grown - wanted + kFew);
  std::uint64_t old = 0;
  for (auto& slot : line["histogram"].items())
    if (slot["from_ns"].u64() >= 100'000'000) old += slot["count"].u64();
  EXPECT_GE(old + kFew, wanted) << "they lay unused for 200 ms";
  EXPECT_GT(old, 0u);
}

// The totals of each report are in CSV as in JSON; of one without values too.
TOOL_TEST(Readahead, TotalsInCsv) {
  require_tool("readahead");
  Workload workload("pagecache", {"--phase", "cold"}, kLinger);
  Tracer json("readahead", {"--json", "-p", workload.id()});
  Tracer csv("readahead", {"--csv", "-p", workload.id()});
  Tracer nobody("readahead", {"--csv", "-u", "54321"});
  workload.release();
  workload.truth();
  auto line = json.stop().body.at(0);
  std::istringstream lines(csv.stop_text());
  std::string text;
  ASSERT_TRUE(std::getline(lines, text));
  EXPECT_EQ(text, "time,unused_pages,read_pages,used_pages,dropped_pages,from_ns,below_ns,count");
  std::uint64_t count = 0, rows = 0;
  for (; std::getline(lines, text); rows++) {
    auto cells = csv_fields(text);
    ASSERT_EQ(cells.size(), 8u) << text;
    EXPECT_EQ(cells[1], std::to_string(line["unused_pages"].u64()));
    EXPECT_EQ(cells[2], std::to_string(line["read_pages"].u64()));
    EXPECT_EQ(cells[3], std::to_string(line["used_pages"].u64()));
    EXPECT_EQ(cells[4], std::to_string(line["dropped_pages"].u64()));
    count += std::stoull(cells[7]);
  }
  EXPECT_EQ(rows, line["histogram"].items().size());
  EXPECT_EQ(count, line["count"].u64());
  EXPECT_TRUE(nobody.stop_text().ends_with(",0,0,0,0,,,0\n"));
}

TOOL_TEST(Readahead, TextAndFilters) {
  require_tool("readahead");
  Workload workload("pagecache", {"--phase", "cold"}, kLinger);
  Tracer text("readahead", {"-p", workload.id()});
  Tracer nobody("readahead", {"--json", "--strict", "-u", "54321"});
  workload.release();
  workload.truth();
  auto shown = text.stop_text();
  static const std::regex whole(
      R"(\nReadahead unused/total pages: \d+/\d+\n +msecs +: count +distribution\n( +\d+ -> \d+ +: \d+ +\|.*\n)+)");
  EXPECT_TRUE(std::regex_match(shown, whole)) << shown;
  EXPECT_EQ(nobody.stop().body.at(0)["read_pages"].u64(), 0u);
}

const DeclareTests kReadahead{{
    .name = "readahead",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "pagecache --size 262144 --phase cold"},
    .stress = {.workload = "pagecache --phase cold --rounds {n}",
               .events = 2,
               .shown = "used_pages",
               .truth = "page_accesses",
               .slack = kFew},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
