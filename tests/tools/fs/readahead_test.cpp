// readahead against a process that reads a file of known size which is not in the cache.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// The only histogram; its counters must be consistent.
Json histogram_of(const Report& report) {
  auto line = line_with(report.body, {});
  check_histogram(line, 1'000'000);
  auto read = line["read_pages"].u64(),
       gone = line["used_pages"].u64() + line["dropped_pages"].u64();
  expect_fields(line, {{"type", "histogram"}, {"unused_pages", read > gone ? read - gone : 0}});
  EXPECT_LE(line["count"].u64(), read);
  return line;
}

struct ReadAhead {
  Json line, truth;
  std::uint64_t pages;
};

ReadAhead read_ahead(const std::string& options) {
  auto seen = observe("readahead --json --strict -p {pid}", "pagecache " + options);
  return {histogram_of(seen.report()), seen.truth, seen.truth["file_pages"].u64()};
}

void expect_all_used(const ReadAhead& seen) {
  expect_within(std::vector{seen.line},
                {between("read_pages", seen.pages, seen.pages + kFewPages),
                 at_least("used_pages", seen.pages), at_most("unused_pages", kFewPages)});
}

TOOL_TEST(Readahead, ReadsUseAllOfIt) {
  for (std::string size : {"4096", "65536", "1m"}) {
    SCOPED_TRACE(size);
    auto seen = read_ahead("--phase cold --read-size " + size);
    expect_all_used(seen);
    EXPECT_EQ(seen.line["count"].u64(), seen.line["used_pages"].u64());
    // The oldest page is at most as old as the reading took.
    EXPECT_LE(seen.line["total_ns"].u64(),
              seen.pages * seen.truth["phases"].items().at(0)["took_ns"].u64());
  }
}

TOOL_TEST(Readahead, FaultsUseIt) { expect_all_used(read_ahead("--phase mmap-cold")); }

TOOL_TEST(Readahead, WarmReadsAndWritesReadNothing) {
  for (std::string phase : {"warm", "write"}) {
    SCOPED_TRACE(phase);
    EXPECT_LE(read_ahead("--phase " + phase).line["read_pages"].u64(), kFewPages);
  }
}

/// A file on a disk, with no pages in the cache.
class ColdFile {
 public:
  explicit ColdFile(std::size_t bytes) : bytes_(bytes) {
    for (std::string directory : {"/mnt/disk", "/var/tmp", "/tmp"}) {
      auto path = directory + "/coretap-readahead-XXXXXX";
      fd_ = ::mkostemp(path.data(), O_CLOEXEC);
      if (fd_ < 0) continue;
      ::unlink(path.c_str());
      std::string content(bytes, 'x');
      if (::write(fd_, content.data(), bytes) != static_cast<ssize_t>(bytes) || ::fsync(fd_))
        throw std::runtime_error("cannot write " + path);
      if (drop() == 0) return;
      ::close(fd_);
    }
    throw Skip("no directory on a disk whose files leave the cache");
  }
  ~ColdFile() { ::close(fd_); }
  ColdFile(const ColdFile&) = delete;
  ColdFile& operator=(const ColdFile&) = delete;

  int fd() const { return fd_; }
  /// Drops it from the cache; returns the number of pages that remain.
  std::uint64_t drop() const {
    for (int i = 0; i < 50 && cached(); i++) {
      ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
      ::usleep(10'000);
    }
    return cached();
  }
  std::uint64_t cached() const {
    std::vector<unsigned char> in_core(bytes_ / static_cast<std::size_t>(::getpagesize()));
    auto* at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED || ::mincore(at, bytes_, in_core.data()))
      throw std::runtime_error("mincore");
    ::munmap(at, bytes_);
    return static_cast<std::uint64_t>(std::ranges::count_if(in_core, [](auto c) { return c & 1; }));
  }

 private:
  int fd_ = -1;
  std::size_t bytes_;
};

// Read ahead on advice, left for a while, used in part, and the rest dropped.
TOOL_TEST(Readahead, UnusedAndDropped) {
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
  auto wanted = (1u << 18) / static_cast<unsigned>(::getpagesize());
  auto grown = file.cached();  // a page read may start more read-ahead
  auto left = file.drop();
  auto line = histogram_of(tracer.stop());
  expect_within(std::vector{line},
                {{"read_pages", grown, grown + kFewPages},
                 {"used_pages", wanted, wanted + kFewPages},  // a large folio counts as wholly used
                 {"dropped_pages", 0, grown - wanted + kFewPages}});
  EXPECT_GE(line["dropped_pages"].u64() + left + kFewPages, grown - wanted);
  std::uint64_t old = 0;
  for (auto& slot : line["histogram"].items())
    if (slot["from_ns"].u64() >= 100'000'000) old += slot["count"].u64();
  EXPECT_GE(old + kFewPages, wanted) << "they lay unused for 200 ms";
  EXPECT_GT(old, 0u);
}

TOOL_TEST(Readahead, TextAndFilters) {
  auto seen = observe_all({"readahead -p {pid}", "readahead --json --strict -u 54321"},
                          "pagecache --phase cold");
  const std::regex whole(
      R"(\nReadahead unused/total pages: \d+/\d+\n +msecs +: count +distribution\n( +\d+ -> \d+ +: \d+ +\|.*\n)+)");
  EXPECT_TRUE(std::regex_match(seen.text(0), whole)) << seen.text(0);
  expect_fields(only(seen.body(1)), {{"read_pages", 0}});
}

TESTS_OF(readahead, .events = {{}, "pagecache --size 262144 --phase cold"},
         .stress = total_row("pagecache --phase cold --rounds {n}", 2, "used_pages",
                             "page_accesses")
                       .with_slack(kFewPages));

}  // namespace
}  // namespace coretap::tooltest
