// HotSpot (the Java virtual machine) in an ELF file and in processes. Untrusted input.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "lib/stack/runtime.h"
#include "runtimes/hotspot_scopes.hpp"
#include "runtimes/hotspot_tables.hpp"
#include "runtimes/read_budget.hpp"
#include "runtimes/v8.hpp"

namespace coretap::runtimes {

constexpr std::string_view kHotSpotMark = "gHotSpotVMStructs";

/// Nothing if the file is not HotSpot's library. Only addresses of its tables: the library fills
/// these when it is loaded. `base`: as for runtime_in().
std::optional<runtime_file> hotspot_in(int fd, std::uint64_t base);

enum class HotSpotState {
  starting,  ///< its variables are not set yet
  unknown,   ///< a version whose structures are not known
};

/// The kernel program's facts about a process.
std::variant<hotspot_process, HotSpotState> hotspot_process_of(const Memory& memory,
                                                               const HotSpotTables& tables,
                                                               std::uint64_t library,
                                                               std::uint64_t library_end);

/// The processes with HotSpot, as the kernel program has them.
class HotSpots {
 public:
  /// `map`: descriptor of hotspot_processes.
  HotSpots(int map, ReadMemory read) : map_(map), read_(std::move(read)) {}

  /// A process in the kernel program's map, as long as this exists.
  class Process {
   public:
    Process(HotSpots& in, std::uint32_t index) : index(index), in_(in) {}
    ~Process() { in_.known_.erase(index); }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    const std::uint32_t index;

   private:
    HotSpots& in_;
  };
  struct Library {
    std::uint64_t bias = 0;            ///< of its code's mapping
    std::uint64_t begin = 0, end = 0;  ///< of its code
  };
  /// Unknown: also if there are too many.
  std::variant<std::shared_ptr<const Process>, HotSpotState> add(pid_t pid,
                                                                 const runtime_file& file,
                                                                 const Library& library);

  /// Of compiled code that the kernel program has met. Null: its process has ended, the code was
  /// freed, or too much was read within a second.
  std::shared_ptr<const InlinedMethods> inlined(pid_t pid, const hotspot_code& code);

 private:
  /// Bytes that are read at once, and in each second: a process could show ever new code.
  static constexpr std::size_t kMostRead = 32 << 20;

  struct Known {
    pid_t pid = 0;
    hotspot_layout layout{};
    std::optional<HotSpotScopes> scopes;
  };

  int map_;
  ReadMemory read_;
  std::map<std::uint32_t, Known> known_;  // by index
  ReadBudget budget_{kMostRead};
};

}  // namespace coretap::runtimes
