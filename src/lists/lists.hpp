// `coretap tplist` and `bpflist`: list trace targets and existing tracing. They attach nothing.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"

namespace coretap {

/// Commands that can also be run by their own names, like tools.
struct ListCommand {
  std::string_view name, summary;
};
inline constexpr ListCommand kBpflist = {"bpflist",
                                         "list BPF programs, maps and links, and who holds them"};
inline constexpr ListCommand kTplist = {"tplist",
                                        "list tracepoints, USDT probes and functions to trace"};
inline constexpr const ListCommand* kListCommands[] = {&kBpflist, &kTplist};

std::vector<Option> bpflist_options();
std::vector<Option> tplist_options();
std::vector<Option> symbolize_options();

/// Each takes checked options and words, and returns the exit status.
int run_bpflist(const Config& config, const std::vector<std::string>& words);
int run_tplist(const Config& config, const std::vector<std::string>& words);
int run_symbolize(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
