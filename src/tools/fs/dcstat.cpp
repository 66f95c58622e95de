// dcstat: look-ups in the directory-entry cache.
#include "fs/dcstat.h"

#include "coretap/look_up.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "dcstat.skel.h"

using namespace coretap;
using Sums = dcstat_sums;

namespace {

template <auto Member>
std::uint64_t of(const Sums& s) {
  return s.*Member;
}

/// The rate in text, the count in other formats.
template <auto Member>
std::vector<Field> lookups(std::string_view key, std::string_view title, std::string_view counted,
                           std::string_view doc) {
  return {rate<Sums, of<Member>>(key, title, as::wide(as::number, 8), doc).in_text(),
          field<Member>(key, counted, as::number, doc).with("json")};
}

Value ratio(const Sums& s) {
  if (!s.refs) return {};  // no look-ups: no ratio
  auto slow = s.slow < s.refs ? s.slow : s.refs;
  return static_cast<double>(s.refs - slow) / static_cast<double>(s.refs);
}

}  // namespace

TOOL(dcstat) {
  return {
      .name = "dcstat",
      .summary = "look-ups in the directory-entry cache: how many it could not answer",
      .description =
          "Each component of a path is looked up in the kernel's directory-entry cache (REFS), "
          "which also has entries for names that do not exist. SLOW counts look-ups that it did "
          "not answer. HIT% is the share that it answered. MISS counts names that the file system "
          "was queried for: mostly those in SLOW, but also the last components of paths that an "
          "open may create, which are not in REFS, and names that some file systems prepare when a "
          "directory is listed.\n\n"
          "A lockless path walk that has to be repeated counts once. '.' and '..' are not looked "
          "up.",
      .overhead = "a hook per path component that is looked up, counted in the kernel, per CPU",
      .examples = {{"dcstat", "a line per second"},
                   {"dcstat 5 12", "a minute, every five seconds"},
                   {"dcstat -p 181", "of process 181"}},
      .questions = {{"Does the kernel have to query file systems for names?", "dcstat"},
                    {"Does a program look for files that are not there?", "dcstat -p 1234"}},
      .differs = {{Difference::bcc,
                   "SLOW counts look-ups that the cache did not answer, and MISS queries to the "
                   "file system. There they are calls and failures of d_lookup, which a plain path "
                   "walk does not call."}},
      .object = skeleton<dcstat_bpf>(),
      .positionals = shared::interval_count(1),
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {lookup_hook(),
                {.name = "file systems asked",
                 .candidates = {{{progs::on_miss}}, {{progs::on_miss_kprobe}}},
                 .instead = kInsteadOfLookups}},
      .report = sums<Sums>(maps::lookups_cpus,
                           {lookups<&Sums::refs>("refs", "REFS/s", "REFS", "look-ups in the cache"),
                            lookups<&Sums::slow>("slow_refs", "SLOW/s", "SLOW",
                                                 "of these, not answered by the cache"),
                            lookups<&Sums::misses>("misses", "MISS/s", "MISS",
                                                   "names that a file system was queried for"),
                            derived<Sums, ratio>("hit_ratio", "HIT%", as::percent,
                                                 "share of look-ups answered, 0 to 1")})
                    .counted_by(1)
                    .always_timed(),
      .announce = "Tracing the directory-entry cache",
  };
}
