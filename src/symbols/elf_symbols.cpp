#include "symbols/elf_symbols.hpp"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "coretap/small_files.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/go_names.hpp"

// Why libelf and not libdwfl: libdwfl maps the files (truncating one kills the reader by SIGBUS),
// unpacks .gnu_debugdata without bound, and may query debuginfod servers.

namespace coretap::symbols {
namespace {

constexpr std::uint64_t kMaxSection = 256ULL << 20;
constexpr std::size_t kMaxFunctions = 4 << 20;
constexpr std::size_t kMaxNameBytes = 256 << 20;
constexpr std::size_t kMaxDebugdata = 64 << 20;  // uncompressed
constexpr std::uint64_t kMaxNotes = 1 << 20;     // bytes of all notes
constexpr std::uint64_t kMaxChecksummed = 1ULL << 30;
constexpr std::size_t kMaxPlaces = 8;  // of one function
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kEntryBytes = 64;     // size of _start
constexpr std::uint64_t kEntryBefore = 1024;  // from start_thread's call to pthread_create

std::string build_id_of(Elf* elf) {
  std::uint64_t left = kMaxNotes;
  for (Elf_Scn* section = nullptr; (section = ::elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_NOTE) continue;
    Elf_Data* data = section_data(section, header, left);
    if (data == nullptr) continue;
    left -= header.sh_size;
    GElf_Nhdr note;
    std::size_t name_at, text_at;
    for (std::size_t at = 0, next;
         (next = ::gelf_getnote(data, at, &note, &name_at, &text_at)) > at; at = next) {
      if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof ELF_NOTE_GNU ||
          note.n_descsz < 2 || note.n_descsz > 64)
        continue;
      const auto* bytes = static_cast<const char*>(data->d_buf);
      if (::memcmp(bytes + name_at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0)
        return hexadecimal({bytes + text_at, note.n_descsz});
    }
  }
  return {};
}

std::optional<std::uint64_t> first_load_address(Elf* elf) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) return {};
  for (std::size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
    GElf_Phdr header;
    if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
    if (header.p_type == PT_LOAD) return header.p_vaddr;
  }
  return {};
}

bool has_checksum(int fd, std::uint32_t checksum) {
  std::vector<unsigned char> buffer(256 << 10);
  uLong crc = ::crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at <= kMaxChecksummed;) {
    const auto got = read_bytes(fd, at, buffer.data(), buffer.size());
    if (got == 0) return crc == checksum;
    crc = ::crc32(crc, buffer.data(), static_cast<uInt>(got));
    at += got;
  }
  return false;
}

Elf_Data* named_section(Elf* elf, std::string_view wanted, std::uint64_t max_size) {
  Elf_Data* data = nullptr;
  find_section(elf, [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
    if (name != wanted) return false;
    data = section_data(section, header, max_size);
    return true;
  });
  return data;
}

DebugFileKey key_of(Elf* elf) {
  DebugFileKey key{.build_id = build_id_of(elf)};
  const Elf_Data* link = named_section(elf, ".gnu_debuglink", 8192);
  if (link == nullptr) return key;
  const auto* text = static_cast<const char*>(link->d_buf);
  const std::string_view name(text, ::strnlen(text, link->d_size));
  const std::size_t checksum_at = (name.size() + 4) & ~std::size_t{3};  // after the NUL, aligned
  if (name.empty() || name.size() > 255 || checksum_at + sizeof key.checksum > link->d_size ||
      name.find('/') != name.npos || name == "." || name == "..")
    return key;
  ::memcpy(&key.checksum, text + checksum_at, sizeof key.checksum);
  key.debuglink = name;
  return key;
}

// Unpacks an .xz file; empty if it is damaged or unpacks to more than kMaxDebugdata.
std::vector<std::uint64_t> unpack(const void* data, std::size_t size, std::size_t& unpacked) {
  std::vector<std::uint64_t> out;
  lzma_stream stream = LZMA_STREAM_INIT;
  if (::lzma_stream_decoder(&stream, kMaxDebugdata * 2, 0) != LZMA_OK) return out;
  const std::unique_ptr<lzma_stream, decltype(&::lzma_end)> end(&stream, &::lzma_end);
  stream.next_in = static_cast<const std::uint8_t*>(data);
  stream.avail_in = size;
  unpacked = 0;
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK && unpacked < kMaxDebugdata) {
    out.resize(std::min((unpacked + (256 << 10)) * 2, kMaxDebugdata) / sizeof out[0]);
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.data()) + unpacked;
    stream.avail_out = out.size() * sizeof out[0] - unpacked;
    status = ::lzma_code(&stream, LZMA_FINISH);
    unpacked = out.size() * sizeof out[0] - stream.avail_out;
  }
  if (status != LZMA_STREAM_END) out.clear();
  return out;
}

struct SymbolTable {
  Elf_Data* symbols;
  const Elf_Data* names;
};

// The first table of this type. Files have one of each (gABI): a hostile file could have thousands
// that share their bytes, each of which would be read again.
std::optional<SymbolTable> symbol_table(Elf* elf, GElf_Word type) {
  for (Elf_Scn* section = nullptr; (section = ::elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header, names_header;
    if (::gelf_getshdr(section, &header) == nullptr || header.sh_type != type) continue;
    Elf_Scn* names_section = ::elf_getscn(elf, header.sh_link);
    if (names_section == nullptr || ::gelf_getshdr(names_section, &names_header) == nullptr ||
        names_header.sh_type != SHT_STRTAB)
      return {};
    Elf_Data* symbols = section_data(section, header, kMaxSection);
    const Elf_Data* names = section_data(names_section, names_header, kMaxSection);
    if (symbols == nullptr || names == nullptr || symbols->d_type != ELF_T_SYM) return {};
    return SymbolTable{symbols, names};
  }
  return {};
}

// Calls back for each defined symbol, with the string table from its name on, as far as a name may
// reach.
template <class Visit>
void each_symbol(Elf* elf, const SymbolTable& table, Visit visit) {
  const std::size_t each = ::gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
  const std::size_t count =
      each > 0 ? std::min<std::size_t>(table.symbols->d_size / each, INT32_MAX) : 0;
  const std::string_view names(static_cast<const char*>(table.names->d_buf), table.names->d_size);
  for (std::size_t i = 1; i < count; ++i) {
    GElf_Sym symbol;
    if (::gelf_getsym(table.symbols, static_cast<int>(i), &symbol) == nullptr) break;
    if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < names.size())
      visit(symbol, names.substr(symbol.st_name, NameArena::kMaxName + 1));
  }
}

template <class Visit>
void each_code_symbol(Elf* elf, Visit visit) {
  for (const GElf_Word type : {SHT_DYNSYM, SHT_SYMTAB})
    if (const auto table = symbol_table(elf, type))
      each_symbol(elf, *table, [&](const GElf_Sym& symbol, std::string_view text) {
        const unsigned kind = GELF_ST_TYPE(symbol.st_info);
        if (kind == STT_FUNC || kind == STT_GNU_IFUNC) visit(symbol, kind == STT_GNU_IFUNC, text);
      });
}

// Is this the name, perhaps with a version ("memcpy@@GLIBC_2.14")? `text` goes on behind it.
bool is_named(std::string_view text, std::string_view name) {
  return text.size() > name.size() && text.starts_with(name) &&
         (text[name.size()] == '\0' || text[name.size()] == '@');
}

}  // namespace

std::vector<ExportedSymbol> find_exported(int fd, std::span<const std::string_view> names) {
  std::vector<ExportedSymbol> found(names.size());
  const ElfHandle elf = open_elf(fd);
  if (!elf || !is_native(elf.get())) return found;
  const auto table = symbol_table(elf.get(), SHT_DYNSYM);
  if (!table) return found;
  each_symbol(elf.get(), *table, [&](const GElf_Sym& symbol, std::string_view text) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (is_named(text, names[i])) found[i] = {symbol.st_value, symbol.st_size, {}};
  });
  const auto file = identity_of(fd);
  for (auto& symbol : found)
    if (symbol.address)
      symbol.offset = file_offset(elf.get(), file ? file->size : 0, symbol.address, PF_R);
  return found;
}

FunctionPlace find_function(int fd, std::string_view name) {
  const ElfHandle elf = open_elf(fd);
  if (!elf) return {};
  if (!is_native(elf.get())) return {.state = FunctionPlace::foreign};
  std::size_t symbols = 0;  // number of symbols with any name
  bool any_indirect = false;
  std::vector<std::uint64_t> global, local;
  each_code_symbol(elf.get(), [&](const GElf_Sym& symbol, bool indirect, std::string_view text) {
    ++symbols;
    if (!is_named(text, name)) return;
    any_indirect |= indirect;
    auto& list = GELF_ST_BIND(symbol.st_info) == STB_LOCAL ? local : global;
    if (list.size() < kMaxPlaces &&
        std::find(list.begin(), list.end(), symbol.st_value) == list.end())
      list.push_back(symbol.st_value);
  });
  if (any_indirect) return {.state = FunctionPlace::indirect};
  const auto& addresses = global.empty() ? local : global;
  if (addresses.empty())
    return {.state = symbols == 0 ? FunctionPlace::stripped : FunctionPlace::absent};
  FunctionPlace place{.state = FunctionPlace::found};
  const auto file = identity_of(fd);
  for (const auto address : addresses)
    if (const auto offset = file_offset(elf.get(), file ? file->size : 0, address, PF_X))
      place.offsets.push_back(*offset);
  if (place.offsets.empty()) place.state = FunctionPlace::outside;
  return place;
}

NamedFunctions find_functions(int fd, const std::function<bool(const char*)>& wanted,
                              std::size_t most) {
  NamedFunctions found;
  const ElfHandle elf = open_elf(fd);
  if (!elf) return found;
  found.state = FunctionPlace::foreign;
  if (!is_native(elf.get())) return found;
  std::size_t symbols = 0;
  const auto file = identity_of(fd);
  std::string name;
  each_code_symbol(elf.get(), [&](const GElf_Sym& symbol, bool indirect, std::string_view text) {
    ++symbols;
    name = text.substr(
        0, std::min(text.find_first_of(std::string_view("\0@", 2)), NameArena::kMaxName));
    if (name.empty() || !wanted(name.c_str())) return;
    const auto offset = file_offset(elf.get(), file ? file->size : 0, symbol.st_value, PF_X);
    if (indirect)
      ++found.indirect;
    else if (!offset)
      ++found.outside;
    else if (found.functions.size() < most)
      found.functions.push_back({name, *offset});
    else
      ++found.beyond;
  });
  found.state = symbols == 0               ? FunctionPlace::stripped
                : !found.functions.empty() ? FunctionPlace::found
                : found.indirect > 0       ? FunctionPlace::indirect
                                           : FunctionPlace::absent;
  // For a place with several names, use the one with the fewest leading underscores, then the
  // shortest.
  const auto plainness = [](const NamedFunctions::Function& f) {
    return std::make_tuple(f.name.find_first_not_of('_'), f.name.size(), std::cref(f.name));
  };
  std::ranges::sort(found.functions, [&](auto& a, auto& b) {
    return a.offset != b.offset ? a.offset < b.offset : plainness(a) < plainness(b);
  });
  const auto same = std::unique(found.functions.begin(), found.functions.end(),
                                [](auto& a, auto& b) { return a.offset == b.offset; });
  found.functions.erase(same, found.functions.end());
  return found;
}

// Collects candidates from up to three ELF files that describe the same code; these stay open until
// the names of the chosen ones are copied.
class ElfReader {
 public:
  explicit ElfReader(ElfHandle elf) { files_.push_back(std::move(elf)); }

  std::shared_ptr<ElfSymbols> run(int fd, const FindDebugFile& find_debug_file) {
    auto result = std::make_shared<ElfSymbols>();
    read_segments(*result);
    GElf_Ehdr header;
    if (::gelf_getehdr(files_.front().get(), &header) != nullptr) result->entry_ = header.e_entry;
    if (result->segments_.empty()) return {};
    Elf* main = files_.front().get();
    result->build_id_ = build_id_of(main);
    result->program_ = is_program(main);
    bool whole =
        add_tables(main, SHT_SYMTAB, 0) || (find_debug_file && add_debug_file(fd, find_debug_file));
    // .dynsym may still have names that were stripped from .symtab.
    add_tables(main, SHT_DYNSYM, 0);
    if (!whole) add_debugdata(main);
    if (!whole && fd >= 0) add_go(fd);
    choose(*result);
    return result;
  }

 private:
  struct Candidate {
    std::uint64_t start;
    std::uint32_t size;  // extends to the section's end if `sizeless`
    std::uint8_t rank;   // lower is better
    bool sizeless;
    std::uint16_t length;  // length of the name
    const char* name;
  };

  void read_segments(ElfSymbols& out) {
    std::size_t count = 0;
    Elf* elf = files_.front().get();
    if (::elf_getphdrnum(elf, &count) != 0) return;
    std::vector<ElfSymbols::Segment> others;
    for (std::size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
      GElf_Phdr header;
      if (::gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
      if (header.p_type != PT_LOAD || header.p_filesz == 0 ||
          header.p_offset > UINT64_MAX - header.p_filesz)
        continue;
      auto& list = (header.p_flags & PF_X) != 0 ? out.segments_ : others;
      list.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
    }
    out.executable_ = out.segments_.size();
    out.segments_.insert(out.segments_.end(), others.begin(), others.end());
  }

  // True if there was a table of this type with symbols.
  bool add_tables(Elf* elf, GElf_Word type, std::uint64_t bias) {
    std::size_t count = 0;
    if (::elf_getshdrnum(elf, &count) != 0 || count >= SHN_LORESERVE) return false;
    const auto table = symbol_table(elf, type);
    if (!table) return false;
    std::vector<GElf_Shdr> sections(count);  // for their types and ends
    for (std::size_t i = 0; i < count; ++i) {
      Elf_Scn* section = ::elf_getscn(elf, i);
      if (section == nullptr || ::gelf_getshdr(section, &sections[i]) == nullptr) sections[i] = {};
    }
    each_symbol(elf, *table, [&](const GElf_Sym& symbol, std::string_view text) {
      if (symbol.st_shndx >= sections.size() || candidates_.size() >= kMaxFunctions) return;
      const unsigned kind = GELF_ST_TYPE(symbol.st_info);
      const GElf_Shdr& section = sections[symbol.st_shndx];
      const bool function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
      if (!function && (kind != STT_NOTYPE || (section.sh_flags & SHF_EXECINSTR) == 0)) return;
      std::uint64_t start = symbol.st_value;
      if (machine(elf) == EM_ARM && function) start &= ~1ULL;  // the bit means "Thumb"
      const std::uint64_t section_end = section.sh_addr + section.sh_size;
      std::uint64_t size = symbol.st_size;
      const bool sizeless = size == 0;
      if (sizeless) {
        if (start < section.sh_addr || start >= section_end) return;
        size = section_end - start;
      }
      auto name = text.substr(0, std::min(text.find('\0'), NameArena::kMaxName));
      // "memcpy@@GLIBC_2.14"
      if (const auto at = name.find('@'); at != name.npos && at > 0) name = name.substr(0, at);
      // "$x", ".L1": assembler markers, not functions
      if (name.empty() || (!function && (name.front() == '$' || name.starts_with(".L")))) return;
      const unsigned bind = GELF_ST_BIND(symbol.st_info);
      const std::size_t underscores =
          std::min<std::size_t>(3, std::min(name.find_first_not_of('_'), name.size()));
      const unsigned rank = (function ? 0U : 64U) + (sizeless ? 32U : 0U) +
                            (bind == STB_LOCAL ? 16U : 0U) +
                            static_cast<unsigned>(underscores) * 2 + (bind == STB_WEAK ? 1U : 0U);
      candidates_.push_back(
          {.start = start + bias,
           .size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, UINT32_MAX)),
           .rank = static_cast<std::uint8_t>(rank),
           .sizeless = sizeless,
           .length = static_cast<std::uint16_t>(name.size()),
           .name = name.data()});
    });
    return true;
  }

  static unsigned machine(Elf* elf) {
    GElf_Ehdr header;
    return ::gelf_getehdr(elf, &header) != nullptr ? header.e_machine : unsigned{EM_NONE};
  }

  // Files linked at another address (prelink) are shifted by the difference of the first segments.
  std::uint64_t bias_of(Elf* other) const {
    const auto here = first_load_address(files_.front().get());
    const auto there = first_load_address(other);
    return here && there ? *here - *there : 0;
  }

  bool add_debug_file(int fd, const FindDebugFile& find) {
    Elf* main = files_.front().get();
    const auto key = key_of(main);
    if (key.build_id.empty() && key.debuglink.empty()) return false;
    const auto own = identity_of(fd);
    bool added = false;
    find(key, [&](int candidate) {
      if (identity_of(candidate) == own) return false;  // a debuglink may refer to the file itself
      ElfHandle elf = open_elf(candidate);
      if (!elf || machine(elf.get()) != machine(main) || !key.is_of(candidate)) return false;
      added = add_tables(elf.get(), SHT_SYMTAB, bias_of(elf.get()));
      // All needed data is in memory by now; the candidate may be closed.
      if (added) files_.push_back(std::move(elf));
      return added;
    });
    return added;
  }

  void add_debugdata(Elf* main) {
    const Elf_Data* packed = named_section(main, ".gnu_debugdata", kMaxDebugdata);
    if (packed == nullptr) return;
    std::size_t size = 0;
    debugdata_ = unpack(packed->d_buf, packed->d_size, size);
    if (debugdata_.empty()) return;
    ElfHandle elf = open_elf(debugdata_, size);
    if (!elf) return;
    add_tables(elf.get(), SHT_SYMTAB, bias_of(elf.get()));
    files_.push_back(std::move(elf));
  }

  // Stripped programs of Go keep the names that its runtime needs.
  void add_go(int fd) {
    constexpr std::uint8_t kAfterOthers = 255;
    go_ = go_names(fd);
    for (const auto& f : go_.functions) {
      if (candidates_.size() >= kMaxFunctions) return;
      const auto* name = reinterpret_cast<const char*>(go_.names.data()) + f.name;
      const auto length = ::strnlen(name, NameArena::kMaxName);
      if (length == 0) continue;
      candidates_.push_back(
          {.start = f.start,
           .size = static_cast<std::uint32_t>(std::min<std::uint64_t>(f.size, UINT32_MAX)),
           .rank = kAfterOthers,
           .sizeless = false,
           .length = static_cast<std::uint16_t>(length),
           .name = name});
    }
  }

  void choose(ElfSymbols& out) {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.start != b.start ? a.start < b.start : a.rank < b.rank;
                     });
    candidates_.erase(
        std::unique(candidates_.begin(), candidates_.end(),
                    [](const Candidate& a, const Candidate& b) { return a.start == b.start; }),
        candidates_.end());
    out.functions_.reserve(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      if (out.names_.bytes() > kMaxNameBytes) break;
      if (candidate.sizeless && i + 1 < candidates_.size())
        candidate.size = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(candidate.size, candidates_[i + 1].start - candidate.start));
      out.functions_.push_back(
          {candidate.start, candidate.size, out.names_.add({candidate.name, candidate.length})});
    }
    out.functions_.shrink_to_fit();
  }

  std::vector<std::uint64_t> debugdata_;  // outlives the Elf that reads from it
  std::vector<ElfHandle> files_;          // the first one is the main file
  GoNames go_;
  std::vector<Candidate> candidates_;
};

std::vector<std::string> DebugFileKey::paths(const std::string& debug_root,
                                             const std::string& path) const {
  std::vector<std::string> all;
  if (!build_id.empty()) all.push_back(build_id_path(debug_root, build_id));
  if (debuglink.empty() || !path.starts_with('/')) return all;
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  for (const auto& place : {debug_root + directory, directory + ".debug/", directory})
    all.push_back(place + debuglink);
  return all;
}

bool DebugFileKey::is_of(int fd) const {
  return build_id.empty() ? has_checksum(fd, checksum) : symbols::build_id(fd) == build_id;
}

DebugFileKey debug_file_key(int fd) {
  const ElfHandle elf = open_elf(fd);
  return elf ? key_of(elf.get()) : DebugFileKey();
}

std::string build_id_path(const std::string& debug_root, const std::string& build_id) {
  if (build_id.size() < 4) return {};
  return fmt::format("{}/.build-id/{}/{}.debug", debug_root, build_id.substr(0, 2),
                     build_id.substr(2));
}

std::string build_id(int fd, bool relocatable) {
  const ElfHandle elf = open_elf(fd, relocatable);
  return elf ? build_id_of(elf.get()) : std::string();
}

std::string hexadecimal(std::string_view bytes) {
  std::string all;
  for (unsigned char c : bytes) all += fmt::format("{:02x}", c);
  return all;
}

std::shared_ptr<ElfSymbols> ElfSymbols::read(int fd, const FindDebugFile& find_debug_file) {
  ElfHandle elf = open_elf(fd);
  if (!elf) return {};
  return ElfReader(std::move(elf)).run(fd, find_debug_file);
}

std::shared_ptr<ElfSymbols> ElfSymbols::read(std::span<const char> image) {
  std::vector<std::uint64_t> copy((image.size() + 7) /
                                  8);  // aligned and writable, as libelf requires
  if (!image.empty()) ::memcpy(copy.data(), image.data(), image.size());
  ElfHandle elf = open_elf(copy, image.size());
  if (!elf) return {};
  return ElfReader(std::move(elf)).run(-1, {});
}

std::optional<std::uint64_t> ElfSymbols::address_of_offset(std::uint64_t file_offset) const {
  for (const Segment& segment : segments_)
    if (file_offset >= segment.offset && file_offset - segment.offset < segment.size)
      return segment.address + (file_offset - segment.offset);
  // Mappings consist of whole pages: they include some bytes before and after a segment.
  for (const Segment& segment : segments_) {
    const std::uint64_t lead = segment.offset % kPage;
    const std::uint64_t tail = kPage - 1;
    if (file_offset + lead >= segment.offset &&
        file_offset + lead - segment.offset < ((segment.size + lead + tail) & ~tail))
      return segment.address + (file_offset - segment.offset);
  }
  return {};
}

std::optional<std::uint64_t> ElfSymbols::offset_of_address(std::uint64_t address) const {
  for (std::size_t i = 0; i < executable_; ++i) {
    const Segment& segment = segments_[i];
    if (address >= segment.address && address - segment.address < segment.size)
      return segment.offset + (address - segment.address);
  }
  return {};
}

const ElfSymbols::Function* ElfSymbols::find(std::uint64_t address) const {
  auto it = std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](std::uint64_t a, const Function& f) { return a < f.start; });
  // The nearest function may be nested in, or end before, one that starts earlier.
  for (int steps = 0; it != functions_.begin() && steps < 32; ++steps) {
    --it;
    if (address - it->start < it->size) return &*it;
  }
  return nullptr;
}

bool ElfSymbols::is_entry(std::uint64_t address) const {
  // Entry functions of glibc, musl, the dynamic linker, and Go.
  static constexpr std::string_view kNames[] = {"_start",
                                                "_start_c",
                                                "__libc_start_main",
                                                "__libc_start_main_impl",
                                                "__libc_start_call_main",
                                                "libc_start_main_stage2",
                                                "_dl_start",
                                                "_dl_start_user",
                                                "_dlstart",
                                                "start_thread",
                                                "clone",
                                                "__clone",
                                                "clone3",
                                                "__clone3",
                                                "thread_start",
                                                "runtime.goexit",
                                                "runtime.goexit.abi0",
                                                "runtime.mstart",
                                                "runtime.mstart.abi0",
                                                "runtime.rt0_go",
                                                "runtime.rt0_go.abi0"};
  if (const Function* function = find(address))
    return std::find(std::begin(kNames), std::end(kNames), name(*function)) != std::end(kNames);
  if (entry_ != 0 && address - entry_ < kEntryBytes) return true;
  // Without local symbols, glibc still has the symbols that follow __libc_start_call_main and
  // start_thread.
  const auto next =
      std::upper_bound(functions_.begin(), functions_.end(), address,
                       [](std::uint64_t a, const Function& f) { return a < f.start; });
  if (next == functions_.end() || next->start - address > kEntryBefore) return false;
  const std::string_view follower = name(*next);
  return follower == "__libc_start_main" || follower == "pthread_create";
}

std::size_t ElfSymbols::bytes() const {
  return sizeof *this + functions_.capacity() * sizeof(Function) + names_.bytes();
}

}  // namespace coretap::symbols
