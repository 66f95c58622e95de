#include "symbols/go_lines.hpp"

#include <elf.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <string>

#include "symbols/debug_data.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/process_files.hpp"

// The layouts are those of runtime/symtab.go and debug/gosym/pclntab.go of these versions.

namespace coretap::symbols {

namespace {

constexpr std::uint32_t kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
constexpr std::uint64_t kMostGoFunctions = 4 << 20;
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
      if (name == ".gopclntab" || name == ".data.rel.ro.gopclntab") {
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
    auto header = table_.at(0, 8);
    if (!header) return false;
    magic_ = header->number<std::uint32_t>();
    header->number<std::uint16_t>();
    step_ = header->u8();
    const bool old = magic_ == kGo116;
    if ((!old && magic_ != kGo118 && magic_ != kGo120) || header->u8() != 8 || step_ == 0)
      return false;
    // Of position-independent programs the file may lack the text's address.
    std::uint64_t words[8] = {};
    const unsigned count = old ? 7 : 8;
    auto bytes = table_.at(8, count * 8);
    if (!bytes) return false;
    for (unsigned i = 0; i < count; i++) words[i] = bytes->number<std::uint64_t>();
    const auto* offsets = words + (old ? 2 : 3);
    text_ = old ? 0 : words[2] ? words[2] : text;
    names_ = offsets[0];
    units_ = offsets[1];
    files_ = offsets[2];
    values_ = offsets[3];
    functions_ = offsets[4];
    const auto functions = words[0];
    const unsigned each = old ? 16 : 8;
    if (functions > kMostGoFunctions || functions_ > table_.size() ||
        functions * each > table_.size() - functions_ || names_ > table_.size() ||
        units_ > table_.size() || files_ > table_.size() || values_ > table_.size())
      return false;
    std::vector<std::uint8_t> all;
    if (!table_.read(functions_, functions * each, all)) return false;
    Bytes entries({all.data(), all.size()});
    for (std::uint64_t i = 0; i < functions; i++) {
      const auto begin =
          old ? entries.number<std::uint64_t>() : text_ + entries.number<std::uint32_t>();
      const auto place =
          old ? entries.number<std::uint64_t>() : std::uint64_t{entries.number<std::uint32_t>()};
      if (!starts_.empty() && begin < starts_.back().first) return false;
      starts_.emplace_back(begin, place);
    }
    // The last word is the end of the last function.
    const auto at = functions_ + functions * each;
    end_ = old ? number<std::uint64_t>(table_, at).value_or(0)
               : text_ + number<std::uint32_t>(table_, at).value_or(0);
    return !starts_.empty();
  }

  // The table of inlined calls is found by the module's addresses, which begin with that of this
  // table. Those of position-independent programs are not in the file.
  void find_inlined(Elf* elf, std::uint64_t address) {
    if (magic_ == kGo116 || address == 0) return;
    const std::uint64_t place = magic_ == kGo118 ? 304 : 320;
    constexpr std::uint64_t kPiece = 64 << 10;
    for (std::uint64_t at = 0; at < data_.size(); at += kPiece) {
      Bytes piece = data_.from(at, kPiece);
      while (piece.left() >= 8) {
        const auto here = piece.address();
        if (piece.number<std::uint64_t>() != address) continue;
        const auto function_names = number<std::uint64_t>(data_, here + 8);
        const auto functions = number<std::uint64_t>(data_, here + place);
        if (!function_names || *function_names != address + names_ || !functions) {
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
    const bool old = magic_ == kGo116;
    constexpr std::uint64_t kLeast = 44;
    // The table of functions and their descriptions share a base.
    const auto at = functions_ + after->second + (old ? 8 : 4);
    auto bytes = table_.at(at, kLeast - 4);
    if (!bytes) return {};
    const auto word = [&] { return std::uint64_t{bytes->number<std::uint32_t>()}; };
    Function f{};
    f.entry = after->first;
    f.name = word();
    word();  // size of arguments
    word();  // deferreturn
    word();  // table of stack pointers
    f.files = word();
    f.lines = word();
    const auto tables = word();
    f.unit = word();
    if (magic_ == kGo120) word();  // line of the function
    const auto flags = word();
    if (old || calls_.size() == 0) return f;
    constexpr std::uint64_t kInlinedIndex = 2, kInlinedTree = 3, kNone = UINT32_MAX;
    const auto data = flags >> 24;
    const auto begin = at + 4 * (magic_ == kGo120 ? 10 : 9);
    const auto index = number<std::uint32_t>(table_, begin + 4 * kInlinedIndex);
    const auto tree = number<std::uint32_t>(table_, begin + 4 * (tables + kInlinedTree));
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
      Bytes bytes = table_.from(values_ + table, most);
      std::int64_t value = -1;
      auto at = entry;
      for (;;) {
        const auto change = bytes.uleb();
        if (!bytes.ok() || (change == 0 && at != entry)) break;
        const auto half = static_cast<std::int64_t>((change & UINT32_MAX) >> 1);
        value += (change & 1) != 0 ? ~half : half;
        at += bytes.uleb() * step_;
        if (!bytes.ok()) break;
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
    const std::uint64_t size = magic_ == kGo120 ? 16 : 20;
    auto bytes = calls_.at(f.inlined_tree + static_cast<std::uint64_t>(*index) * size, size);
    if (!bytes) return {};
    bytes->take(magic_ == kGo120 ? 4 : 12);
    const auto name = bytes->number<std::uint32_t>(), parent = bytes->number<std::uint32_t>();
    return Call{name, parent};
  }

  std::string name(std::uint64_t offset) { return table_.text(names_ + offset); }
  std::string path(std::uint64_t file) {
    const auto offset = number<std::uint32_t>(table_, units_ + file * 4);
    return offset && *offset != UINT32_MAX ? table_.text(files_ + *offset) : std::string();
  }

  int fd_;
  std::optional<FileIdentity> file_;
  DebugSection table_, data_, calls_;
  std::uint32_t magic_ = 0;
  unsigned step_ = 1;
  std::uint64_t text_ = 0, names_ = 0, units_ = 0, files_ = 0, values_ = 0, functions_ = 0,
                end_ = 0;
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
