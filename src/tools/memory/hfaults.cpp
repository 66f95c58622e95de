// hfaults: page faults that map huge pages, and small pages that are collapsed to huge ones.
#include "memory/hfaults.h"

#include <unistd.h>

#include <bit>
#include <cstdint>

#include "coretap/config.hpp"
#include "coretap/faults.hpp"
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

/// 2 MB with pages of 4 KB, 512 MB with pages of 64 KB.
Result<void> look_up(Config& c) {
  auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
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
          "the kernel faults in to populate memory (mlock, MAP_POPULATE) are not counted either.",
      .overhead =
          "two hooks per page fault, one per page allocation and release, which takes some tens of "
          "nanoseconds except for huge pages",
      .examples = {{"hfaults", "all processes until Ctrl-C"},
                   {"hfaults 1", "each second"},
                   {"hfaults -p 181 10 1", "process 181 for ten seconds"}},
      .questions = {{"Which processes use huge pages?", "hfaults 10 1"},
                    {"Does a program get the transparent huge pages that it asks for?",
                     "hfaults -p 181 1"},
                    {"For which processes does khugepaged work?", "hfaults -s collapses 10 1"}},
      .object = skeleton<hfaults_bpf>(),
      .positionals = shared::interval_count(),
      .options =
          joined({{shared::top('r'), shared::sort(), shared::max_keys()}, shared::task_filters()}),
      .hooks = {faults::minor(),
                faults::major(),
                faults::areas(),
                faults::starts({}, kNoTransparent),
                {"allocation of pages", {{{"on_page_alloc"}}}, {}, kNoTransparent},
                {"release of pages", {{{"on_page_free"}}}, {}, kNoTransparent},
                {"collapse of anonymous memory",
                 {{{"on_collapse"}, {has_field("mm_struct", "owner")}}},
                 {},
                 "collapses are not counted"},
                {"collapse of shared memory",
                 {{{"on_collapse_file"}, {has_field("mm_struct", "owner")}}},
                 {},
                 "collapses of files and shared memory are not counted"}},
      .report =
          table<Key, Counts>(
              "processes",
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
      .announce = "Tracing huge page faults",
      .look_up = look_up,
  };
}
