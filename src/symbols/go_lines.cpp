#include "symbols/go_lines.hpp"

#include <elf.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <string>

#include "symbols/debug_data.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/go_table.hpp"
#include "symbols/process_files.hpp"

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMostGoTable = 1 << 20;  // bytes of one function's values
constexpr std::size_t kMostGoInlined = 64;
constexpr std::uint64_t kMostGoData = 64 << 20;  // bytes searched for the module's addresses
constexpr std::int64_t kMostGoSeconds = 10;      // CPU time

class GoTable {
 public:
  explicit GoTable(int fd) : fd_(fd), file_(identity_of(fd)) {}

  bool open() {
    const auto elf = open_elf(fd_);
    if (!file_ || !elf || ::gelf_getclass(elf.get()) != ELFCLASS64) return false;
    std::uint64_t address = 0, text = 0;
    find_section(elf.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
      if (header.sh_type == SHT_NOBITS || header.sh_offset > file_->size ||
          header.sh_size > file_->size - header.sh_offset)
        return false;
      if (is_go_table(name)) {
        table_ = DebugSection(fd_, header.sh_offset, header.sh_size);
        address = header.sh_addr;
      } else if (name == ".text") {
        text = header.sh_addr;
      } else if (name == ".noptrdata" || name == ".go.module") {
        data_ = DebugSection(fd_, header.sh_offset, std::min(header.sh_size, kMostGoData));
      }
      return false;
    });
    if (!read_header(text)) return false;
    find_inlined(elf.get(), address);
    return true;
  }

  SourcePlace find(std::uint64_t address) {
    const auto function = function_at(address);
    if (!function) return {.why = "Go's table has no function at this address"};
    SourcePlace place;
    auto at = address;
    for (std::size_t n = 0; n < kMostGoInlined; n++) {
      const auto file = value(function->files, function->entry, at);
      const auto line = value(function->lines, function->entry, at);
      SourceFrame frame;
      if (file && *file >= 0) frame.file = path(function->unit + static_cast<std::uint64_t>(*file));
      if (line && *line > 0) frame.line = static_cast<std::uint32_t>(*line);
      const auto call = inlined(*function, at);
      frame.function = name(call ? call->name : function->name);
      frame.inlined = call.has_value();
      place.frames.push_back(std::move(frame));
      if (!call) break;
      at = function->entry + call->parent;
    }
    return place;
  }

 private:
  struct Function {
    std::uint64_t entry, name, files, lines, unit;
    std::uint64_t inlined_index = 0, inlined_tree = 0;  // 0: none
  };
  struct Call {
    std::uint64_t name, parent;  // `parent`: offset of the call in the function
  };

  template <class T>
  std::optional<T> number(DebugSection& from, std::uint64_t at) {
    auto bytes = from.at(at, sizeof(T));
    return bytes ? std::optional(bytes->number<T>()) : std::nullopt;
  }

  bool read_header(std::uint64_t text) {
    auto bytes = table_.at(0, kGoHeaderBytes);
    const auto header = bytes ? go_header(*bytes, table_.size()) : std::nullopt;
    if (!header) return false;
    header_ = *header;
    if (!header_.absolute() && header_.text == 0) header_.text = text;
    std::vector<std::uint8_t> all;
    if (!table_.read(header_.list, header_.functions * header_.entry_bytes, all)) return false;
    Bytes entries({all.data(), all.size()});
    for (std::uint64_t i = 0; i < header_.functions; i++) {
      const auto [start, place] = go_start(entries, header_);
      const auto begin = header_.text + start;
      if (!starts_.empty() && begin < starts_.back().first) return false;
      starts_.emplace_back(begin, place);
    }
    // The last word is the end of the last function.
    const auto at = header_.list + header_.functions * header_.entry_bytes;
    end_ = header_.absolute() ? number<std::uint64_t>(table_, at).value_or(0)
                              : header_.text + number<std::uint32_t>(table_, at).value_or(0);
    return true;
  }

  // The table of inlined calls is found by the module's addresses, which begin with that of this
  // table. Those of position-independent programs are not in the file.
  void find_inlined(Elf* elf, std::uint64_t address) {
    if (header_.absolute() || address == 0) return;
    const std::uint64_t place = header_.version == GoHeader::go118 ? 304 : 320;
    constexpr std::uint64_t kPiece = 64 << 10;
    for (std::uint64_t at = 0; at < data_.size(); at += kPiece) {
      Bytes piece = data_.from(at, kPiece);
      while (piece.left() >= 8) {
        const auto here = piece.address();
        if (piece.number<std::uint64_t>() != address) continue;
        const auto function_names = number<std::uint64_t>(data_, here + 8);
        const auto functions = number<std::uint64_t>(data_, here + place);
        if (!function_names || *function_names != address + header_.names || !functions) {
          piece = data_.from(here + 8, kPiece - (here + 8 - at));
          continue;
        }
        std::size_t count = 0;
        if (::elf_getphdrnum(elf, &count) != 0) return;
        for (std::size_t i = 0; i < std::min(count, kMaxSegments); i++) {
          GElf_Phdr segment;
          if (::gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr ||
              segment.p_type != PT_LOAD || *functions < segment.p_vaddr ||
              segment.p_offset > file_->size)
            continue;
          const auto size = std::min(segment.p_filesz, file_->size - segment.p_offset);
          const auto into = *functions - segment.p_vaddr;
          if (into < size) calls_ = DebugSection(fd_, segment.p_offset + into, size - into);
        }
        return;
      }
    }
  }

  std::optional<Function> function_at(std::uint64_t address) {
    auto after = std::ranges::upper_bound(starts_, address, {},
                                          &std::pair<std::uint64_t, std::uint64_t>::first);
    if (after == starts_.begin() || address >= end_) return {};
    --after;
    const auto at = header_.list + after->second + header_.entry_bytes / 2;
    const auto bytes = table_.at(at, go_function_bytes(header_));
    if (!bytes) return {};
    const auto described = go_function(*bytes, header_);
    Function f{};
    f.entry = after->first;
    f.name = described.name;
    f.files = described.files;
    f.lines = described.lines;
    f.unit = described.unit;
    if (header_.absolute() || calls_.size() == 0) return f;
    constexpr std::uint64_t kInlinedIndex = 2, kInlinedTree = 3, kNone = UINT32_MAX;
    const auto tables = described.tables, data = std::uint32_t{described.data};
    const auto begin = at + go_function_bytes(header_);
    const auto index = number<std::uint32_t>(table_, begin + 4 * kInlinedIndex);
    const auto tree =
        number<std::uint32_t>(table_, begin + 4 * (std::uint64_t{tables} + kInlinedTree));
    if (tables > kInlinedIndex && data > kInlinedTree && index && tree && *tree != kNone) {
      f.inlined_index = *index;
      f.inlined_tree = *tree;
    }
    return f;
  }

  // The value of a table at this address (runtime.pcvalue).
  std::optional<std::int64_t> value(std::uint64_t table, std::uint64_t entry,
                                    std::uint64_t address) {
    if (table == 0) return {};
    for (const std::uint64_t most : {std::uint64_t{512}, kMostGoTable}) {
      Bytes bytes = table_.from(header_.values + table, most);
      std::int64_t value = -1;
      auto at = entry;
      for (std::uint64_t size = 0; go_value(bytes, header_, at == entry, value, size);) {
        at += size;
        if (address < at) return value;
      }
      if (bytes.ok()) return {};
    }
    return {};
  }

  std::optional<Call> inlined(const Function& f, std::uint64_t at) {
    if (f.inlined_index == 0) return {};
    const auto index = value(f.inlined_index, f.entry, at);
    if (!index || *index < 0) return {};
    const std::uint64_t size = header_.version == GoHeader::go120 ? 16 : 20;
    auto bytes = calls_.at(f.inlined_tree + static_cast<std::uint64_t>(*index) * size, size);
    if (!bytes) return {};
    bytes->take(header_.version == GoHeader::go120 ? 4 : 12);
    const auto name = bytes->number<std::uint32_t>(), parent = bytes->number<std::uint32_t>();
    return Call{name, parent};
  }

  std::string name(std::uint64_t offset) { return table_.text(header_.names + offset); }
  std::string path(std::uint64_t file) {
    const auto offset = number<std::uint32_t>(table_, header_.units + file * 4);
    return offset && *offset != UINT32_MAX ? table_.text(header_.files + *offset) : std::string();
  }

  int fd_;
  std::optional<FileIdentity> file_;
  DebugSection table_, data_, calls_;
  GoHeader header_;
  std::uint64_t end_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> starts_;  // and places of descriptions
};

}  // namespace

std::vector<SourcePlace> go_lines(int fd, std::span<const std::uint64_t> addresses) {
  GoTable table(fd);
  std::vector<SourcePlace> places;
  if (!table.open()) return places;
  const auto seconds = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec};
  };
  const auto limit = seconds() + kMostGoSeconds;
  for (const auto address : addresses)
    places.push_back(seconds() > limit ? SourcePlace{.why = "reading Go's table takes too long"}
                                       : table.find(address));
  return places;
}

}  // namespace coretap::symbols
