// Layout of the table that Go's runtime has for its own stack traces (.gopclntab), of Go 1.16 to
// 1.26: runtime/symtab.go and debug/gosym/pclntab.go of these versions.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.hpp"

namespace coretap::symbols {

struct GoHeader {
  enum Version : std::uint8_t { go116, go118, go120 } version = go116;
  unsigned step = 1;            ///< unit of distances between instructions
  unsigned entry_bytes = 0;     ///< of an entry in the list of functions: start, description
  std::uint64_t functions = 0;  ///< number of functions
  std::uint64_t text = 0;       ///< address that starts are relative to; 0: the file lacks it
  /// Offsets in the table. Descriptions are relative to `list`, too.
  std::uint64_t names = 0, units = 0, files = 0, values = 0, list = 0;

  bool absolute() const { return version == go116; }
};
inline constexpr std::uint64_t kGoHeaderBytes = 72;
inline constexpr std::uint64_t kMostGoFunctions = 4 << 20;

inline bool is_go_table(std::string_view section) {
  return section == ".gopclntab" || section == ".data.rel.ro.gopclntab";
}

/// The first kGoHeaderBytes of a table of `size` bytes; nullopt: of no known version, or damaged.
std::optional<GoHeader> go_header(Bytes bytes, std::uint64_t size);

/// An entry of the list of functions: its start as it is in the file, and its description.
struct GoStart {
  std::uint64_t start, place;
};
GoStart go_start(Bytes& bytes, const GoHeader& header);

/// A function's description, without its start. The tables are offsets from `values`; 0: none.
struct GoFunction {
  std::uint32_t name = 0, stack = 0, files = 0, lines = 0, tables = 0, unit = 0;
  std::uint8_t id = 0, flags = 0, data = 0;
};
/// Set since Go 1.17; `assembler` since 1.18.
enum GoFlag : std::uint8_t { kGoTopFrame = 1, kGoWritesStack = 2, kGoAssembler = 4 };
inline constexpr std::uint64_t kGoFunctionBytes = 48;  // at most, with its start
GoFunction go_function(Bytes bytes, const GoHeader& header);
/// Bytes of a description before its tables, without its start.
inline std::uint64_t go_function_bytes(const GoHeader& header) {
  return header.version == GoHeader::go120 ? 40 : 36;
}

/// Next range of a table of values: `value` up to `bytes` behind the range before. False: the end.
/// The first range's value is a change of -1.
bool go_value(Bytes& table, const GoHeader& header, bool first, std::int64_t& value,
              std::uint64_t& bytes);

}  // namespace coretap::symbols
