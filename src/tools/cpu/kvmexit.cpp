// kvmexit: why virtual processors leave their guests, how often, and for how long.
#include "cpu/kvmexit.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "cli/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "kernel/kernel.hpp"
#include "kvmexit.skel.h"

using namespace coretap;
using Opt = rodata_of<kvmexit_bpf>;
using Key = kvmexit_key;
using Sums = kvmexit_sums;
using Line = Row<Key, Sums>;

namespace {

using Reasons = std::map<std::uint32_t, std::string>;

/// The pairs { 12, "HLT" } of a list, up to its end; what is behind it.
std::string_view read_list(std::string_view text, Reasons& reasons) {
  auto end = text.find("})");
  auto list = text.substr(0, end);
  for (std::size_t at = 0; (at = list.find("{ ", at)) != list.npos;) {
    std::uint32_t number = 0;
    std::string_view rest = list.substr(at + 2, list.find(',', at) - at - 2);
    // The kernel writes some as sums: "0x040 + 6".
    while (!rest.empty()) {
      bool hex = rest.starts_with("0x");
      if (hex) rest.remove_prefix(2);
      std::uint32_t part = 0;
      auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), part, hex ? 16 : 10);
      if (parsed.ec != std::errc()) break;
      number += part;
      rest.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest.data()));
      rest.remove_prefix(
          std::min(rest.size(), std::min(rest.find_first_not_of(" +"), rest.size())));
    }
    auto open = list.find('"', at), close = list.find('"', open + 1);
    if (close == list.npos) break;
    reasons.emplace(number, std::string(list.substr(open + 1, close - open - 1)));
    at = close;
  }
  return end == text.npos ? std::string_view() : text.substr(end + 2);
}

/// Intel's and AMD's, in the kernel's own words: the tracepoint's description lists them.
const std::pair<Reasons, Reasons>& reasons() {
  static const auto kAll = [] {
    std::pair<Reasons, Reasons> all;
    auto dir = tracefs();
    const Fd fd(dir ? openat(*dir, "events/kvm/kvm_exit/format", O_RDONLY | O_CLOEXEC) : -1);
    std::string text(1 << 16, '\0');
    auto bytes = fd.get() < 0 ? 0 : read(fd.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    auto list = text.find("__print_symbolic(");
    auto rest = list == text.npos ? std::string_view() : std::string_view(text).substr(list);
    rest = read_list(rest, all.first);
    list = rest.find("__print_symbolic(");
    if (list != rest.npos) read_list(rest.substr(list), all.second);
    return all;
  }();
  return kAll;
}

std::string reason(const Line& l) {
  constexpr std::uint32_t kIntel = 1, kFailed = 0x80000000;
  auto& [intel, other] = reasons();
  bool of_intel = l.key.isa == kIntel || other.empty();
  auto& names = of_intel ? intel : other;
  auto number = l.key.isa == kIntel ? l.key.reason & 0xffff : l.key.reason;
  auto found = names.find(number);
  auto name = found == names.end() ? fmt::format("{:#x}", number) : found->second;
  return l.key.isa == kIntel && l.key.reason & kFailed ? name + " FAILED_VMENTRY" : name;
}

Value tid(const Line& l) { return l.key.tid ? Value(std::uint64_t{l.key.tid}) : Value(); }
Value vcpu(const Line& l) { return l.key.tid ? Value(std::uint64_t{l.key.vcpu}) : Value(); }
Value average(const Line& l) {
  return l.value.timed ? Value(l.value.total_ns / l.value.timed) : Value();
}

/// Of one process its threads are one row, as in bcc, unless -a is given.
Option pid() {
  auto option = shared::pid();
  option.apply = [take = option.apply](Config& c, std::string_view text) -> Result<void> {
    c.set(setting(&Opt::of_process), 1);
    return take(c, text);
  };
  return option;
}

Result<void> check(const Config&) {
  reasons();  // while it may still be read
  return {};
}

}  // namespace

TOOL(kvmexit) {
  return {
      .name = "kvmexit",
      .summary = "why virtual processors leave their guests, and how often",
      .description =
          "Exits of KVM guests by process, thread, virtual processor and reason. The reasons have "
          "the names that the kernel's own trace gives them; those of Intel's and AMD's processors "
          "differ. With --pid all threads of the process are one, unless --alltids is given.\n\n"
          "With --latency the time from each exit to the thread's next entry too: what the kernel "
          "and the program do for the guest, and for a halted processor the wait.",
      .overhead =
          "one hook per exit, with --latency one per entry too; busy guests exit up to a million "
          "times a second; counted in the kernel, per CPU",
      .examples = {{"kvmexit", "all virtual machines, by thread, until Ctrl-C"},
                   {"kvmexit 10", "for ten seconds"},
                   {"kvmexit -p 3195281 20", "one virtual machine for 20 seconds"},
                   {"kvmexit -p 3195281 -a -v 0", "its first virtual processor"},
                   {"kvmexit -L -i 1", "each second, with the time until the guest runs on"}},
      .questions = {{"Why does this virtual machine exit often?", "kvmexit -p 3195281 10"},
                    {"How long do exits keep the guest waiting?", "kvmexit -L 10"}},
      .object = skeleton<kvmexit_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  number('v', "vcpu", "N", "only the virtual processor of this number",
                         setting(&Opt::only_vcpu), 1, setting(&Opt::some_vcpu)),
                  belonging_to("pid", {flag('a', "alltids", "with --pid, its threads one by one",
                                            setting(&Opt::all_threads))})
                      .front(),
                  flag('L', "latency", "the time until the guest runs on", setting(&Opt::timed)),
                  shared::interval(), shared::timestamp(0), shared::top(), shared::sort(),
                  shared::max_keys()},
      .elsewhere = {{'m', "max-parallelism", "--max-keys N, for rows in all"},
                    {'T', "tids", "-t TID,..."}},
      .hooks = {{.name = "exits",
                 .candidates = {{{"on_exit"}}},
                 .instead = "load the module kvm_intel or kvm_amd first; without it nothing exits"},
                {"entries", {{{"on_entry"}}}, "latency"}},
      .report =
          table<Key, Sums>(
              "exits",
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               derived<Line, tid>("tid", "TID", as::pid, "thread; null: all of the process"),
               derived<Line, vcpu>("vcpu", "VCPU", as::small,
                                   "virtual processor; null: all of the process"),
               derived<Line, reason>("reason", "KVM_EXIT_REASON", as::wide(as::text, -24),
                                     "why it left the guest"),
               of_value<Line, &Sums::count>("count", "COUNT", as::number, "exits"),
               derived<Line, average>("average_ns", "AVG(us)", as::microseconds,
                                      "until the guest ran on")
                   .only("latency"),
               of_value<Line, &Sums::longest>("max_ns", "MAX(us)", as::wide(as::microseconds, 12),
                                              "the longest of the interval")
                   .only("latency"),
               of_value<Line, &Sums::total_ns>("total_ns", "TOTAL(us)",
                                               as::wide(as::microseconds, 14), "all of them")
                   .only("latency")},
              "count")
              .with_largest<&Sums::longest>()
              .timed_with("timestamp"),
      .announce = "Tracing exits of virtual machines",
      .check = check,
  };
}
