// HotSpot (the Java virtual machine) in an ELF file and in processes: where its structures have
// their fields, from the tables that it has for debuggers (src/hotspot/share/runtime/vmStructs.cpp
// in its sources). Untrusted input.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/stack/runtime.h"
#include "runtimes/v8.hpp"

namespace coretap::runtimes {

constexpr std::string_view kHotSpotMark = "gHotSpotVMStructs";

/// Nothing if the file is not HotSpot's library. Only addresses of its tables: the library fills
/// these when it is loaded. `base`: as for runtime_in().
std::optional<runtime_file> hotspot_in(int fd, std::uint64_t base);

/// Memory of one process.
using Memory = std::function<bool(std::uint64_t address, std::span<char> to)>;

/// The tables of one process: offsets of fields, addresses of static ones, and sizes of types.
class HotSpotTables {
 public:
  static constexpr std::size_t kMostFields = 1 << 14, kMostTypes = 1 << 13;
  static constexpr std::uint64_t kMostFieldOffset = 4096;

  struct Field {
    bool is_static = false;
    std::uint64_t at = 0;  ///< offset or address
    std::string type;
  };

  /// `structs`, `types`: addresses of the variables that point to the tables. Nothing: the library
  /// has not filled them yet, or they are not as expected.
  static std::optional<HotSpotTables> read(const Memory& memory, std::uint64_t structs,
                                           std::uint64_t types);

  /// By "Type::_field"; of several names the first one that exists.
  const Field* field(std::string_view name) const;
  /// Of a member; nothing: there is none, or it is too far away.
  std::optional<std::uint64_t> offset(std::string_view name) const;
  /// Of a static variable.
  std::optional<std::uint64_t> address(std::string_view name) const;
  std::optional<std::uint64_t> size_of(std::string_view type) const;

 private:
  std::map<std::string, Field, std::less<>> fields_;
  std::map<std::string, std::uint64_t, std::less<>> types_;
};

/// The kernel program's facts about a process. Nothing: HotSpot has not started yet, or its
/// structures are not known.
std::optional<hotspot_process> hotspot_process_of(const Memory& memory, const HotSpotTables& tables,
                                                  std::uint64_t library, std::uint64_t library_end);

/// The processes with HotSpot, as the kernel program has them.
class HotSpots {
 public:
  /// `map`: descriptor of hotspot_processes.
  HotSpots(int map, ReadMemory read) : map_(map), read_(std::move(read)) {}

  /// A process in the kernel program's map, as long as this exists.
  struct Process {
    std::uint32_t index = 0;
    std::shared_ptr<std::vector<bool>> used;
    ~Process() {
      if (used) (*used)[index] = false;
    }
  };
  struct Library {
    std::uint64_t bias = 0;            ///< of its code's mapping
    std::uint64_t begin = 0, end = 0;  ///< of its code
  };
  /// Null: HotSpot has not started yet, or its structures are not known, or there are too many.
  std::shared_ptr<const Process> add(pid_t pid, const runtime_file& file, const Library& library);

 private:
  int map_;
  ReadMemory read_;
  std::shared_ptr<std::vector<bool>> used_ = std::make_shared<std::vector<bool>>(HOTSPOT_PROCESSES);
};

/// The line of a bytecode, from a ConstMethod's table (CompressedLineNumberReadStream in its
/// sources) of this version; 0: not known.
std::uint32_t hotspot_line(unsigned version, std::string_view table, std::uint32_t bytecode);

/// "java/lang/Object" as the language has it; without what distinguishes a class made at run time.
std::string class_name(std::string_view internal);

}  // namespace coretap::runtimes
