// `coretap record`: records tools, and keeps only the last minutes if wanted.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/options.hpp"
#include "record/store.hpp"

namespace coretap {

/// A tool that is to be recorded.
struct ToRecord {
  std::string name;                    ///< of its files
  std::string command;                 ///< as typed
  std::vector<std::string> arguments;  ///< the first is the tool
};
/// Checks a command line, whose first word is the tool.
Result<ToRecord> to_record(std::vector<std::string> words);
/// Numbers names that are there twice.
void make_names_differ(std::vector<ToRecord>& tools);

/// Where a flight recorder keeps its data unless something else is said; makes its parent.
std::string usual_directory();
inline constexpr double kLeastLast = 2;  ///< seconds
inline constexpr std::uint64_t kMostKeep = 1000;

/// The limits of a flight recorder, as options and keys of a configuration give them.
Result<void> take_times(record::StoreOptions& options, std::string_view at_most);

std::vector<Option> record_options();
int run_record(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
