// cputimes: the time of each CPU by mode, from /proc/stat.
#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/cpu_times.hpp"
#include "coretap/tool.hpp"

using namespace coretap;

namespace {

/// Ticks of one CPU since the previous report, of all CPUs if `cpu` is -1.
struct Line {
  CpuTimes times;
  std::uint64_t all = 0;
};

std::uint64_t grown(std::uint64_t now, std::uint64_t before) { return now - std::min(now, before); }

Line since(const CpuTimes& now, const CpuTimes& before) {
  Line line{.times = {.cpu = now.cpu}};
  for (auto mode : {&CpuTimes::user, &CpuTimes::nice, &CpuTimes::system, &CpuTimes::idle,
                    &CpuTimes::iowait, &CpuTimes::irq, &CpuTimes::softirq, &CpuTimes::steal}) {
    line.times.*mode = grown(now.*mode, before.*mode);
    line.all += line.times.*mode;
  }
  auto& times = line.times;
  times.guest = std::min(times.user, grown(now.guest, before.guest));
  times.guest_nice = std::min(times.nice, grown(now.guest_nice, before.guest_nice));
  times.user -= times.guest;
  times.nice -= times.guest_nice;
  return line;
}

class Modes : public Counting {
 public:
  explicit Modes(const Config& config) : config_(config) {}

  Result<void> start(Session&) override {
    auto first = next();
    if (!first) return first.error();
    return {};
  }

  Result<Since> next() override {
    auto now = cpu_times();
    if (!now) return Error{"cannot read /proc/stat", "it is missing, or not of the usual form"};
    std::vector<Line> lines;
    for (auto& cpu : *now) {
      // A CPU that came online has no row in its first report.
      auto before = std::exchange(before_[cpu.cpu], cpu);
      if (before.cpu == cpu.cpu && wanted(cpu)) lines.push_back(since(cpu, before));
    }
    return Since{reading(std::move(lines))};
  }

 private:
  bool wanted(const CpuTimes& times) const {
    if (auto& only = config_.places.cpu) return times.cpu == static_cast<int>(*only);
    return times.cpu < 0 || !config_.given("summary");
  }

  const Config& config_;
  std::map<int, CpuTimes> before_;
};

Value cpu(const Line& l) { return value_if(l.times.cpu >= 0, l.times.cpu); }
std::string cpu_text(const Line& l) {
  return l.times.cpu < 0 ? "all" : std::to_string(l.times.cpu);
}

template <auto Mode>
Value part(const Line& l) {
  return value_if(l.all > 0, static_cast<double>(l.times.*Mode) /
                                 static_cast<double>(std::max<std::uint64_t>(l.all, 1)));
}
template <auto Mode>
Field mode(std::string_view key, std::string_view title, std::string_view doc) {
  return derived<Line, part<Mode>>(key, title, as::wide(as::percent, 8), doc).or_null();
}

}  // namespace

TOOL(cputimes) {
  return {
      .name = "cputimes",
      .summary = "user, system, interrupt, stolen and idle time of each CPU",
      .description =
          "How each CPU has spent the time of the report, in per cent, as `mpstat -P ALL` shows "
          "it. The kernel accounts it in ticks (/proc/stat); user time has none of the time of "
          "virtual machines, which is guest time. A CPU that is offline has no row. CPU time of "
          "processes, also of those that have ended: see profile --by.\n\n"
          "Idle time with a wait for a disk (%iowait) is idle: another task could run. Stolen "
          "time (%steal) is what the hypervisor gave to others while a task could have run.",
      .overhead = "one reading of /proc/stat per report",
      .examples = {{"cputimes 1", "each second"},
                   {"cputimes -s 5 12", "one line for all CPUs every five seconds, for a minute"},
                   {"cputimes -C 0 1", "only CPU 0"},
                   {"cputimes -- make", "until a command ends"}},
      .questions = {{"Is one CPU overloaded, or are all?", "cputimes 1"},
                    {"How much time goes to the kernel, to interrupts or to the hypervisor?",
                     "cputimes 1"}},
      .positionals = shared::interval_count(1),
      .options = {flag('s', "summary", "only the line of all CPUs"), shared::cpu('C')},
      .report =
          snapshot<Line>(
              "/proc/stat",
              {derived<Line, cpu>("cpu", "", as::number, "CPU; null: all").or_null().with("json"),
               derived<Line, cpu_text>("cpu", "CPU", as::wide(as::text, -4), "its number, or all")
                   .in_text(),
               mode<&CpuTimes::user>("user_ratio", "%usr", "user mode, 0 to 1"),
               mode<&CpuTimes::nice>("nice_ratio", "%nice", "user mode at low priority (nice)"),
               mode<&CpuTimes::system>("system_ratio", "%sys", "kernel, without interrupts"),
               mode<&CpuTimes::iowait>("iowait_ratio", "%iowait",
                                       "idle while a task waits for a disk"),
               mode<&CpuTimes::irq>("irq_ratio", "%irq", "hardware interrupts"),
               mode<&CpuTimes::softirq>("softirq_ratio", "%soft", "software interrupts"),
               mode<&CpuTimes::steal>("steal_ratio", "%steal",
                                      "another virtual machine ran instead"),
               mode<&CpuTimes::guest>("guest_ratio", "%guest", "virtual machines of this host"),
               mode<&CpuTimes::guest_nice>("guest_nice_ratio", "%gnice",
                                           "the same at low priority (nice)"),
               mode<&CpuTimes::idle>("idle_ratio", "%idle", "idle")})
              .counted_by([](const Config& c) -> std::unique_ptr<Counting> {
                return std::make_unique<Modes>(c);
              }),
      .announce = "Reading CPU times",
      .exclusive = {{"cpu", "summary"}},
  };
}
