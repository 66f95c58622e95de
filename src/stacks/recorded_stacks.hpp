// Stacks that an earlier run wrote with --pprof or --folded. The file may come from anyone. Pure:
// bytes in, names out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

struct RecordedStacks {
  static constexpr std::size_t kMostBytes = 64 << 20;      ///< of the file
  static constexpr std::size_t kMostUnpacked = 256 << 20;  ///< of a profile in it
  static constexpr std::size_t kMostParts = 2 << 20;       ///< strings, functions, samples, ...
  static constexpr std::size_t kMostFrames = 16 << 20;     ///< of all stacks together
  static constexpr std::size_t kMostDepth = 4096;          ///< of one stack
  static constexpr std::size_t kLongestName = 1024;        ///< bytes; the rest is cut
  static constexpr std::uint64_t kMostTime = 1ULL << 60;   ///< all values together

  struct Stack {
    std::vector<std::uint32_t>
        frames;  ///< indices of names: the task, then the outermost frame ...
    std::uint64_t value = 0;
    std::uint64_t count = 0;  ///< events; 0: not known
  };

  std::vector<std::string> names;  ///< as in folded stacks: printable, without ';'
  std::vector<bool> kernel;        ///< of these names: a function of the kernel
  std::vector<Stack> stacks;
  std::uint64_t lasted_ns = 0;  ///< 0: not known
  std::uint64_t thread_ns = 0;  ///< time of all threads; 0: not known
  bool folded = false;

  std::uint32_t name(std::string_view text);

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
};

/// The time of all threads, as a line for comments of profiles.
std::string thread_time_note(std::uint64_t thread_ns, std::uint64_t lasted_ns);

struct RecordedType {
  std::string_view name, unit;  ///< of the value in profiles: "time", "nanoseconds"
  std::uint64_t folded_scale;   ///< of these in a unit of folded stacks
};

/// `file`: its name, for errors; `tool`: that makes such files.
Result<RecordedStacks> recorded_stacks(std::string_view bytes, std::string_view file,
                                       const RecordedType& type, std::string_view tool);
/// The same of a file.
Result<RecordedStacks> read_recorded_stacks(const std::string& path, const RecordedType& type,
                                            std::string_view tool);

}  // namespace coretap
