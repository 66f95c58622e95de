// gethostlatency: time that programs wait for host name resolution.
#include "app/gethostlatency.h"

#include <netdb.h>

#include "coretap/errors.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "gethostlatency.skel.h"

using namespace coretap;
using Event = gethostlatency_event;
using Rodata = rodata_of<gethostlatency_bpf>;

namespace {

constexpr std::string_view kFunctions[] = {"getaddrinfo", "gethostbyname", "gethostbyname2",
                                           "gethostbyname_r", "gethostbyname2_r"};
static_assert(std::size(kFunctions) == GETHOST_FUNCTIONS);

Value host(const Event& e) { return value_if(e.named, std::string(text_of(e, e.host))); }

/// glibc and musl use the same numbers.
constexpr NumberedWord<int> kResolverErrors[] = {
    {EAI_BADFLAGS, "EAI_BADFLAGS"}, {EAI_NONAME, "EAI_NONAME"},   {EAI_AGAIN, "EAI_AGAIN"},
    {EAI_FAIL, "EAI_FAIL"},         {-5, "EAI_NODATA"},           {EAI_FAMILY, "EAI_FAMILY"},
    {EAI_SOCKTYPE, "EAI_SOCKTYPE"}, {EAI_SERVICE, "EAI_SERVICE"}, {-9, "EAI_ADDRFAMILY"},
    {EAI_MEMORY, "EAI_MEMORY"},     {EAI_SYSTEM, "EAI_SYSTEM"},   {EAI_OVERFLOW, "EAI_OVERFLOW"}};

Value error(const Event& e) {
  if (!e.failed) return {};
  if (e.function == GETADDRINFO)
    return word_of(kResolverErrors, e.result, "EAI_" + std::to_string(e.result));
  return e.result > 0 ? error_name(e.result) : std::string("not found");
}

Candidate way(ProgramName entry, ProgramName end) { return {{entry, end}}; }

}  // namespace

TOOL(gethostlatency) {
  return {
      .name = "gethostlatency",
      .summary = "time that programs wait for host names to be resolved",
      .description =
          "One line for each call of getaddrinfo, gethostbyname, gethostbyname2 and their _r forms "
          "in the C library, when it returns: the process, the name that it looked up, and the "
          "time that it took. Calls inside such a call (gethostbyname uses gethostbyname_r) are "
          "part of it and have no separate line. Calls in progress at the start are not seen.\n\n"
          "The tool traces the system's C library and every other one that a process has mapped at "
          "the start, glibc or musl, also in containers and after an upgrade; with --pid, only "
          "those of these processes. Programs that start later are seen if they use one of these "
          "files. Not seen: programs that resolve names without the C library (many in Go), 32-bit "
          "programs, and statically linked programs unless --pid or --library names them.",
      .overhead =
          "two breakpoints per call, some microseconds of a wait that usually takes "
          "hundreds",
      .examples = {{"gethostlatency", "all programs"},
                   {"gethostlatency -p 181", "process 181, with the C library that it uses"},
                   {"gethostlatency -m 100 -e", "what took 100 ms or more, with its result"},
                   {"gethostlatency -x", "names that were not resolved"},
                   {"gethostlatency -l /opt/app/server", "a program with its own C library"}},
      .questions = {{"Is it DNS?", "gethostlatency -m 100 -e"},
                    {"Which names are looked up and not found?", "gethostlatency -x"},
                    {"Which program looks up which host names, and how long does each take?",
                     "gethostlatency"}},
      .differs = {{Difference::both,
                   "gethostbyname_r and gethostbyname2_r are traced, too, and every C library "
                   "that a process has mapped at the start, in containers as well. Peers trace "
                   "one C library."},
                  {Difference::bcc, "LATms has three decimals instead of two."}},
      .object = skeleton<gethostlatency_bpf>(),
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::library('l', "libc"), shared::return_trampoline(),
                  number('m', "min-latency", "MS", "only calls that took at least MS milliseconds",
                         setting(&Rodata::min_ns), 1000000),
                  flag('x', "failed", "only calls that found nothing",
                       setting(&Rodata::failed_only)),
                  shared::print_uid(), shared::extended()},
      .hooks = {{"getaddrinfo", {way(progs::on_getaddrinfo, progs::on_found)}},
                {"gethostbyname",
                 {way(progs::on_gethostbyname, progs::on_found)},
                 {},
                 "calls of gethostbyname are not seen"},
                {"gethostbyname2",
                 {way(progs::on_gethostbyname2, progs::on_found)},
                 {},
                 "calls of gethostbyname2 are not seen"},
                {"gethostbyname_r",
                 {way(progs::on_gethostbyname_r, progs::on_found)},
                 {},
                 "calls of gethostbyname_r are not seen"},
                {"gethostbyname2_r",
                 {way(progs::on_gethostbyname2_r, progs::on_found)},
                 {},
                 "calls of gethostbyname2_r are not seen"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid, id::pid, id::tid.with("extended"), id::comm),
               field<&Event::latency_ns>("latency_ns", "LATms",
                                         as::precise(as::wide(as::milliseconds, 10), 3),
                                         "time from call to return"),
               named<&Event::function, kFunctions>("function", "FUNCTION", as::wide(as::text, -16),
                                                   "the function that was called")
                   .with("extended"),
               derived<Event, error>("error", "ERROR", as::text,
                                     "why nothing was found; null: found")
                   .with("extended|failed"),
               field<&Event::result>("result", "RESULT", as::small,
                                     "what the function returned; -1 for NULL instead of a host")
                   .with("json"),
               derived<Event, host>("host", "HOST", as::rest,
                                    "the requested name; null: none was given"),
               who<&Event::who>(id::cgroup)})
              .timed_at_begin()
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing lookups of host names",
  };
}
