// cachefiles: what fills the page cache, by file, directory or cgroup.
#include "fs/cachefiles.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cachefiles.skel.h"
#include "coretap/config.hpp"
#include "coretap/memory_groups.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "tools/fs/cachefiles/cache_row.hpp"
#include "tools/fs/cachefiles/files_below.hpp"
#include "tools/fs/cachefiles/report_files.hpp"

using namespace coretap;

namespace {

constexpr auto kSize = as::wide(as::kilobytes, 11);

// ---- files ----

std::string_view kind(const CacheRow& r) {
  constexpr std::string_view kKinds[] = {"file",   "device", "others",
                                         "unread", "rest",   "rest-of-devices"};
  return kKinds[r.kind];
}
Value kind_word(const CacheRow& r) { return std::string(kind(r)); }

Value cached_ratio(const CacheRow& r) {
  auto whole = r.size + 4095;  // of the last page, too
  return value_if(r.kind == CacheRow::file && r.size,
                  std::min(1.0, static_cast<double>(r.cached) / static_cast<double>(whole)));
}

template <std::uint32_t Flag>
Value has(const CacheRow& r) {
  return value_if(r.one(), (r.flags & Flag) != 0);
}
template <std::uint32_t Flag>
Field state(std::string_view key, std::string_view doc) {
  return derived<CacheRow, has<Flag>>(key, "", as::text, doc).or_null().with("json");
}
std::string states(const CacheRow& r) {
  if (!r.one()) return "-";
  std::string letters;
  for (auto [flag, letter] :
       {std::pair{CACHEFILES_DIRTY, 'D'}, {CACHEFILES_WRITEBACK, 'W'}, {CACHEFILES_MAPPED, 'M'}})
    letters += r.flags & flag ? letter : '-';
  return letters;
}

template <auto Member>
Value of_one(const CacheRow& r) {
  return value_if(r.one(), r.*Member);
}
Value files(const CacheRow& r) { return unless_0(r.files); }
Value pid(const CacheRow& r) { return unless_0(r.pid); }
Value comm(const CacheRow& r) { return value_if(!r.comm.empty(), r.comm); }
Value fs(const CacheRow& r) { return value_if(!r.fs.empty(), r.fs); }
Value device(const CacheRow& r) {
  return r.one() ? Value(fmt::format("{}:{}", r.number >> 20, r.number & 0xfffff)) : Value();
}

Value path(const CacheRow& r) { return value_if(!r.path.empty(), r.path); }
std::string path_text(const CacheRow& r) {
  switch (r.kind) {
    case CacheRow::others:
      return fmt::format("({} other files)", r.files);
    case CacheRow::unread:
      return fmt::format("({} files that could not be opened)", r.files);
    case CacheRow::rest:
      return "(rest of Cached: other files, metadata)";
    case CacheRow::rest_of_devices:
      return "(rest of Buffers: block devices)";
    default:
      return r.path + (r.flags & CACHEFILES_DELETED ? " (deleted)" : "");
  }
}

template <std::uint64_t CacheRow::Details::*Member>
Value detail_of(const CacheRow& r) {
  return r.details ? Value(std::uint64_t{(*r.details).*Member}) : Value();
}
template <std::uint64_t CacheRow::Details::*Member>
Field detail_field(std::string_view key, std::string_view title, std::string_view doc) {
  return derived<CacheRow, detail_of<Member>>(key, title, kSize, doc)
      .or_null()
      .only("details|below");
}

Field cached() {
  return field<&CacheRow::cached>("cached_bytes", "CACHED(KB)", kSize, "size in the page cache");
}
Field row_kind() {
  return derived<CacheRow, kind_word>(
      "kind", "", as::text,
      "file; device: block device; others: files that --top leaves out; unread: files that could "
      "not be opened; rest: of Cached in /proc/meminfo; rest-of-devices: of Buffers");
}

std::vector<Field> sizes() {
  FieldList fields = {
      row_kind().with("json"), cached(),
      derived<CacheRow, of_one<&CacheRow::size>>("size_bytes", "SIZE(KB)", kSize,
                                                 "size of the file")
          .or_null()
          .with("extended"),
      derived<CacheRow, cached_ratio>("cached_ratio", "IN-CACHE%", as::percent,
                                      "part of the file that is in the cache, 0 to 1")
          .or_null()};
  return fields;
}

std::vector<Field> details() {
  using Details = CacheRow::Details;
  FieldList fields = {
      detail_field<&Details::dirty>("dirty_bytes", "DIRTY(KB)",
                                    "what has to be written, in whole folios"),
      detail_field<&Details::writeback>("writeback_bytes", "WRITING(KB)", "what is being written"),
      detail_field<&Details::evicted>("evicted_bytes", "EVICTED(KB)",
                                      "what reclaim has evicted, as far as the kernel remembers"),
      detail_field<&Details::recently_evicted>(
          "recently_evicted_bytes", "RECENT(KB)",
          "the part of it that would be active if it came back: memory lacks it")};
  return fields;
}

std::vector<Field> identity() {
  FieldList fields = {
      derived<CacheRow, device>("device", "DEV", as::wide(as::text, -7), "device, as numbers")
          .or_null()
          .with("extended"),
      derived<CacheRow, of_one<&CacheRow::inode>>("inode", "INODE", as::number, "inode number")
          .or_null()
          .with("extended")};
  return fields;
}

std::vector<Field> names(std::string_view doc) {
  FieldList fields = {derived<CacheRow, path>("path", "", as::text, doc).or_null().with("json"),
                      derived<CacheRow, path_text>("path_text", "FILE", as::rest, doc).in_text()};
  return fields;
}

Value owner_id(const CacheRow& r) { return unless_0(r.owner); }
Value owner_ratio(const CacheRow& r) {
  return value_if(r.looked, static_cast<double>(r.owned) / std::max(r.looked, 1U));
}
Value owner(const CacheRow& r, const FieldContext& context) {
  if (!r.owner || !context.cgroup_name) return {};
  auto name = context.cgroup_name(r.owner, CgroupName::path);
  return value_if(!name.empty(), name);
}

std::vector<Field> owners() {
  FieldList fields = {
      derived<CacheRow, owner_ratio>("owner_ratio", "OWNER%", as::percent,
                                     "part of the pages looked at that are charged to the owner")
          .or_null()
          .only("owner"),
      derived<CacheRow, owner_id>("owner_cgroup_id", "", as::number, "id of the owner")
          .or_null()
          .only("owner")
          .with("json"),
      derived<CacheRow, owner>(
          "owner_cgroup", "OWNER", as::wide(as::text, -24),
          "memory cgroup that most of its pages are charged to; null: none, or not known")
          .or_null()
          .only("owner")};
  return fields;
}

CacheFilesReport files_report() {
  FieldList fields = {
      sizes(),
      state<CACHEFILES_DIRTY>("dirty", "it has pages to be written"),
      state<CACHEFILES_WRITEBACK>("writeback", "it has pages that are being written"),
      state<CACHEFILES_MAPPED>("mapped", "a process has mapped it"),
      derived<CacheRow, states>("state_letters", "STATE", as::wide(as::text, -5),
                                "D it has pages to be written, W pages that are being written, M a "
                                "process has mapped it")
          .in_text(),
      details(),
      derived<CacheRow, of_one<&CacheRow::processes>>("processes", "PROCS", as::small,
                                                      "processes that have it open or mapped")
          .or_null(),
      derived<CacheRow, pid>("pid", "PID", as::pid, "one of them").or_null().with("extended"),
      derived<CacheRow, comm>("comm", "COMM", as::comm, "its command name").or_null(),
      derived<CacheRow, fs>("fs", "FS", as::wide(as::text, -8), "type of the file system")
          .or_null()
          .with("extended"),
      identity(),
      owners(),
      derived<CacheRow, has<CACHEFILES_DELETED>>("deleted", "", as::text, "it has no name any more")
          .or_null()
          .with("json"),
      names("the file as a process sees it; null: the row is no file")};
  return {std::move(fields)};
}

CacheFilesReport below_report() {
  FieldList fields = {sizes(), details(), identity(), names("the file; null: the row is no file")};
  return {.fields = std::move(fields), .below = true};
}

CacheFilesReport directories_report() {
  FieldList fields = {
      row_kind().with("json"), cached(),
      derived<CacheRow, files>("file_count", "FILES", as::number, "open or mapped files").or_null(),
      derived<CacheRow, path>("directory", "", as::text,
                              "the directory; null: the row is no directory")
          .or_null()
          .with("json"),
      derived<CacheRow, path_text>("directory_text", "DIRECTORY", as::rest, "the directory")
          .in_text()};
  return {std::move(fields), true};
}

// ---- memory cgroups ----

struct GroupRow {
  std::uint64_t id = 0;
  std::string path;
  Value file, shmem, mapped, dirty, writeback, active, inactive;
};

std::uint64_t amount(const GroupRow& r) {
  auto* bytes = std::get_if<std::uint64_t>(&r.file);
  return bytes ? *bytes : 0;
}

Result<SnapshotReport::Reading> read_groups(const Config& c) {
  auto groups = memory_groups();
  if (!groups) return groups.error();
  std::vector<GroupRow> all;
  for (auto& g : *groups) {
    // Version 1 has both its own and the total names, which include those below; version 2 has
    // neither of the second column.
    const bool first = g.stat.find("\ntotal_cache ") != std::string::npos;
    auto either = [&](std::string_view second, std::string_view one) {
      auto bytes = named_number(g.stat, first ? one : second);
      return value_if(bytes.has_value(), bytes.value_or(0));
    };
    all.push_back({.id = g.id,
                   .path = g.path,
                   .file = either("file", "total_cache"),
                   .shmem = either("shmem", "total_shmem"),
                   .mapped = either("file_mapped", "total_mapped_file"),
                   .dirty = either("file_dirty", "total_dirty"),
                   .writeback = either("file_writeback", "total_writeback"),
                   .active = either("active_file", "total_active_file"),
                   .inactive = either("inactive_file", "total_inactive_file")});
  }
  std::ranges::stable_sort(all, std::ranges::greater(), amount);
  if (auto top = c.rows.top; top && all.size() > top) all.resize(top);
  return reading(std::move(all));
}

template <Value GroupRow::*Member>
Field group_field(std::string_view key, std::string_view title, std::string_view doc) {
  return derived<GroupRow, [](const GroupRow& r) { return r.*Member; }>(key, title, kSize, doc)
      .gauge()
      .or_null();
}

SnapshotReport groups_report() {
  return snapshot<GroupRow>(
             "memory.stat of each memory cgroup",
             {group_field<&GroupRow::file>(
                  "cached_bytes", "CACHED(KB)",
                  "page cache that is charged to it and to those below it"),
              group_field<&GroupRow::shmem>("shmem_bytes", "SHMEM(KB)",
                                            "of it shared memory and tmpfs"),
              group_field<&GroupRow::mapped>("mapped_bytes", "MAPPED(KB)",
                                             "of it mapped by processes"),
              group_field<&GroupRow::dirty>("dirty_bytes", "DIRTY(KB)", "of it to be written"),
              group_field<&GroupRow::writeback>("writeback_bytes", "WRITING(KB)",
                                                "of it being written"),
              group_field<&GroupRow::active>(
                  "active_bytes", "ACTIVE(KB)",
                  "files on the list of active pages, used more than once"),
              group_field<&GroupRow::inactive>("inactive_bytes", "INACT(KB)",
                                               "files on the list that reclaim takes first"),
              field<&GroupRow::id>("cgroup_id", "", as::number, "id of the cgroup").with("json"),
              field<&GroupRow::path>("cgroup", "CGROUP", as::rest, "its path").capped()},
             read_groups)
      .not_recorded();
}

/// Threads share their process's files, and the kernel shows those of the first thread only.
void take_processes(Config::Tasks& tasks) {
  if (!tasks.pids.empty() || !tasks.not_pids.empty()) return;
  for (auto tid : std::exchange(tasks.tids, {}))
    tasks.pids.push_back(static_cast<std::uint32_t>(
        read_keyed(fmt::format("/proc/{}/status", tid), "Tgid").value_or(tid)));
}

Result<void> look_up(Config& c) {
  take_processes(c.tasks);
  if (!c.given("details")) return {};
  return require_cachestat("--details",
                           "without --details STATE tells whether there are such pages");
}

}  // namespace

TOOL(cachefiles) {
  return {
      .name = "cachefiles",
      .summary = "what fills the page cache: files, directories, cgroups",
      .description =
          "The files in the page cache that processes have open or mapped, with how much of each is "
          "cached, whether it has pages to be written (D) or that are being written (W), and whether a "
          "process has mapped it (M). A file that several processes use is one row, with the "
          "number of these processes and one of them. The last rows are the rest of the cache: files "
          "that no process has open, whose names the kernel does not tell, metadata of file "
          "systems, and block devices. Shared memory, tmpfs and memfds are in the cache, too. "
          "Reading these numbers brings no page in and marks none as used.\n\n"
          "--details adds for each shown file how many bytes are dirty, being written, and evicted, "
          "from cachestat(2) (Linux 6.5). It uses a copy of the process's descriptor. It is not "
          "known for files that are only mapped, and for those whose file system acts on each close "
          "(NFS, FUSE, overlayfs): \"-\".\n\n"
          "--below DIR shows the files below a directory, open or not, with the same numbers (Linux "
          "6.5): it opens each for reading, which programs that watch the files can see. Links are not "
          "followed, and other file systems not entered.\n\n"
          "--owner adds the memory cgroup that the pages of each file are charged to, which is the one "
          "that read them in first: that of most of up to 64 pages, spread over the file, and its part of "
          "them.\n\n"
          "--by-directory adds up the open and mapped files of each directory. --by-cgroup shows the page cache that "
          "is charged to each memory cgroup, which is the whole cache, open or not: a page is "
          "charged to the cgroup that read it in first. A cgroup contains those below it.\n\n"
          "Only processes in the pid namespace of cachefiles are looked at. Files below overlayfs "
          "have the device and inode number of the layer. Filters choose the processes whose files "
          "are shown.",
      .overhead =
          "a pass over the open files and mappings of all processes per report, which takes the "
          "locks that /proc/PID/maps takes; nothing between reports. --details goes through the "
          "cached pages of the shown files. --by-cgroup only reads files of /sys/fs/cgroup",
      .examples = {{"cachefiles", "the 20 largest, now"},
                   {"cachefiles --details --top 5", "with the amounts that are dirty or evicted"},
                   {"cachefiles -p 181", "the files of process 181"},
                   {"cachefiles --below /var/log", "files of a directory, open or not"},
                   {"cachefiles --by-directory 10", "by directory, every ten seconds"},
                   {"cachefiles --owner", "with the memory cgroup that pays for each file"},
                   {"cachefiles --by-cgroup", "the whole cache by memory cgroup"}},
      .questions =
          {
              {"Which files fill the page cache?", "cachefiles"},
              {"How much of a database's files is in memory?", "cachefiles -p 181"},
              {"Which files of a directory are cached, also closed ones?",
               "cachefiles --below /var/lib"},
              {"Which cgroup uses the page cache?", "cachefiles --by-cgroup"},
              {"Which cgroup pays for a cached file?", "cachefiles --owner"},
          },
      .object = skeleton<cachefiles_bpf>(),
      .positionals = shared::interval_count(),
      .options =
          joined({{flag(0, "by-directory", "add up files by their directory"),
                   flag(0, "by-cgroup", "the page cache charged to each memory cgroup"),
                   free_text(0, "below", "DIR",
                             "instead, all files below this directory, open or not "
                             "(Linux 6.5)",
                             Complete::directory, "a directory"),
                   shared::timestamp(), shared::top()},
                  belonging_to("!by-directory|by-cgroup", {shared::extended()}),
                  belonging_to("!by-directory|by-cgroup|below",
                               {flag(0, "details",
                                     "how much of each file is dirty, being written, "
                                     "evicted (Linux 6.5)"),
                                flag(0, "owner", "the memory cgroup that each file is charged to",
                                     setting(&rodata_of<cachefiles_bpf>::owners))}),
                  shared::task_filters()}),
      .hooks = {{.name = "open files",
                 .candidates = {{{progs::on_file}}},
                 .when = "!by-cgroup|below",
                 .instead = "fincore(1) shows how much of files whose names are known is cached"},
                {"mapped files",
                 {{{progs::on_area}}},
                 "!by-cgroup|below",
                 "files that are mapped but not open are part of the rest"}},
      .report = files_report(),
      .other_reports = {{"by-directory", directories_report()},
                        {"by-cgroup", groups_report()},
                        {"below", below_report()}},
      .announce = "Reading the page cache",
      .exclusive = {{"by-directory", "by-cgroup"},
                    {"by-directory", "below"},
                    {"by-cgroup", "below"}},
      .look_up = look_up,
  };
}
