#include "symbols/go_table.hpp"

#include <limits>

namespace coretap::symbols {

std::optional<GoHeader> go_header(Bytes bytes, std::uint64_t size) {
  constexpr std::uint32_t kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
  GoHeader header;
  const auto magic = bytes.number<std::uint32_t>();
  if (magic != kGo116 && magic != kGo118 && magic != kGo120) return {};
  header.version = magic == kGo116   ? GoHeader::go116
                   : magic == kGo118 ? GoHeader::go118
                                     : GoHeader::go120;
  header.entry_bytes = header.absolute() ? 16 : 8;
  bytes.number<std::uint16_t>();
  header.step = bytes.u8();
  if (bytes.u8() != 8 || header.step == 0) return {};
  header.functions = bytes.number<std::uint64_t>();
  bytes.number<std::uint64_t>();  // number of files
  // Of position-independent programs, and since 1.26, the file may lack the text's address.
  if (!header.absolute()) header.text = bytes.number<std::uint64_t>();
  for (auto* part : {&header.names, &header.units, &header.files, &header.values, &header.list}) {
    *part = bytes.number<std::uint64_t>();
    if (*part > size) return {};
  }
  if (!bytes.ok() || header.functions == 0 || header.functions > kMostGoFunctions ||
      header.functions * header.entry_bytes > size - header.list)
    return {};
  return header;
}

GoStart go_start(Bytes& bytes, const GoHeader& header) {
  const unsigned half = header.entry_bytes / 2;
  const auto start = bytes.word(half);
  return {start, bytes.word(half)};
}

GoFunction go_function(Bytes bytes, const GoHeader& header) {
  GoFunction f;
  const auto word = [&] { return bytes.number<std::uint32_t>(); };
  f.name = word();
  word();  // size of arguments
  word();  // deferreturn
  f.stack = word();
  f.files = word();
  f.lines = word();
  f.tables = word();
  f.unit = word();
  if (header.version == GoHeader::go120) word();  // line of the function
  f.id = bytes.u8();
  f.flags = bytes.u8();
  bytes.u8();
  f.data = bytes.u8();
  return f;
}

bool go_value(Bytes& table, const GoHeader& header, bool first, std::int64_t& value,
              std::uint64_t& bytes) {
  const auto change = table.uleb() & std::numeric_limits<std::uint32_t>::max();
  if (!table.ok() || (change == 0 && !first)) return false;
  const auto half = static_cast<std::int64_t>(change >> 1);
  value += (change & 1) != 0 ? ~half : half;
  bytes = (table.uleb() & std::numeric_limits<std::uint32_t>::max()) * header.step;
  return table.ok();
}

}  // namespace coretap::symbols
