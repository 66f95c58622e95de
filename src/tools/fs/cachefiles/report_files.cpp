#include "tools/fs/cachefiles/report_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cachefiles.skel.h"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "coretap/kernel.hpp"
#include "coretap/report_kind.hpp"
#include "coretap/small_files.hpp"
#include "fs/cachefiles.h"
#include "program/session.hpp"
#include "reports/reporter.hpp"
#include "text/columns.hpp"
#include "text/terminal.hpp"
#include "tools/fs/cachefiles/cache_row.hpp"
#include "tools/fs/cachefiles/files_below.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kUsualRows = 20;  // of text
constexpr ProgramName kOpen = progs::on_file, kMapped = progs::on_area;

/// By a copy of the process's descriptor: opening the file would break leases and notify watchers.
/// Closing the copy must have no effect either (CACHEFILES_FLUSHES).
std::optional<CacheRow::Details> details_of(const CacheRow& row) {
  if (row.kind != CacheRow::file || row.fd == CACHEFILES_NO_FD || row.flags & CACHEFILES_FLUSHES ||
      !row.pid)
    return {};
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, row.pid, 0)));
  if (!process) return {};
  const Fd file(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), row.fd, 0)));
  struct statx st {};
  // The descriptor may be that of another file by now.
  if (!file ||
      statx(file.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) != 0 ||
      !S_ISREG(st.stx_mode) || st.stx_ino != row.open_inode)
    return {};
  return cachestat_of(file.get(), nullptr);
}

std::string directory_of(const std::string& path) {
  auto at = path.rfind('/');
  if (path.empty() || path[0] != '/' || at == path.npos) return "(not in a directory)";
  return at ? path.substr(0, at) : "/";
}

class CacheFilesReporter : public Reporter {
 public:
  explicit CacheFilesReporter(const CacheFilesReport& report) : report_(report) {}

  bool immediate() const override { return true; }

  void configure(Session& s) override { columns_.choose(s.config, report_.fields); }

  Result<void> open(Session& s) override {
    if (report_.below) return read_below(s);
    if (s.config.given("details")) s.retained.add(Capability::sys_ptrace);
    if (auto r = s.source->open_iterator(kOpen); !r) return r;
    areas_ = s.kernel.has_function("bpf_iter_task_vma");
    return areas_ ? s.source->open_iterator(kMapped) : Result<void>();
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv) s.out.line("time," + columns_.keys());
  }

  void report(Session& s) override {
    if (report_.below) {
      if (shown_ && !s.complete(read_below(s))) return;
    } else {
      files_.clear();
      if (!read(s, kOpen) || (areas_ && !read(s, kMapped))) return;
    }
    auto rows = report_.by_directory ? directories() : files();
    s.ledger.shown += rows.size();
    std::ranges::stable_sort(rows, std::ranges::greater(), &CacheRow::cached);
    if (auto top = s.config.rows.top; top && rows.size() > top) put_together(rows, top);
    if (s.config.given("details"))
      for (auto& row : rows) row.details = details_of(row);
    if (unread_) rows.push_back({.kind = CacheRow::unread, .files = unread_});
    if (!s.config.filters_tasks()) add_rest(rows);
    show(s, rows);
    shown_ = true;
  }

 private:
  Result<void> read_below(Session& s) {
    auto found = files_below(std::string(s.config.text("below")));
    if (!found) return found.error();
    files_.clear();
    unread_ = found->unread;
    for (auto& row : found->rows) files_[files_.size()].row = std::move(row);
    return {};
  }

  struct Found {
    CacheRow row;
    std::set<std::uint32_t> processes;
  };

  bool read(Session& s, ProgramName iterator) {
    auto bytes = s.source->pass(iterator, 1);
    if (!bytes) {
      s.complete(bytes.error());
      return false;
    }
    std::string_view rest(*bytes);
    cachefiles_file f;
    while (rest.size() >= sizeof f) {
      memcpy(&f, rest.data(), sizeof f);
      if (f.size < sizeof f || f.size > rest.size()) break;
      take(f, rest.substr(sizeof f, f.size - sizeof f));
      rest.remove_prefix(f.size);
    }
    return true;
  }

  void take(const cachefiles_file& f, std::string_view path) {
    auto [at, is_new] = files_.try_emplace(f.mapping);
    auto& row = at->second.row;
    if (f.pid) at->second.processes.insert(f.pid);
    if (is_new) {
      row.kind = f.flags & CACHEFILES_DEVICE ? CacheRow::device : CacheRow::file;
      row.cached = f.pages * page_bytes();
      row.size = f.bytes;
      row.inode = f.inode;
      row.open_inode = f.open_inode;
      row.mapping = f.mapping;
      row.number = f.device;
      row.pid = f.pid;
      row.fd = f.fd;
      row.comm = text_in(f.comm);
      row.fs = text_in(f.fs);
      row.files = 1;
    }
    row.flags |= f.flags;
    if (row.path.empty() && f.flags & CACHEFILES_HAS_PATH) row.path = file_path(path, f.path_kind);
    if (f.looked) {
      row.owner = f.owner;
      row.owned = f.owned;
      row.looked = f.looked;
    }
  }

  std::vector<CacheRow> files() const {
    std::vector<CacheRow> rows;
    rows.reserve(files_.size());
    for (auto& [mapping, found] : files_) {
      rows.push_back(found.row);
      rows.back().processes = found.processes.size();
    }
    return rows;
  }

  std::vector<CacheRow> directories() const {
    std::map<std::string, CacheRow> all;
    for (auto& [mapping, found] : files_) {
      auto& from = found.row;
      if (from.kind != CacheRow::file) continue;
      auto& row = all[directory_of(from.path)];
      row.cached += from.cached;
      row.files++;
    }
    std::vector<CacheRow> rows;
    for (auto& [path, row] : all) {
      rows.push_back(row);
      rows.back().path = path;
    }
    return rows;
  }

  /// The rows after the first ones as one.
  static void put_together(std::vector<CacheRow>& rows, std::uint64_t top) {
    CacheRow others{.kind = CacheRow::others};
    for (auto i = top; i < rows.size(); i++) {
      others.cached += rows[i].cached;
      others.files += rows[i].files;
    }
    rows.resize(top);
    rows.push_back(std::move(others));
  }

  /// The kernel's counts of the cache, less these files.
  void add_rest(std::vector<CacheRow>& rows) const {
    std::uint64_t of_files = 0, of_devices = 0;
    for (auto& [mapping, found] : files_)
      (found.row.kind == CacheRow::device ? of_devices : of_files) += found.row.cached;
    auto cached = memory_kb("Cached") << 10, buffers = memory_kb("Buffers") << 10;
    rows.push_back({.kind = CacheRow::rest, .cached = cached > of_files ? cached - of_files : 0});
    rows.push_back({.kind = CacheRow::rest_of_devices,
                    .cached = buffers > of_devices ? buffers - of_devices : 0});
  }

  void show(Session& s, const std::vector<CacheRow>& rows) {
    auto stamp = iso_time(monotonic_ns());
    if (s.config.format != OutputFormat::text) {
      const bool csv = s.config.format == OutputFormat::csv;
      for (auto& row : rows)
        s.out.line(columns_.line({csv, "snapshot", s.tool.name, stamp}, &row, s.names));
      return;
    }
    auto limit = line_limit();
    if (shown_) s.out.write("\n");
    if (s.config.given("timestamp")) s.out.line(wall_time());
    s.out.title(cut_to(columns_.titles(), limit));
    for (auto& row : rows) s.out.line(cut_to(columns_.row(&row, s.names), limit));
  }

  const CacheFilesReport& report_;
  Columns columns_;
  std::map<std::uint64_t, Found> files_;  ///< by the address of their cache
  std::uint64_t unread_ = 0;              ///< files that could not be opened
  bool areas_ = false, shown_ = false;
};

class CacheFilesKind : public ReportKind {
 public:
  explicit CacheFilesKind(CacheFilesReport report) : report_(std::move(report)) {}

  std::string_view name() const override { return "cache"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<CacheFilesReporter>(report_);
  }
  std::vector<Field> fields() const override { return report_.fields; }
  bool names_processes() const override { return false; }  // its own files are in the cache, too
  bool has_program() const override { return !report_.below; }
  std::string source() const override { return "the files below a directory, by cachestat(2)"; }

  std::vector<JsonKind> json() const override {
    JsonKind kind{"snapshot", "several per report", {type_key("snapshot"), time_key()}};
    const CacheRow prototype;
    for (auto& f : report_.fields)
      if (!f.table_only) kind.keys.push_back(key_of(f, &prototype, f.only_with));
    return {kind};
  }
  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key()};
    const CacheRow prototype;
    for (auto& f : report_.fields)
      if (!f.table_only) all.push_back(csv_key_of(f, &prototype, f.only_with));
    return all;
  }

  void manual(Manual& m) const override {
    m.prose(fmt::format(
        "{} at that moment, the largest part of the page cache first: immediately, and again at each "
        "interval. The last two rows are the rest of Cached and of Buffers in /proc/meminfo; with "
        "filters by task they are left out.",
        report_.by_directory ? "A row for each directory"
        : report_.below      ? "A row for each file below the directory"
                             : "A row for each open or mapped file"));
    m.fields(report_.fields);
  }

  Result<void> check(Config& c) const override {
    if (report_.below && c.filters_tasks())
      return usage("--below shows files whether they are open or not: no process filters them",
                   "leave out the filters by task and the command");
    if (!c.given("top") && c.format == OutputFormat::text) c.rows.top = kUsualRows;
    return {};
  }

 private:
  CacheFilesReport report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(CacheFilesReport report) {
  return std::make_shared<CacheFilesKind>(std::move(report));
}

}  // namespace coretap
