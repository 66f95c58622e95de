// kvmexit: reasons for which virtual CPUs leave their guests, with counts and durations.
#include "cpu/kvmexit.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/kernel.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "coretap/tracepoint_format.hpp"
#include "kvmexit.skel.h"

using namespace coretap;
using Opt = rodata_of<kvmexit_bpf>;
using Key = kvmexit_key;
using Sums = kvmexit_sums;
using Line = Row<Key, Sums>;

namespace {

using Reasons = std::map<std::uint32_t, std::string>;

/// "12", "0x7b", or a sum: "0x040 + 6".
std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t sum = 0;
  while (!text.empty()) {
    auto part = take_until(text, '+');
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const bool hex = part.starts_with("0x");
    if (hex) part.remove_prefix(2);
    auto number = hex ? parse_hexadecimal(part) : parse_unsigned(part);
    if (!number || *number > UINT32_MAX) return {};
    sum += static_cast<std::uint32_t>(*number);
  }
  return sum;
}

/// Reads the pairs { 12, "HLT" } of the next list, and removes it from the text.
Reasons take_list(std::string_view& text) {
  constexpr std::string_view kList = "__print_symbolic(", kEnd = "})";
  Reasons reasons;
  auto start = text.find(kList), end = text.find(kEnd, start);
  if (end == text.npos) return reasons;
  auto list = text.substr(start, end - start);
  text.remove_prefix(end);
  take_until(list, '{');
  while (!list.empty()) {
    auto number = number_of(take_until(list, ','));
    take_until(list, '"');
    auto name = take_until(list, '"');
    if (number) reasons.emplace(*number, name);
    take_until(list, '{');
  }
  return reasons;
}

/// The kernel's names, from the tracepoint's format: on x86 the exit reasons of Intel and those of
/// AMD, on arm64 the exit causes and the exception classes.
struct Words {
  Reasons first, second;
};

const Words& words() {
  static const auto kWords = [] {
    Words all;
    auto text = tracepoint_file("kvm", "kvm_exit", "format");
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    all.first = take_list(rest);
    all.second = take_list(rest);
    return all;
  }();
  return kWords;
}

std::string name_of(const Reasons& reasons, std::uint32_t number) {
  auto found = reasons.find(number);
  return found == reasons.end() ? fmt::format("{:#x}", number) : found->second;
}

std::string reason(const Line& l) {
  constexpr std::uint32_t kIntel = 1, kAmd = 2, kFailed = 0x80000000;
  auto& [first, second] = words();
  auto number = l.key.reason;
  if (l.key.isa == kAmd) return name_of(second, number);
  auto name = name_of(first, number & 0xffff);
  if (l.key.isa == kIntel) return number & kFailed ? name + " FAILED_VMENTRY" : name;
  return name == "TRAP" ? name_of(second, number >> 16) : name;
}

Value tid(const Line& l) { return unless_0(l.key.tid); }
Value vcpu(const Line& l) { return value_if(l.key.tid, l.key.vcpu); }
Result<void> look_up(Config& c) {
  words();  // while the capabilities allow reading them
  // The threads of a process share a row, as in bcc, unless -a is given.
  if (!c.tasks.pids.empty()) c.set(setting(&Opt::of_process), 1);
  constexpr std::string_view kExit = "kvm_exit";
  // Without the tracepoint, the hook reports that.
  if (!tracepoint_format("kvm", kExit)) return {};
  return look_up_members(c, "kvm", "KVM exit", {}, {},
#ifdef __x86_64__
                         {{kExit, "exit_reason", setting(&Opt::at_reason)},
                          {kExit, "isa", setting(&Opt::at_isa)},
                          {kExit, "vcpu_id", setting(&Opt::at_vcpu)}}
#else
                         {{kExit, "ret", setting(&Opt::at_reason)},
                          {kExit, "esr_ec", setting(&Opt::at_class)}}
#endif
  );
}

}  // namespace

TOOL(kvmexit) {
  return {
      .name = "kvmexit",
      .summary = "why virtual CPUs exit to the host, and how often",
      .description =
          "Exits of KVM guests by process, thread, virtual CPU and reason. The reasons have the "
          "names that the kernel's own tracepoint gives them; Intel and AMD have different ones. "
          "With --pid all threads of the process are added up, unless --alltids is given.\n\n"
          "--latency adds the time from each exit to the thread's next entry: the work of the "
          "kernel and the program for the guest and, for a halted virtual CPU, the wait.",
      .overhead =
          "one hook per exit, with --latency one per entry too; busy guests exit up to a million "
          "times a second; counted in the kernel, per CPU",
      .examples = {{"kvmexit", "all virtual machines, by thread, until Ctrl-C"},
                   {"kvmexit 10", "for ten seconds"},
                   {"kvmexit -p 3195281 20", "one virtual machine for 20 seconds"},
                   {"kvmexit -p 3195281 -a -v 0", "its first virtual CPU"},
                   {"kvmexit -L -i 1", "each second, with the time until the guest runs again"}},
      .questions = {{"Why does this virtual machine exit often?", "kvmexit -p 3195281 10"},
                    {"How long do exits keep the guest waiting?", "kvmexit -L 10"}},
      .differs =
          {{Difference::bcc,
            "Rows also have the virtual CPU, and with -p the process, as their last columns. "
            "Reasons have the names of the running "
            "kernel; those of AMD are in lower case."}},
      .object = skeleton<kvmexit_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  number('v', "vcpu", "N", "only the virtual CPU with this number",
                         setting(&Opt::only_vcpu), 1, setting(&Opt::some_vcpu)),
                  belonging_to("pid", {flag('a', "alltids",
                                            "with --pid, each of its threads "
                                            "separately",
                                            setting(&Opt::all_threads))})
                      .front(),
                  flag('L', "latency", "the time until the guest runs again", setting(&Opt::timed)),
                  shared::interval(), shared::timestamp(0), shared::top(), shared::sort(),
                  shared::max_keys()},
      .elsewhere = {{'m', "max-parallelism", "--max-keys N, for the total number of rows"},
                    {'T', "tids", "-t TID,..."},
                    {'d', "debug", "use --verbose"}},
      .hooks = {{.name = "exits",
                 .candidates = {{{progs::on_exit}}},
                 .instead = "load the module kvm_intel or kvm_amd first; there are no exits "
                            "without it"},
                {"entries", {{{progs::on_entry}}}, "latency"}},
      .report =
          table<Key, Sums>(
              maps::exits,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               derived<Line, tid>("tid", "TID", as::pid, "thread; null: all of the process")
                   .key_part(),
               derived<Line, vcpu>("vcpu", "VCPU", as::small,
                                   "virtual CPU; null: all of the process")
                   .key_part(),
               derived<Line, reason>("reason", "KVM_EXIT_REASON", as::wide(as::text, -24),
                                     "why it left the guest")
                   .bounded(),
               of_value<Line, &Sums::count>("count", "COUNT", as::number, "exits"),
               mean_of<Line, &Sums::total_ns, &Sums::timed>(
                   "average_ns", "AVG(us)", as::microseconds, "until the guest ran again")
                   .only("latency"),
               of_value<Line, &Sums::longest>("max_ns", "MAX(us)", as::wide(as::microseconds, 12),
                                              "the longest of the interval")
                   .only("latency"),
               of_value<Line, &Sums::total_ns>("total_ns", "TOTAL(us)",
                                               as::wide(as::microseconds, 14), "their sum")
                   .only("latency")},
              "count")
              .with_largest<&Sums::longest>()
              .timed_with("timestamp")
              .columns({{"tid,reason,count", "alltids|tid"},
                        {"reason,count", "pid"},
                        {"pid,tid,reason,count"}}),
      .announce = "Tracing exits of virtual machines",
      .look_up = look_up,
  };
}
