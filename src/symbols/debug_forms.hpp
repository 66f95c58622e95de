// Forms of values in DWARF (versions 2 to 5), and where their texts and addresses are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "symbols/debug_data.hpp"

namespace coretap::symbols {

/// Properties of a unit's values, from its header and its first entry.
struct DebugUnit {
  std::uint64_t offset = 0, end = 0;  ///< in .debug_info
  std::uint64_t entries = 0;          ///< offset of the first one, from `offset`
  std::uint64_t abbreviations = 0;
  std::uint8_t version = 0, address_size = 8, offset_size = 4;

  std::uint64_t low = 0;  ///< base of its ranges
  std::uint64_t str_offsets_base = 0, addr_base = 0, rnglists_base = 0;
};

struct DebugValue {
  std::uint16_t form = 0;    ///< 0: no such attribute
  std::uint64_t number = 0;  ///< of a block: its size; of a text in place: its offset
  explicit operator bool() const { return form != 0; }
};

/// Size of the form; nullopt if it depends on the value.
std::optional<unsigned> size_of_form(std::uint64_t form, const DebugUnit& unit);
/// Reads it; false: it is damaged, or not known. `implicit`: DW_FORM_implicit_const.
bool read_form(Bytes& from, std::uint64_t form, std::int64_t implicit, const DebugUnit& unit,
               DebugValue& value);

/// A text; empty: there is none, or it is in another file. `own`: the section of texts in place.
std::string text_of(DebugData& data, const DebugUnit& unit, const DebugValue& value,
                    const std::vector<std::uint8_t>& own, std::uint64_t own_begin);
std::optional<std::uint64_t> address_of(DebugData& data, const DebugUnit& unit,
                                        const DebugValue& value);
/// True if an address is in an index of addresses or in place, and not a number to add to one.
bool is_address(std::uint16_t form);

/// "directory/name", where a name that is absolute stands alone.
std::string joined_path(const std::string& directory, const std::string& name);

}  // namespace coretap::symbols
