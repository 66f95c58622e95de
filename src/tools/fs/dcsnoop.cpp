// dcsnoop: look-ups that miss in the directory-entry cache, by process.
#include "fs/dcsnoop.h"

#include "coretap/look_up.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "dcsnoop.skel.h"

using namespace coretap;
using Event = dcsnoop_event;
using Opt = rodata_of<dcsnoop_bpf>;

namespace {

std::string kind(const Event& e) { return e.missed ? "M" : "R"; }

std::string name(const Event& e) {
  auto last = std::string(text_of(e, e.name));
  if (e.path_kind == PATH_KIND_NAME) return last;
  auto directory = file_path(text_of(e, e.directory), e.path_kind);
  return (directory == "/" ? "" : directory) + "/" + last;
}

bool incomplete(const Event& e) { return e.path_kind == PATH_KIND_CUT; }

}  // namespace

TOOL(dcsnoop) {
  return {
      .name = "dcsnoop",
      .summary = "look-ups that the directory-entry cache could not answer, by process",
      .description =
          "One line per path component that the kernel's directory-entry cache could not answer (T "
          "is M, missed), so that the file system is queried; with --all, also for each that it "
          "could (R). FILE is the component; with --full-path, it follows the directory in which "
          "it is looked up, as the process sees it.\n\n"
          "The cache also answers for names that it knows do not exist. '.' and '..' are not "
          "looked up. Not seen: the last component of a path that is to be created, removed or "
          "renamed, which usually includes opens with O_CREAT.",
      .overhead =
          "a hook per path component that is looked up, which does little if the cache answers, "
          "and a record per line",
      .examples = {{"dcsnoop", "look-ups that the cache does not answer"},
                   {"dcsnoop -F -p 181", "with the directories, of process 181"},
                   {"dcsnoop -a -n nginx", "all look-ups, of processes with this in their name"}},
      .questions = {{"Which names are looked up on disk, and by which process?", "dcsnoop -F"},
                    {"Which missing files does a program look for?", "dcsnoop -F -p 1234"}},
      .differs =
          {{Difference::bcc,
            "T is M where the cache did not answer a look-up; with --all each look-up has one "
            "line. There M is a failure of d_lookup, shown in addition to the line R. FILE ends "
            "with the component."}},
      .object = skeleton<dcsnoop_bpf>(),
      .options = joined(
          {{flag('a', "all", "also look-ups that the cache answers", setting(&Opt::all_lookups)),
            flag('F', "full-path", "names with the directory that they are looked up in",
                 setting(&Opt::full_path)),
            shared::name('n'), shared::duration('d'), shared::timestamp()},
           shared::task_filters()}),
      .hooks = {lookup_hook()},
      .report =
          events<Event>({who<&Event::who>(id::pid, id::comm, id::tid),
                         derived<Event, kind>("kind", "T", as::wide(as::text, -1),
                                              "M: missed, R: answered by the cache")
                             .bounded(),
                         derived<Event, incomplete>("incomplete", "CUT", as::small,
                                                    "a part of the path is missing")
                             .with("json"),
                         who<&Event::who>(id::uid.with("json"), id::cgroup),
                         derived<Event, name>("file", "FILE", as::rest, "name that is looked up")})
              .timed({{TimeColumn::since_start, "TIME(s)", 11, "!timestamp"},
                      {TimeColumn::wall, "TIME", 12, "timestamp"}})
              .high_rate(),
      .announce = "Tracing the directory-entry cache",
  };
}
