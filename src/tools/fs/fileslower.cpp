// fileslower: slow reads and writes of files.
#include "fs/fileslower.h"

#include "coretap/config.hpp"
#include "coretap/files.hpp"
#include "coretap/identity.hpp"
#include "coretap/ring_io.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "fileslower.skel.h"

using namespace coretap;
using Event = fileslower_event;
using Opt = rodata_of<fileslower_bpf>;

namespace {

constexpr std::string_view kOperations[] = {"R", "W"};

std::uint64_t bytes(const Event& e) {
  return e.result > 0 ? static_cast<std::uint64_t>(e.result) : 0;
}
std::int64_t error(const Event& e) { return e.result < 0 ? -e.result : 0; }
std::string type(const Event& e) { return file_type(e.mode); }

}  // namespace

TOOL(fileslower) {
  static const std::string kDescription =
      "One line per system call that reads a file or writes to it (read, write, their p and v "
      "forms, sendfile, splice, copy_file_range) and takes at least MIN_MS milliseconds, when it "
      "returns. LAT is the time that the program waits: in the file system, for locks, for the "
      "disk, and for a CPU. D is R for a read, W for a write; BYTES is what the call returned. "
      "FILENAME is the path as the process sees it. For a call with two files, it is the one that "
      "is read; with --write-only, the other. For an io_uring request, LAT is the time from its "
      "submission until its completion is posted; a request that is linked to others waits for "
      "these first.\n\n" +
      std::string(kFileIoSeen);
  return {
      .name = "fileslower",
      .summary = "slow reads and writes of files, by the system call's time",
      .description = kDescription,
      .overhead =
          "two hooks on every system call and io_uring request, which add some tens of nanoseconds "
          "to calls that do not read or write files",
      .examples = {{"fileslower", "what took 10 ms or more"},
                   {"fileslower 1", "what took 1 ms or more"},
                   {"fileslower 0 -p 181", "all reads and writes of files, of process 181"},
                   {"fileslower -d /var 5", "only files below this directory"}},
      .questions = {{"Which file was slow to read or write?", "fileslower"},
                    {"Does this process wait for files?", "fileslower 1 -p 181"}},
      .differs = {{Difference::bcc,
                   "The time is that of the system call, and all calls that read or write "
                   "files are traced, not two functions. FILENAME is the path instead of its "
                   "last part."}},
      .object = skeleton<fileslower_bpf>(),
      .positionals = {shared::threshold("MIN_MS", kMillisecond,
                                        "only calls that take at least MIN_MS milliseconds; "
                                        "0: all",
                                        setting(&Opt::min_ns), "10")},
      .options = joined({shared::file_io<Opt>(),
                         {shared::directory('d'), shared::timestamp('T'), shared::duration()},
                         shared::task_filters()}),
      .hooks = {{"results", {{.programs = {progs::on_exit}, .caveat = kFileIoNotSeen}}},
                {"system calls", {{{progs::on_enter}}}},
                timed_ring_io_hook()},
      .report =
          events<Event>(
              {who<&Event::who>(id::comm, id::pid.with("json"), id::tid.with({})),
               named<&Event::write, kOperations>("operation", "D", as::wide(as::text, -1),
                                                 "R: read, W: write"),
               derived<Event, bytes>("bytes", "BYTES", as::wide(as::number, 7), "bytes moved"),
               field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::milliseconds,
                                         "time of the call"),
               derived<Event, error>("error", "ERROR", as::error, "0, or what it failed with")
                   .with("json"),
               derived<Event, type>("file_type", "T", as::wide(as::text, -1),
                                    "R: regular file, S: socket, O: other")
                   .with("all"),
               who<&Event::who>(id::uid.with("json"), id::cgroup), identity_of_file<Event>(),
               derived<Event, file_of_event<Event>>("file", "FILENAME", as::rest,
                                                    "path of the file")})
              .timed({{TimeColumn::since_start, "TIME(s)", 11, "!timestamp"},
                      {TimeColumn::wall, "TIME", 12, "timestamp"}})
              .only(event_below_directory<Event>),
      .announce = "Tracing slow reads and writes of files",
  };
}
