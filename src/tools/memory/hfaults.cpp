// hfaults: page faults that map huge pages, and small pages that are collapsed to huge ones.
#include "memory/hfaults.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/faults.hpp"
#include "coretap/kernel.hpp"
#include "coretap/memory_counters.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "hfaults.skel.h"

using namespace coretap;
using Key = hfaults_key;
using Counts = hfaults_counts;
using Line = Row<Key, Counts>;

namespace {

constexpr std::string_view kNoTransparent = "transparent huge pages of faults are not counted";

// ---- resident huge pages ----

/// Memory of a process, in bytes.
struct Resident {
  std::string comm;
  std::uint32_t pid = 0;
  std::uint64_t rss = 0, anonymous = 0, shmem = 0, file = 0, hugetlb = 0;
  std::uint64_t transparent() const { return anonymous + shmem + file; }
};

/// A value of smaps_rollup, in bytes; older kernels lack some.
std::uint64_t bytes_of(std::string_view text, std::string_view key) {
  return static_cast<std::uint64_t>(keyed_number(text, key).value_or(0)) << 10;
}

/// Nothing for a kernel thread, a process that has ended, or one that may not be read.
std::optional<Resident> resident(std::uint32_t pid) {
  auto of = fmt::format("/proc/{}/", pid);
  auto text = read_file(of + "smaps_rollup"), comm = read_file(of + "comm");
  if (!text || text->empty() || !comm) return std::nullopt;
  Resident r{.comm = comm->substr(0, comm->find('\n')), .pid = pid};
  r.rss = bytes_of(*text, "Rss");
  r.anonymous = bytes_of(*text, "AnonHugePages");
  r.shmem = bytes_of(*text, "ShmemPmdMapped");
  r.file = bytes_of(*text, "FilePmdMapped");
  r.hugetlb = bytes_of(*text, "Shared_Hugetlb") + bytes_of(*text, "Private_Hugetlb");
  return r;
}

Result<SnapshotReport::Reading> read_resident(const Config& c) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (!proc) return Error{"cannot read /proc", strerror(errno), {}, kUnsupported};
  std::vector<Resident> all;
  while (auto* entry = readdir(proc.get())) {
    auto pid = parse_unsigned(entry->d_name);
    if (!pid || *pid > UINT32_MAX) continue;
    if (auto r = resident(static_cast<std::uint32_t>(*pid)); r && r->transparent() + r->hugetlb)
      all.push_back(std::move(*r));
  }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](auto& r) { return r.transparent() + r.hugetlb; });
  if (auto top = c.rows.top; top && all.size() > top) all.resize(top);
  return reading(std::move(all));
}

double huge_ratio(const Resident& r) {
  return r.rss ? static_cast<double>(r.transparent()) / static_cast<double>(r.rss) : 0;
}

SnapshotReport resident_report() {
  constexpr auto kSize = as::wide(as::kilobytes, 10);
  return snapshot<Resident>(
             "/proc/PID/smaps_rollup of the processes that the user may inspect",
             {who<Resident>(id::comm, id::pid),
              field<&Resident::rss>("rss_bytes", "RSS(KB)", kSize,
                                    "resident memory, without hugetlb")
                  .gauge(),
              field<&Resident::anonymous>("anon_huge_bytes", "ANON(KB)", kSize,
                                          "anonymous memory in transparent huge pages")
                  .gauge(),
              field<&Resident::shmem>("shmem_huge_bytes", "SHMEM(KB)", kSize,
                                      "shared memory that is mapped by huge pages")
                  .gauge(),
              field<&Resident::file>("file_huge_bytes", "FILE(KB)", kSize,
                                     "files that are mapped by huge pages")
                  .gauge(),
              field<&Resident::hugetlb>("hugetlb_bytes", "HUGETLB(KB)", as::wide(as::kilobytes, 11),
                                        "hugetlb memory")
                  .gauge(),
              derived<Resident, huge_ratio>(
                  "huge_ratio", "HUGE%", as::percent,
                  "part of the resident memory in transparent huge pages")},
             read_resident)
      .not_recorded();
}

// ----

/// The word in brackets: "always [madvise] never".
std::string chosen(const std::string& setting) {
  auto text = read_file("/sys/kernel/mm/transparent_hugepage/" + setting).value_or("");
  auto open = text.find('['), close = text.find(']');
  if (open == text.npos || close == text.npos || close < open) return "?";
  return text.substr(open + 1, close - open - 1);
}

std::string settings() {
  if (!read_file("/sys/kernel/mm/transparent_hugepage/enabled"))
    return "this kernel has no transparent huge pages";
  return fmt::format("transparent huge pages: enabled {}, defrag {}, shmem {}", chosen("enabled"),
                     chosen("defrag"), chosen("shmem_enabled"));
}

/// 2 MB with pages of 4 KB, 512 MB with pages of 64 KB.
Result<void> look_up(Config& c) {
  c.notes.push_back(settings());
  auto page = page_bytes();
  if (auto huge = read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"))
    c.set(setting(&rodata_of<hfaults_bpf>::huge_order), std::bit_width(*huge / page) - 1);
  return {};
}

}  // namespace

TOOL(hfaults) {
  return {
      .name = "hfaults",
      .summary = "page faults that map huge pages, and collapses into huge pages",
      .description =
          "Huge pages by the process that gets them: page faults on hugetlb memory (HUGETLB), "
          "faults for which the kernel allocated a transparent huge page (THP), and faults for "
          "which it tried but had none (FALLBACK). COLLAPSED counts huge pages that khugepaged, or "
          "madvise(2) with MADV_COLLAPSE, later made from the process' small pages.\n\n"
          "Only transparent huge pages of the usual size (2 MB with pages of 4 KB) are counted. Pages that "
          "the kernel faults in to populate memory (mlock, MAP_POPULATE) are not counted either.\n\n"
          "--resident shows instead how much memory of each process is in huge pages now, also in "
          "pages that were mapped before. --counters shows by how much the kernel's own counters of huge "
          "pages grew, with those of the compaction that makes them: why there was no huge page "
          "(thp_fault_fallback, compact_fail), and what became of them (thp_split_page, thp_swpout); of "
          "the whole machine. The settings of transparent huge pages in "
          "/sys/kernel/mm/transparent_hugepage are printed before tracing.",
      .overhead =
          "two hooks per page fault, one per page allocation and release, which takes some tens of "
          "nanoseconds except for huge pages. --resident attaches nothing, but makes the kernel go "
          "through the memory of all processes. --counters attaches nothing",
      .examples = {{"hfaults", "all processes until Ctrl-C"},
                   {"hfaults 1", "each second"},
                   {"hfaults -p 181 10 1", "process 181 for ten seconds"},
                   {"hfaults --counters 10", "what the kernel counted, every ten seconds"},
                   {"hfaults --resident -r 5", "the five processes that have most huge pages"}},
      .questions = {{"Which processes use huge pages?", "hfaults 10 1"},
                    {"Does a program get the transparent huge pages that it asks for?",
                     "hfaults -p 181 1"},
                    {"How much memory of a process is in huge pages?", "hfaults --resident"},
                    {"Are huge pages split, swapped out or not to be had?",
                     "hfaults --counters 10"},
                    {"For which processes does khugepaged work?", "hfaults -s collapses 10 1"}},
      .object = skeleton<hfaults_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{flag(0, "resident",
                 "memory in huge pages by process, instead of faults: immediately, and again "
                 "each interval"),
            flag(0, "counters",
                 "the kernel's counters of huge pages and compaction, instead of faults"),
            shared::top('r')},
           belonging_to("!resident|counters", {shared::sort(), shared::max_keys()}),
           shared::task_filters()}),
      .hooks = {faults::minor(),
                faults::major(),
                faults::areas(),
                faults::starts({}, kNoTransparent),
                {"allocation of pages", {{{progs::on_page_alloc}}}, {}, kNoTransparent},
                {"release of pages", {{{progs::on_page_free}}}, {}, kNoTransparent},
                {"collapse of anonymous memory",
                 {{{progs::on_collapse}, {has_field("mm_struct", "owner")}}},
                 {},
                 "collapses are not counted"},
                {"collapse of shared memory",
                 {{{progs::on_collapse_file}, {has_field("mm_struct", "owner")}}},
                 {},
                 "collapses of files and shared memory are not counted"}},
      .report =
          table<Key, Counts>(
              maps::processes,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               of_key<Line, &Key::comm>("comm", "COMM", as::comm, "its command name"),
               of_value<Line, &Counts::hugetlb>("hugetlb", "HUGETLB", as::number,
                                                "faults on hugetlb memory"),
               of_value<Line, &Counts::thp>("thp", "THP", as::number,
                                            "faults that got a transparent huge page"),
               of_value<Line, &Counts::fallbacks>("fallbacks", "FALLBACK", as::number,
                                                  "faults that got a small page because there was "
                                                  "no huge page"),
               of_value<Line, &Counts::collapses>("collapses", "COLLAPSED", as::number,
                                                  "huge pages made from small pages")},
              "thp,hugetlb,collapses,fallbacks")
              .counted_by(4),
      .other_reports = {{"resident", resident_report()},
                        {"counters", memory_counters<MemoryCounters::huge_pages>()}},
      .announce = "Tracing huge page faults",
      .exclusive = {{"resident", "counters"}, {"counters", "top"}},
      .look_up = look_up,
  };
}
