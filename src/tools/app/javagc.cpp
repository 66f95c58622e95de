// javagc: garbage collections of Java programs.
#include "app/javagc.h"

#include <filesystem>
#include <string>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/known_functions.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "javagc.skel.h"

using namespace coretap;
using Event = javagc_event;
using Opt = rodata_of<javagc_bpf>;

namespace {

constexpr std::string_view kKinds[] = {"pause", "pools"};
static_assert(std::size(kKinds) == JAVAGC_KINDS);

using At = KnownFunction::At;

std::vector<KnownFunction> probes(std::string_view file) {
  return {{file, "hotspot:gc__begin", JAVAGC_BEGIN, At::probe},
          {file, "hotspot:gc__end", JAVAGC_END, At::probe},
          {file, "hotspot:mem__pool__gc__begin", JAVAGC_POOL_BEGIN, At::probe},
          {file, "hotspot:mem__pool__gc__end", JAVAGC_POOL_END, At::probe}};
}

/// For virtual machines built without probes.
std::vector<KnownFunction> functions(std::string_view file) {
  return {{file, "_ZN15VM_GC_Operation15notify_gc_beginEb", JAVAGC_BEGIN, At::entry},
          {file, "_ZN15VM_GC_Operation13notify_gc_endEv", JAVAGC_END, At::entry}};
}

std::vector<std::string> words(const Config& config) {
  std::vector<std::string> files = {"libjvm.so"};
  std::error_code error;
  for (std::filesystem::directory_iterator i("/usr/lib/jvm", error), end; !error && i != end;
       i.increment(error))
    for (auto* path : {"lib/server/libjvm.so", "jre/lib/amd64/server/libjvm.so"})
      if (auto file = i->path() / path; std::filesystem::is_regular_file(file, error))
        files.push_back(file.string());
  for (auto* of : {&probes, &functions}) {
    std::vector<KnownFunction> all;
    for (auto& file : files) {
      auto some = (*of)(file);
      for (auto& f : some) f.installed = file != files.front();
      all.insert(all.end(), some.begin(), some.end());
    }
    if (auto found = words_for(config, all); !found.empty()) return found;
  }
  return {};
}

std::uint8_t role(std::string_view name) {
  auto role = role_in(probes({}), name);
  return role ? role : role_in(functions({}), name);
}

Result<void> look_up(Config& config) {
  return set_roles(config, words, role, setting(&Opt::target_roles));
}

}  // namespace

TOOL(javagc) {
  return {
      .name = "javagc",
      .summary = "slow garbage collections of Java programs",
      .description =
          "One line for each garbage collection of HotSpot (OpenJDK and its relatives) that takes "
          "at least --min-pause, when it is done. A pause is the time between the probes gc__begin "
          "and gc__end, during which all threads of the program wait. Pools are the time between "
          "the first mem__pool__gc__begin and the last mem__pool__gc__end of a collection outside "
          "of pauses: phases of concurrent collectors.\n\n"
          "The tool traces the USDT probes of every libjvm.so that is installed or that a process "
          "has mapped at the start; if it was built without probes, its functions, which show only "
          "pauses. Pauses of ZGC and Shenandoah have no such probes.",
      .overhead = "two to eight breakpoints per collection: not measurable",
      .examples = {{"javagc", "collections of 1 ms or more, of all Java programs"},
                   {"javagc -p 181 -t 10000", "of process 181, 10 ms or more"},
                   {"javagc -t 0", "all of them"}},
      .questions = {{"Does garbage collection stop this Java program?", "javagc -p 1234"},
                    {"How long are the pauses of garbage collections?", "javagc -t 0"}},
      .differs =
          {{Difference::libbpf_tools,
            "Each collection is one line. KIND, after the columns of libbpf-tools, says "
            "whether it is a pause. There a pool's events end the pause that they are in, and "
            "times above 4.29 seconds are shown too short."},
           {Difference::libbpf_tools, "-p is optional: without it, all Java programs are traced."}},
      .object = skeleton<javagc_bpf>(),
      .options = {number('t', "min-pause", "US",
                         "only what took at least US microseconds (default: 1000)",
                         setting(&Opt::min_ns), 1000),
                  shared::library(0), shared::pid(), shared::tid(0), shared::uid(), shared::comm(),
                  shared::cgroup(), shared::print_uid(), shared::extended()},
      .elsewhere = {{0, "time", "use --min-pause, or -t"},
                    {'M', "minimum", "use --min-pause, or -t, in microseconds: -t 10000 is 10 ms"},
                    {'m', "milliseconds", "times are in microseconds; --json has nanoseconds"},
                    {'l', "language", "leave it out: only Java programs are traced"},
                    {'F', "filter", "select lines with grep; KIND is pause or pools"}},
      .hooks = {known_functions("collections of Java's virtual machine",
                                {progs::target_user, progs::target_usdt}, words,
                                "give the path of libjvm.so with --library")},
      .report =
          events<Event>(
              {field<&Event::cpu>("cpu", "CPU", as::wide(as::number, -5), "CPU on which it ended"),
               who<&Event::who>(id::uid, id::pid, id::tid, id::comm.with("extended")),
               named<&Event::kind, kKinds>("kind", "KIND", as::wide(as::text, -6),
                                           "pause, or pools"),
               field<&Event::pause_ns>("gc_ns", "GC TIME(us)", as::whole_microseconds,
                                       "time from start to end"),
               who<&Event::who>(id::cgroup)})
              .spanning("gc_ns")
              .timed_at_begin()
              .timed({{TimeColumn::wall, "TIME", 12, ""}})
              .columns({{"cpu,pid,gc_ns"}}),
      .announce = "Tracing garbage collections",
      .look_up = look_up,
  };
}
