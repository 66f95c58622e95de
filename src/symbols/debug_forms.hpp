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

/// DW_FORM_: those of DWARF 5 and GNU's.
enum DebugForm : std::uint16_t {
  form_addr = 0x01,
  form_block2 = 0x03,
  form_block4,
  form_data2,
  form_data4,
  form_data8,
  form_string,
  form_block,
  form_block1,
  form_data1,
  form_flag,
  form_sdata,
  form_strp,
  form_udata,
  form_ref_addr,
  form_ref1,
  form_ref2,
  form_ref4,
  form_ref8,
  form_ref_udata,
  form_indirect,
  form_sec_offset,
  form_exprloc,
  form_flag_present,
  form_strx,
  form_addrx,
  form_ref_sup4,
  form_strp_sup,
  form_data16,
  form_line_strp,
  form_ref_sig8,
  form_implicit_const,
  form_loclistx,
  form_rnglistx,
  form_ref_sup8,
  form_strx1,
  form_strx2,
  form_strx3,
  form_strx4,
  form_addrx1,
  form_addrx2,
  form_addrx3,
  form_addrx4,
  form_gnu_addr_index = 0x1f01,
  form_gnu_str_index,
  form_gnu_ref_alt = 0x1f20,
  form_gnu_strp_alt,
};

}  // namespace coretap::symbols
