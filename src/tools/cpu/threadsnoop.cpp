// threadsnoop: new threads, and their start functions.
#include "cpu/threadsnoop.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "threadsnoop.skel.h"

using namespace coretap;
using Event = threadsnoop_event;

TOOL(threadsnoop) {
  return {
      .name = "threadsnoop",
      .summary = "new threads, and the function that each starts with",
      .description =
          "One line per new thread of a process, however it was created. FUNC is the start "
          "routine that the program passed to pthread_create: the function's name, or its "
          "address if the file has no symbols; '-' for a thread created without the C library "
          "(Go) or by a C library that is not traced. A C++ std::thread starts with a function "
          "of the C++ library. PID and COMM are those of the process; --extended adds the "
          "calling thread and the new one.\n\n"
          "The tool traces the system's C library and every other one that a process has mapped "
          "when tracing starts, glibc or musl, also in containers. If the system has glibc 2.34 "
          "or later, start routines are not known in containers with an older glibc.",
      .overhead =
          "one hook per fork, two breakpoints per pthread_create: a few microseconds per thread",
      .examples = {{"threadsnoop", "all new threads"},
                   {"threadsnoop -p 181 -e", "of process 181, with the ids of the threads"},
                   {"threadsnoop -- ./server", "what this command starts"},
                   {"threadsnoop -l /opt/app/server", "of a program with its own C library"}},
      .questions = {{"Which code creates new threads?", "threadsnoop"},
                    {"Does a server create a thread for each request?", "threadsnoop -p 181"}},
      .differs = {{Difference::bcc,
                   "Threads created without the C library are shown, too, with - as their "
                   "function. C libraries in containers are traced; there only the host's is."}},
      .object = skeleton<threadsnoop_bpf>(),
      .options = joined(
          {{shared::library('l'), shared::timestamp(), shared::extended(), shared::duration('d')},
           shared::task_filters()}),
      .hooks = {{"new threads", {{{progs::on_fork}}}},
                {"start routines",
                 {{{progs::on_create, progs::on_created}},
                  {{progs::on_create_old, progs::on_created_old}}},
                 {},
                 "start routines are not known"}},
      .report =
          events<Event>({who<&Event::who>(id::pid, id::comm,
                                          id::tid.keyed("caller_tid", "CALLER").with("extended")),
                         field<&Event::thread>("thread_tid", "TID", as::pid, "the new thread")
                             .with("extended"),
                         who<&Event::who>(id::uid.with("json"), id::cgroup),
                         user_function<&Event::routine>("function", "FUNC", as::rest,
                                                        "its start routine; null: not known")})
              .timed({{TimeColumn::milliseconds, "TIME(ms)", 10, "!timestamp"},
                      {TimeColumn::wall, "TIME", 12, "timestamp"}})
              .with_user_functions(),
      .announce = "Tracing new threads",
  };
}
