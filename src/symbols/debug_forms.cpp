#include "symbols/debug_forms.hpp"

#include <dwarf.h>
#include <string.h>

namespace coretap::symbols {

namespace {

/// A number of this many bytes, in this machine's byte order.
std::uint64_t sized_number(Bytes& from, unsigned size) {
  switch (size) {
    case 0:
      return 0;
    case 1:
      return from.u8();
    case 2:
      return from.number<std::uint16_t>();
    case 3: {
      const std::uint64_t a = from.u8(), b = from.u8(), c = from.u8();
      return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? a | b << 8 | c << 16
                                                       : c | b << 8 | a << 16;
    }
    case 4:
      return from.number<std::uint32_t>();
    case 8:
      return from.number<std::uint64_t>();
    default:
      from.take(size);
      return size;
  }
}

}  // namespace

std::optional<unsigned> size_of_form(std::uint64_t form, const DebugUnit& unit) {
  switch (form) {
    case DW_FORM_addr:
      return unit.address_size;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return 8;
    case DW_FORM_data16:
      return 16;
    case DW_FORM_ref_addr:
      return unit.version == 2 ? unit.address_size : unit.offset_size;
    case DW_FORM_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_line_strp:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return unit.offset_size;
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return 0;
    default:
      return {};
  }
}

bool read_form(Bytes& from, std::uint64_t form, std::int64_t implicit, const DebugUnit& unit,
               DebugValue& value) {
  if (form == DW_FORM_indirect) {
    form = from.uleb();
    if (form == DW_FORM_indirect || form == DW_FORM_implicit_const) return false;
  }
  value.form = static_cast<std::uint16_t>(form);
  if (const auto size = size_of_form(form, unit)) {
    value.number = form == DW_FORM_implicit_const ? static_cast<std::uint64_t>(implicit)
                   : form == DW_FORM_flag_present ? 1
                                                  : sized_number(from, *size);
    return from.ok();
  }
  switch (form) {
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      value.number = from.uleb();
      return from.ok();
    case DW_FORM_sdata:
      value.number = static_cast<std::uint64_t>(from.sleb());
      return from.ok();
    case DW_FORM_string: {
      value.number = from.address();
      const auto* end = from.left() == 0 ? nullptr : ::memchr(from.position(), 0, from.left());
      if (end == nullptr) return false;
      const auto* nul = static_cast<const std::uint8_t*>(end);
      from.take(static_cast<std::uint64_t>(nul - from.position()) + 1);
      return true;
    }
    case DW_FORM_block1:
      value.number = from.u8();
      break;
    case DW_FORM_block2:
      value.number = from.number<std::uint16_t>();
      break;
    case DW_FORM_block4:
      value.number = from.number<std::uint32_t>();
      break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
      value.number = from.uleb();
      break;
    default:
      return false;
  }
  from.take(value.number);
  return from.ok();
}

bool is_address(std::uint16_t form) {
  return form == DW_FORM_addr || form == DW_FORM_addrx || form == DW_FORM_GNU_addr_index ||
         (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

namespace {

/// The entry of a table of numbers of `size` bytes; nullopt: there is none.
std::optional<std::uint64_t> table_entry(DebugSection& table, std::uint64_t base,
                                         std::uint64_t index, unsigned size) {
  std::uint64_t at = 0;
  if (__builtin_mul_overflow(index, std::uint64_t{size}, &at) ||
      __builtin_add_overflow(at, base, &at))
    return {};
  auto bytes = table.at(at, size);
  return bytes ? std::optional(sized_number(*bytes, size)) : std::nullopt;
}

}  // namespace

std::string text_of(DebugData& data, const DebugUnit& unit, const DebugValue& value,
                    const std::vector<std::uint8_t>& own, std::uint64_t own_begin) {
  switch (value.form) {
    case DW_FORM_string: {
      const auto at = value.number - own_begin;
      if (at >= own.size()) return {};
      const auto* text = reinterpret_cast<const char*>(own.data()) + at;
      return {text, ::strnlen(text, own.size() - at)};
    }
    case DW_FORM_strp:
      return data[DebugData::str].text(value.number);
    case DW_FORM_line_strp:
      return data[DebugData::line_str].text(value.number);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4: {
      const auto at = table_entry(data[DebugData::str_offsets], unit.str_offsets_base, value.number,
                                  unit.offset_size);
      return at ? data[DebugData::str].text(*at) : std::string();
    }
    default:
      return {};
  }
}

std::optional<std::uint64_t> address_of(DebugData& data, const DebugUnit& unit,
                                        const DebugValue& value) {
  if (value.form == DW_FORM_addr) return value.number;
  if (!is_address(value.form)) return {};
  return table_entry(data[DebugData::addr], unit.addr_base, value.number, unit.address_size);
}

std::string joined_path(const std::string& directory, const std::string& name) {
  if (directory.empty() || name.starts_with('/')) return name;
  return directory + (directory.ends_with('/') ? "" : "/") + name;
}

}  // namespace coretap::symbols
