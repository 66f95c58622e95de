#include "coretap/cpu_times.hpp"

#include <iterator>

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

std::optional<std::vector<CpuTimes>> parse_cpu_times(std::string_view proc_stat) {
  constexpr std::uint64_t CpuTimes::*kColumns[] = {
      &CpuTimes::user,   &CpuTimes::nice,      &CpuTimes::system,  &CpuTimes::idle,
      &CpuTimes::iowait, &CpuTimes::irq,       &CpuTimes::softirq, &CpuTimes::steal,
      &CpuTimes::guest,  &CpuTimes::guest_nice};
  constexpr std::string_view kName = "cpu";
  std::vector<CpuTimes> all;
  while (proc_stat.starts_with(kName)) {
    const auto words = words_in(take_until(proc_stat, '\n'));
    if (words.size() <= std::size(kColumns)) return {};
    auto& one = all.emplace_back();
    if (const auto number = words[0].substr(kName.size()); !number.empty()) {
      auto cpu = parse_unsigned(number);
      if (!cpu || *cpu > INT32_MAX) return {};
      one.cpu = static_cast<int>(*cpu);
    }
    std::size_t at = 1;
    for (auto column : kColumns) {
      auto ticks = parse_unsigned(words[at++]);
      if (!ticks) return {};
      one.*column = *ticks;
    }
  }
  if (all.empty() || all[0].cpu != -1) return {};
  return all;
}

std::optional<std::vector<CpuTimes>> cpu_times() {
  auto text = read_file("/proc/stat", kProcStat);
  return text ? parse_cpu_times(*text) : std::nullopt;
}

}  // namespace coretap
