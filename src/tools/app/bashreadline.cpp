// bashreadline: lines typed into interactive shells.
#include "app/bashreadline.h"

#include "bashreadline.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Event = bashreadline_event;

TOOL(bashreadline) {
  return {
      .name = "bashreadline",
      .summary = "commands typed into interactive bash",
      .description =
          "One line for each line entered at a bash prompt, when it is entered and before it runs, "
          "in all bash processes of the machine, including containers. What scripts run is not "
          "shown. The tool shows what readline returns, so answers to read -e appear too; the line "
          "at a prompt that was already open at the start does not.\n\n"
          "If bash uses the shared readline library, only processes named bash are shown. With "
          "--library, all programs that call readline in that file are shown. Lines are kept up to "
          "4095 bytes.",
      .overhead = "two breakpoints per line typed: not measurable",
      .examples = {{"bashreadline", "all bash processes"},
                   {"bashreadline -u backup", "what the user backup types"},
                   {"bashreadline -s /usr/lib/libreadline.so.8",
                    "every program that uses this library"}},
      .questions = {{"What was typed into a shell on this machine?", "bashreadline"},
                    {"What does this user type, and when?", "bashreadline -u backup"}},
      .differs = {{Difference::both, "Lines are kept up to 4095 bytes. Peers cut them at 80."},
                  {Difference::libbpf_tools,
                   "With --library every program that calls readline in that file is shown. "
                   "There only processes named bash are."}},
      .object = skeleton<bashreadline_bpf>(),
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::library('s', "shared"), shared::return_trampoline(), shared::print_uid(),
                  shared::extended()},
      .hooks =
          {{"lines typed",
            {{{progs::on_bash, progs::on_bash_return}},
             {{progs::on_library, progs::on_library_return},
              {},
              "only processes named bash are shown, because bash uses the readline library"}}}},
      .report =
          events<Event>({who<&Event::who>(id::uid, id::pid, id::comm.with("extended")),
                         text_field<&Event::command>("command", "COMMAND", as::rest, "the line"),
                         who<&Event::who>(id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing lines typed into bash",
  };
}
