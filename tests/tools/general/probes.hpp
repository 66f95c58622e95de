// Functions of the workloads `probes` and `calls`, and of the kernel, that tools trace by name.
#pragma once

#include <fmt/format.h>

#include "../harness.hpp"

namespace coretap::tooltest {

inline std::string probes() { return workload_path("probes"); }
inline std::string calls(const std::string& function) {
  return workload_path("calls") + ":" + function;
}

inline bool has_kprobes() { return access("/sys/bus/event_source/devices/kprobe/type", F_OK) == 0; }
inline void need_kprobes() {
  if (!has_kprobes()) throw Skip("no kprobes on this kernel: guests have them");
}

/// A tool's report, with these arguments, of a command.
inline Report of_command(const Strings& tool, const Strings& command) {
  require_tool(tool.at(0));
  auto words = tool + "--json --" + command;
  words[0] = tool_path(tool[0]);
  auto ran = run(words);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return parse_report(ran.out, ran.err);
}

/// Histograms by target.
inline std::map<std::string, Json> by_target(const Report& report) {
  std::map<std::string, Json> all;
  for (auto& histogram : report.body) {
    check_histogram(histogram, 1);
    all.emplace(histogram["target"].str(), histogram);
  }
  return all;
}

/// Addresses of a function's instructions in order, by objdump.
inline std::vector<std::uint64_t> instructions_of(const std::string& file,
                                                  const std::string& function) {
  auto listed = run({"/usr/bin/objdump", "-d", "--disassemble=" + function, file});
  if (listed.status != 0) throw Skip("no objdump here: CI's machines have it");
  std::vector<std::uint64_t> all;
  for (auto& line : lines(listed.out)) {
    auto colon = line.find(":\t");
    // A long instruction continues in a line with only bytes.
    if (colon != line.npos && line.find('\t', colon + 2) != line.npos)
      all.push_back(std::stoull(line, nullptr, 16));
  }
  if (all.size() < 2) throw Skip("objdump does not find " + function);
  return all;
}

/// "FILE:FUNCTION+0x1c": the last instruction, which each call reaches if there are no branches.
inline std::string last_place_of(const std::string& file, const std::string& function) {
  auto all = instructions_of(file, function);
  return fmt::format("{}:{}+{:#x}", file, function, all.back() - all.front());
}

}  // namespace coretap::tooltest
