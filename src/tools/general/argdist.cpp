// argdist: frequency of arguments, results and other values of calls and tracepoints.
#include "general/argdist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "argdist.skel.h"
#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tools/general/argdist/specs.hpp"

using namespace coretap;
using Opt = rodata_of<argdist_bpf>;
using Line = Row<argdist_key, argdist_count>;
using distribution::Held;

namespace {

constexpr std::string_view kDefault = "r::sys_read():int:$retval#result of read(2)";

const distribution::Specs& specs(const FieldContext& context) {
  static const distribution::Specs none;
  return context.config ? *context.config->own<Held>().specs : none;
}

std::string title(std::uint64_t word, const FieldContext& context) {
  auto* spec = specs(context).of(word);
  return spec ? spec->title() : "";
}
std::string probe(const Line& l, const FieldContext& context) {
  return title(l.key.values.word, context);
}
TextList values(const Line& l, const FieldContext& context) {
  TextList all{specs(context).values(l.key)};
  all.line = fmt::format("{}", fmt::join(all.each, ", "));
  return all;
}
/// With several specifications, names the matching one.
std::string event(const Line& l, const FieldContext& context) {
  auto all = values(l, context).line;
  if (all.empty()) all = "total calls";
  return specs(context).all.size() > 1 ? fmt::format("{}: {}", probe(l, context), all) : all;
}

std::string range(const argdist_range& r, const FieldContext& context) {
  return title(r.word, context) + (r.negative ? " (below 0, without the sign)" : "");
}

Option specification(char letter, std::string_view name, std::string_view theirs,
                     std::string_view doc, Setting target) {
  return value(letter, name, "SPEC", doc,
               [target](Config& c, std::string_view text) {
                 c.probes.targets.emplace_back(text);
                 c.set(target, 1);
                 return Result<void>();
               })
      .adding_up()
      .also(theirs);
}

Option reports() {
  return value('n', "number", "COUNT", "end after COUNT reports",
               [](Config& c, std::string_view text) -> Result<void> {
                 auto n = parse_unsigned(text);
                 if (!n || !*n)
                   return usage(fmt::format("--number: '{}' is not a number of reports", text));
                 c.schedule.count = *n;
                 return {};
               });
}

Result<void> look_up(Config& c) {
  if (!c.given("once") && !c.given("interval")) c.schedule.interval = 1;
  return distribution::parse_specs(c);
}

Positional more() {
  return {.metavar = "SPEC",
          .doc = fmt::format("more SPECs; without any -C '{}'", kDefault),
          .repeat = Positional::any_number,
          .apply = [](Config& c, std::string_view text) -> Result<void> {
            if (text != kDefault || c.probes.targets.empty()) c.probes.targets.emplace_back(text);
            return {};
          },
          .otherwise = std::string(kDefault)};
}

}  // namespace

TOOL(argdist) {
  return {
      .name = "argdist",
      .summary = "how often values of arguments and results occur",
      .description =
          "Counts how often each value, or each set of values, occurs at the place that a SPEC "
          "names (-C), or shows values as a log2 histogram (-H): of functions of the kernel, of "
          "libraries and programs, of system calls, tracepoints and USDT probes. The language is "
          "that of bcc's tool of the same name.\n\n"
          "A SPEC is KIND:LIBRARY:FUNCTION(PARAMETERS):TYPES:VALUES:FILTER#LABEL. KIND is p for "
          "the entry of a function, r for its return, t for a tracepoint (t:CATEGORY:EVENT), u "
          "for a USDT probe. LIBRARY is empty for the kernel. FUNCTION+0x1c is an instruction "
          "within the function, LIBRARY:0xADDRESS one at an address as objdump shows it; "
          "arguments are not known there. PARAMETERS may be empty if their names are known: for "
          "kernel functions, system calls, and user functions whose file has debug information. "
          "TYPES has a C type for each value; char* means text. VALUES are C expressions, as in "
          "trace(8): parameters, arg1 to arg6; at returns $retval, $latency (the call's time in "
          "nanoseconds) and $entry(NAME) (the value of a parameter at the entry); args->FIELD "
          "for tracepoints, $PID, $COMM, $task. Without types and values calls are counted or, "
          "for returns, return values. FILTER is an expression; LABEL is a title.\n\n"
          "A value read from memory that is not accessible counts as (fault) with -C, and as not "
          "judged with -H; an event whose filter reads such memory counts as not judged. Values "
          "below zero have a separate histogram, of their absolute values.",
      .overhead =
          "one program per event, which runs the expressions as native code and adds up in the "
          "kernel: about a quarter of a microsecond; a trap for each call of a user function",
      .examples = {{"argdist -C 'p::sys_read(int fd):int:fd'", "reads by descriptor"},
                   {"argdist -H 'r::sys_read():int:$retval'", "results of reads, as a histogram"},
                   {"argdist -H 'p:c:malloc(size_t size):size_t:size' -p 181 -i 5",
                    "sizes that a process allocates, each five seconds"},
                   {"argdist -C 'p:c:getenv(char *name):char*:name#variables'",
                    "environment variables that are looked up"},
                   {"argdist -H 'r::sys_read():u64:$latency/1000:$entry(count) > 4096#us'",
                    "times of large reads in microseconds"},
                   {"argdist -C 't:block:block_rq_issue():u32,int:args->bytes,$PID'",
                    "sizes of block requests by process"},
                   {"argdist -C 'p::vfs_write():u64:count:count > 4096' -T 10",
                    "the ten most frequent sizes of large writes"}},
      .questions = {{"With which values is a function called?",
                     "argdist -C 'p:c:getenv(char *name):char*:name'"},
                    {"How large are the allocations of a process?",
                     "argdist -p 1234 -H 'p:c:malloc(size_t size):size_t:size'"}},
      .differs =
          {{Difference::bcc,
            "A command shows either counts or histograms. --once prints one report, at the end. $latency and $entry are correct for recursive and "
            "nested calls."},
           {Difference::bcc, "The time of a report is without brackets."}},
      .object = skeleton<argdist_bpf>(),
      .positionals = {more()},
      .options = {specification('C', "count-of", "count", "count values of SPEC", {}).tracing(),
                  specification('H', "histogram-of", "histogram",
                                "show values of SPEC as a histogram", setting(&Opt::distribution))
                      .tracing(),
                  number('z', "string-size", "BYTES", "read at most BYTES of a text (default: 80)",
                         Range{1, ARGDIST_TEXT - 8}, {})
                      .tracing(),
                  free_text(
                      'I', "include", "HEADER",
                      "accepted as in bcc, but not needed: types come from the kernel itself"),
                  shared::interval(),
                  reports(),
                  flag(0, "once", "one report, at the end, instead of one each second"),
                  shared::duration('d'),
                  shared::timestamp(0),
                  shared::top('T'),
                  shared::sort(0),
                  shared::regular_expressions('r'),
                  shared::max_probes(),
                  shared::return_trampoline(),
                  shared::debug(0),
                  shared::max_keys(),
                  shared::pid(),
                  shared::tid(),
                  shared::uid(),
                  shared::comm(),
                  shared::cgroup(0)},
      .elsewhere = {{'c', "cumulative", "--once prints one report of all values, at the end"}},
      .hooks = {traced_by_word("places", distribution::places, words_that_ask_for_entries)},
      .report = table<argdist_key, argdist_count>(
                    maps::counts,
                    {of_value<Line, &argdist_count::count>("count", "COUNT",
                                                           as::wide(as::number, -10), "how often"),
                     derived<Line, event>("event", "EVENT", as::rest, "values, by their names")
                         .key_part()
                         .in_text(),
                     derived<Line, probe>("probe", "PROBE", as::text, "the SPEC, or its label")
                         .bounded()
                         .with("json"),
                     derived<Line, values>("values", "VALUES", as::text, "values, by their names")
                         .key_part()
                         .with("json")},
                    "count")
                    .without_owner("an expression can be $COMM, $PID or $UID")
                    .ascending(),
      .other_reports =
          {{"histogram-of",
            histogram<argdist_range>(
                maps::ranges, "values",
                {derived<argdist_range, range>("probe", "", as::text, "the SPEC, or its label")
                     .bounded(),
                 derived<argdist_range, [](const argdist_range& r) { return bool(r.negative); }>(
                     "negative", "", as::text, "values below zero, without their sign")
                     .key_part()
                     .with("json|csv")})
                .without_owner("an expression can be $COMM, $PID or $UID")
                .scaled({unit::plain, 1})}},
      .announce = "Counting values",
      .exclusive = {{"count-of", "histogram-of"}, {"once", "interval"}, {"once", "number"}},
      .look_up = look_up,
      .compile = distribution::compile_specs,
  };
}
