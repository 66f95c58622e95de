#include "symbols/line_program.hpp"

#include <dwarf.h>

#include <utility>

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMostProgram = 256 << 20;  // bytes
constexpr std::size_t kMostNames = 1 << 20;        // files, or directories
constexpr std::size_t kMostFormats = 16;           // values of one file

}  // namespace

bool LineProgram::read(DebugData& data, const DebugUnit& unit, std::uint64_t offset,
                       std::string directory) {
  data_ = &data;
  unit_ = unit;
  directory_ = std::move(directory);
  directories_.clear();
  files_.clear();
  auto& section = data[DebugData::line];
  Bytes head = section.from(offset, 12);
  const auto length = head.initial_length(unit_.offset_size);
  begin_ = head.address();
  if (!head.ok() || length > kMostProgram || !section.read(begin_, length, bytes_)) return false;
  Bytes all({bytes_.data(), bytes_.size()}, begin_);
  unit_.version = static_cast<std::uint8_t>(all.number<std::uint16_t>());
  if (unit_.version < 2 || unit_.version > 5) return false;
  if (unit_.version == 5) {
    unit_.address_size = all.u8();
    all.u8();  // size of segment selectors
  }
  const auto header_length = all.word(unit_.offset_size);
  Bytes header = all.take(header_length);
  instructions_ = bytes_.size() - all.left();
  step_ = header.u8();
  if (unit_.version >= 4) header.u8();  // operations per instruction
  header.u8();                          // default_is_stmt
  line_base_ = header.number<std::int8_t>();
  range_ = header.u8();
  opcode_base_ = header.u8();
  if (!all.ok() || range_ == 0 || opcode_base_ == 0 || !header.ok()) return false;
  arguments_.assign(opcode_base_, 0);
  for (unsigned i = 1; i < opcode_base_; i++) arguments_[i] = header.u8();
  return unit_.version == 5 ? names(header, directories_) && names(header, files_)
                            : old_names(header);
}

// Numbers begin with 1: directory 0 is the unit's.
bool LineProgram::old_names(Bytes& header) {
  DebugValue name;
  directories_.emplace_back();
  for (;;) {
    if (!read_form(header, DW_FORM_string, 0, unit_, name)) return false;
    if (header.address() - name.number == 1) break;
    if (directories_.size() >= kMostNames) return false;
    directories_.push_back({.name = name});
  }
  files_.emplace_back();
  for (;;) {
    if (!read_form(header, DW_FORM_string, 0, unit_, name)) return false;
    if (header.address() - name.number == 1) return true;
    const auto directory = header.uleb();
    header.uleb();  // time
    header.uleb();  // size
    if (!header.ok() || files_.size() >= kMostNames) return false;
    files_.push_back({name, directory});
  }
}

bool LineProgram::names(Bytes& header, std::vector<File>& to) {
  std::pair<std::uint64_t, std::uint64_t> formats[kMostFormats];
  const std::size_t values = header.u8();
  if (values > kMostFormats) return false;
  for (std::size_t i = 0; i < values; i++) formats[i] = {header.uleb(), header.uleb()};
  const auto count = header.uleb();
  // Each name takes at least a byte.
  if (!header.ok() || count > kMostNames || count > header.left() || (count && !values))
    return false;
  for (std::uint64_t n = 0; n < count; n++) {
    File file;
    for (std::size_t i = 0; i < values; i++) {
      DebugValue value;
      if (!read_form(header, formats[i].second, 0, unit_, value)) return false;
      if (formats[i].first == DW_LNCT_path) file.name = value;
      if (formats[i].first == DW_LNCT_directory_index) file.directory = value.number;
    }
    to.push_back(file);
  }
  return true;
}

bool LineProgram::run(const OnRow& row) {
  Bytes code({bytes_.data() + instructions_, bytes_.size() - instructions_},
             begin_ + instructions_);
  std::uint64_t address = 0, file = 1, line = 1;
  // The last row: of several at one address, the last one counts.
  std::uint64_t last_address = 0, last_file = 0, last_line = 0;
  bool waits = false;
  const auto emit = [&](bool end) {
    if (waits && address > last_address && !row(last_address, address, last_file, last_line))
      return false;
    waits = !end;
    last_address = address;
    last_file = file;
    last_line = line;
    return true;
  };
  while (!code.at_end()) {
    const unsigned opcode = code.u8();
    if (opcode >= opcode_base_) {
      const unsigned special = opcode - opcode_base_;
      address += std::uint64_t{special / range_} * step_;
      line += static_cast<std::uint64_t>(line_base_ + static_cast<int>(special % range_));
      if (!emit(false)) return true;
      continue;
    }
    switch (opcode) {
      case 0: {  // extended
        const auto size = code.uleb();
        Bytes body = code.take(size);
        if (!code.ok() || size == 0) return false;
        switch (body.u8()) {
          case DW_LNE_end_sequence:
            if (!emit(true)) return true;
            address = 0;
            file = line = 1;
            break;
          case DW_LNE_set_address:
            address = size == 5   ? body.number<std::uint32_t>()
                      : size == 9 ? body.number<std::uint64_t>()
                                  : 0;
            break;
          case DW_LNE_define_file: {
            File added;
            if (files_.size() >= kMostNames ||
                !read_form(body, DW_FORM_string, 0, unit_, added.name))
              return false;
            added.directory = body.uleb();
            files_.push_back(added);
            break;
          }
          default:
            break;
        }
        break;
      }
      case DW_LNS_copy:
        if (!emit(false)) return true;
        break;
      case DW_LNS_advance_pc:
        address += code.uleb() * step_;
        break;
      case DW_LNS_advance_line:
        line += static_cast<std::uint64_t>(code.sleb());
        break;
      case DW_LNS_set_file:
        file = code.uleb();
        break;
      case DW_LNS_const_add_pc:
        address += std::uint64_t{(255U - opcode_base_) / range_} * step_;
        break;
      case DW_LNS_fixed_advance_pc:
        address += code.number<std::uint16_t>();
        break;
      default:
        for (unsigned i = 0; i < arguments_[opcode]; i++) code.uleb();
    }
  }
  return code.ok();
}

std::string LineProgram::path(std::uint64_t file) {
  if (file >= files_.size() || !files_[file].name) return {};
  auto path = text(files_[file].name);
  if (path.starts_with('/')) return path;
  const auto directory = files_[file].directory;
  if (directory < directories_.size() && directories_[directory].name)
    path = joined_path(text(directories_[directory].name), path);
  return joined_path(directory_, path);
}

}  // namespace coretap::symbols
