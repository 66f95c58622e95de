#include "unwind/go_frames.hpp"

#include <elf.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "cfi/piece.hpp"
#include "cfi/row.hpp"
#include "symbols/go_table.hpp"

namespace coretap::unwind {
namespace {

using symbols::GoFunction;
using symbols::GoHeader;

// Files may be hostile: these limits bound the work.
constexpr std::uint64_t kMostRead = 1ULL << 30;  // bytes
constexpr std::uint64_t kPiece = 64 << 10;       // bytes read at once
constexpr std::uint64_t kMostValues = 64 << 20;  // values of all functions
constexpr std::uint64_t kMostGoRows = 8 << 20;   // of all functions
constexpr std::size_t kMostSteps = 64 << 10;     // of a function
constexpr std::uint64_t kMostCode = 256 << 10;   // bytes of an assembler function
constexpr std::uint64_t kMostSections = 1024;
constexpr std::uint64_t kMostSectionNames = 256 << 10;  // bytes
constexpr std::uint64_t kMostBefore = 8 << 20;          // bytes of other code before Go's
constexpr std::uint64_t kMostSearched = 256 << 20;      // bytes of a section for the table
constexpr int kMostHeaders = 1000;      // places there that are like a table's start
constexpr std::uint64_t kPadding = 64;  // more bytes between two functions are other code

class FilePiece {
 public:
  FilePiece(const Image& image, std::uint64_t& budget)
      : image_(image), piece_(image, kPiece, budget) {}
  /// nullopt unless all can be read. Valid until the next call.
  std::optional<Bytes> at(std::uint64_t offset, std::uint64_t bytes) {
    const auto* found = piece_.at(offset, bytes, {0, image_.size()});
    if (found == nullptr) return {};
    return Bytes({found, static_cast<std::size_t>(bytes)}, offset);
  }
  /// At most `bytes`.
  Bytes from(std::uint64_t offset, std::uint64_t bytes) {
    if (offset >= image_.size()) return Bytes({});
    return at(offset, std::min(bytes, image_.size() - offset)).value_or(Bytes({}));
  }

 private:
  const Image& image_;
  Piece piece_;
};

struct Places {
  std::uint64_t table = 0, table_size = 0;  // offset in the file; 0: none
  std::uint64_t text = 0;                   // address
};

/// C's linker makes the tables of position-independent programs a part of another section.
void find_in(const Image& image, const Elf64_Shdr& section, Places& places) {
  constexpr std::uint64_t kAlignment = 16;
  std::uint64_t budget = kMostSearched;
  int headers = kMostHeaders;
  FilePiece piece(image, budget);
  for (std::uint64_t at = 0; at < section.sh_size && budget > 0; at += kPiece) {
    auto bytes = piece.from(section.sh_offset + at, std::min(kPiece, section.sh_size - at));
    for (; bytes.left() >= kAlignment; bytes.take(kAlignment)) {
      const auto offset = bytes.address();
      const auto size = section.sh_offset + section.sh_size - offset;
      if (bytes.position()[3] != 0xff || bytes.position()[6] != 1 || bytes.position()[7] != 8)
        continue;
      if (headers-- == 0) return;
      std::array<std::uint8_t, symbols::kGoHeaderBytes> header{};
      if (size < header.size() || !image.read(offset, header.data(), header.size()) ||
          !symbols::go_header(Bytes(header), size))
        continue;
      places.table = offset;
      places.table_size = size;
      return;
    }
  }
}

Places find_places(const Image& image) {
  Places places;
  Elf64_Ehdr header;
  if (!image.read(0, &header, sizeof header) || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shnum == 0 || header.e_shnum > kMostSections || header.e_shstrndx >= header.e_shnum)
    return places;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!image.read(header.e_shoff, sections.data(), sections.size() * sizeof sections[0]))
    return places;
  const auto& named = sections[header.e_shstrndx];
  std::string names(std::min<std::uint64_t>(named.sh_size, kMostSectionNames), '\0');
  if (!image.read(named.sh_offset, names.data(), names.size())) return places;
  bool is_go = false;
  Elf64_Shdr relocated{};
  for (const auto& section : sections) {
    if (section.sh_name >= names.size() || section.sh_type == SHT_NOBITS ||
        section.sh_offset > image.size() || section.sh_size > image.size() - section.sh_offset ||
        (section.sh_flags & SHF_COMPRESSED) != 0)
      continue;
    const std::string_view name = names.c_str() + section.sh_name;
    is_go |= name == ".go.buildinfo";
    if (name == ".text") places.text = section.sh_addr;
    if (name == ".data.rel.ro") relocated = section;
    if (!symbols::is_go_table(name)) continue;
    places.table = section.sh_offset;
    places.table_size = section.sh_size;
  }
  if (places.table == 0 && is_go) find_in(image, relocated, places);
  return places;
}

/// The meaning of a function for a stack, by its name.
enum class Role : std::uint8_t {
  plain,
  begins,    // a stack begins there
  leaves,    // it begins one on another stack, and does not come back
  receives,  // the kernel calls it to handle a signal
  resumes    // it ends the handling of a signal
};

Role role_of(std::string_view name, const GoFunction& function) {
  struct Named {
    std::string_view name;
    Role role;
  };
  constexpr auto kNamed = std::to_array<Named>({
      {"runtime.goexit", Role::begins},
      {"runtime.mstart", Role::begins},
      {"runtime.rt0_go", Role::begins},
      {"_rt0_amd64", Role::begins},
      {"_rt0_amd64_linux", Role::begins},
      // Its goroutine waits or has ended: another one may run on, there or elsewhere.
      {"runtime.mcall", Role::leaves},
      {"runtime.clone", Role::leaves},  // for the new thread
      {"runtime.sigtramp", Role::receives},
      {"runtime.sigreturn", Role::resumes},             // until 1.19
      {"runtime.sigreturn__sigaction", Role::resumes},  // since 1.20
  });
  const auto* const known = std::ranges::find(kNamed, name, &Named::name);
  if (known != kNamed.end()) return known->role;
  return (function.flags & symbols::kGoTopFrame) != 0 ? Role::begins : Role::plain;
}

}  // namespace

class GoFrames::Reader {
 public:
  Reader(const Image& image, const ElfCode& elf, const Places& places)
      : elf_(elf),
        places_(places),
        list_(image, budget_),
        functions_(image, budget_),
        values_(image, budget_),
        names_(image, budget_),
        code_(image, budget_) {}

  bool open() {
    const auto bytes = list_.at(places_.table, symbols::kGoHeaderBytes);
    const auto header = bytes ? symbols::go_header(*bytes, places_.table_size) : std::nullopt;
    if (!header || places_.table_size < symbols::kGoHeaderBytes) return false;
    header_ = *header;
    // Before 1.18 no functions are marked that change the stack.
    if (arm64() && header_.absolute()) return false;
    return find_text();
  }

  const GoRow* peek() {
    for (;;) {
      for (; at_ < rows_.size(); ++at_)
        if (!same_rule(rows_[at_].rule, given_)) return &rows_[at_];
      rows_.clear();
      at_ = 0;
      if (next_ > header_.functions) return nullptr;
      if (next_ == header_.functions || values_left_ == 0 || count_ > kMostGoRows) {
        next_ = header_.functions + 1;
        tell(std::max(covered_, last_address_ + 1), {});
      } else {
        add_function(next_++);
      }
    }
  }
  void pop() { given_ = rows_[at_++].rule; }

 private:
  bool arm64() const { return elf_.machine == EM_AARCH64; }

  struct Function {
    std::uint64_t begin = 0, end = 0;  // `end`: at most
    GoFunction described;
    bool assembler = false;
  };

  std::optional<Function> function(std::uint64_t index) {
    const auto each = header_.entry_bytes;
    // The list ends with the end of the last function.
    auto bytes = list_.at(places_.table + header_.list + index * each, each + each / 2);
    if (!bytes) return {};
    const auto [start, place] = symbols::go_start(*bytes, header_);
    const auto end = bytes->word(each / 2);
    Function f;
    f.begin = text_ + start;
    f.end = text_ + end;
    // A description begins with the start again.
    const auto skip = each / 2;
    const auto size = symbols::go_function_bytes(header_);
    if (f.begin >= f.end || place > places_.table_size - header_.list ||
        skip + size > places_.table_size - header_.list - place)
      return {};
    const auto description = functions_.at(places_.table + header_.list + place + skip, size);
    if (!description) return {};
    f.described = symbols::go_function(*description, header_);
    f.assembler = (f.described.flags & symbols::kGoAssembler) != 0 ||
                  (header_.absolute() && ends_in_s(f.described));
    return f;
  }

  /// Go 1.16 and 1.17 do not mark assembler functions; their files have names that end in ".s".
  bool ends_in_s(const GoFunction& f) {
    auto bytes = values_.from(places_.table + header_.values + f.files, 16);
    std::int64_t file = -1;
    std::uint64_t size = 0;
    if (!symbols::go_value(bytes, header_, true, file, size) || file < 0) return false;
    auto offset = names_.at(places_.table + header_.units +
                                (std::uint64_t{f.unit} + static_cast<std::uint64_t>(file)) * 4,
                            4);
    if (!offset) return false;
    const auto path = text(header_.files + offset->number<std::uint32_t>(), 4096);
    return path.ends_with(".s");
  }

  /// A text of the table, up to its NUL.
  std::string_view text(std::uint64_t offset, std::uint64_t most) {
    if (offset >= places_.table_size) return {};
    const auto bytes =
        names_.from(places_.table + offset, std::min(most, places_.table_size - offset));
    const auto* first = reinterpret_cast<const char*>(bytes.position());
    return {first, ::strnlen(first, bytes.left())};
  }

  /// Reads the sizes of a function's frame to steps_; false: they are not known.
  bool read_steps(const Function& f) {
    steps_.clear();
    if (f.described.stack == 0) return false;
    for (const std::uint64_t most :
         {std::uint64_t{256}, std::uint64_t{16} << 10, std::uint64_t{1} << 20}) {
      steps_.clear();
      auto bytes = values_.from(places_.table + header_.values + f.described.stack, most);
      std::int64_t value = -1;
      std::uint64_t size = 0;
      auto at = f.begin;
      while (at < f.end && symbols::go_value(bytes, header_, steps_.empty(), value, size)) {
        if (values_left_ == 0 || steps_.size() == kMostSteps) return false;
        --values_left_;
        if (!steps_.empty() && steps_.back().address == at) steps_.pop_back();
        steps_.push_back({at, value});
        at = size < f.end - at ? at + size : f.end;
      }
      end_ = at;
      if (bytes.ok()) return !steps_.empty() && end_ > f.begin;
    }
    return false;
  }

  // --- where the code is ---

  /// Offset in the file of code at this address, and the number of bytes from there on.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> code_at(std::uint64_t address) const {
    for (const auto& segment : elf_.segments)
      if (segment.executable && address >= segment.address &&
          address - segment.address < segment.size)
        return std::pair(segment.offset + (address - segment.address),
                         segment.size - (address - segment.address));
    return {};
  }

  /// The starts are relative to an address that some files lack: those that are
  /// position-independent, and those of Go 1.26. Go's code is then at the start of .text, or behind
  /// C's. So the frames that functions make by an instruction prove an address.
  struct Proof {
    std::uint64_t behind = 0;  // offset from the text's start of the end of the instruction
    std::uint32_t bytes = 0;   // of the frame
  };
  bool find_text() {
    constexpr std::size_t kProofs = 24;
    constexpr std::uint64_t kTries = 2048, kAlignment = 16;
    constexpr std::int64_t kMostPushed = 256;
    std::vector<Proof> proofs;
    const auto every = std::max<std::uint64_t>(header_.functions / kTries, 1);
    for (std::uint64_t i = 0; i < header_.functions && proofs.size() < kProofs; i += every) {
      const auto f = function(i);
      if (!f || f->assembler || !read_steps(*f) || steps_.front().delta != 0) continue;
      // Before it there may be the push of rbp.
      std::size_t made = 1;
      if (!arm64() && made < steps_.size() && steps_[made].delta == 8) ++made;
      if (made >= steps_.size()) continue;
      const auto bytes = steps_[made].delta - steps_[made - 1].delta;
      if (bytes > 8 && bytes < (arm64() ? kMostPushed : INT32_MAX))
        proofs.push_back({steps_[made].address - text_, static_cast<std::uint32_t>(bytes)});
    }
    if (proofs.size() < kProofs / 3) return false;
    for (const auto text : {header_.text, header_.absolute() ? 0 : places_.text})
      if ((text != 0 || header_.absolute()) && proven(text, proofs)) {
        text_ = text;
        return true;
      }
    if (header_.absolute()) return false;
    for (auto text = places_.text & ~(kAlignment - 1);
         text - places_.text + kAlignment < kMostBefore; text += kAlignment)
      if (makes(text, proofs.front(), list_) && proven(text, proofs)) {
        text_ = text;
        return true;
      }
    return false;
  }
  bool proven(std::uint64_t text, const std::vector<Proof>& proofs) {
    constexpr std::ptrdiff_t kDoubts = 2;
    std::ptrdiff_t wrong = 0;
    for (const auto& proof : proofs)
      if (!makes(text, proof, code_) && ++wrong > kDoubts) return false;
    return true;
  }
  /// True if `sub $bytes,%rsp` is there; on arm64 `str x30, [sp, #-bytes]!`.
  bool makes(std::uint64_t text, const Proof& proof, FilePiece& piece) {
    constexpr std::uint64_t kLong = 7, kShort = 4;
    const auto place = code_at(text + proof.behind - kLong);
    auto bytes = place ? piece.at(place->first, kLong) : std::nullopt;
    if (!bytes || text + proof.behind < kLong) return false;
    const auto* code = bytes->position();
    std::uint32_t value = 0;
    ::memcpy(&value, code + 3, sizeof value);
    if (arm64()) return value == (0xf8000ffe | (-proof.bytes & 0x1ff) << 12);
    if (code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xec && value == proof.bytes) return true;
    code += kLong - kShort;
    return code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xec &&
           std::uint32_t{code[3]} == (proof.bytes & 0xff) && proof.bytes < 0x80;
  }

  // --- rows ---

  void tell(std::uint64_t address, const unwind_rule& rule) {
    if (!rows_.empty() && rows_.back().address == address) {
      rows_.back().rule = rule;
    } else if (address > last_address_) {
      rows_.push_back({address, rule});
      last_address_ = address;
      ++count_;
    }
  }

  void add_function(std::uint64_t index) {
    auto f = function(index);
    if (!f || f->begin < covered_) return;
    const auto place = code_at(f->begin);
    if (!place) return;
    f->end = f->begin + std::min(f->end - f->begin, place->second);
    if (f->begin - covered_ > kPadding) tell(covered_, {});
    end_ = f->end;
    const bool known = read_steps(*f);
    if (!known) {
      end_ = f->end;
      // C's functions are in Go's table, too, if Go has linked them: their CFI has rules.
      tell(f->begin, {});
    } else {
      add_known(*f, place->first);
    }
    covered_ = end_;
  }

  void add_known(const Function& f, std::uint64_t place) {
    // Names are read of few functions.
    const bool special = f.assembler || f.described.flags != 0 || f.described.id != 0;
    const auto role =
        special ? role_of(text(header_.names + f.described.name, 64), f.described) : Role::plain;
    if (role == Role::begins) return tell(f.begin, {.cfa = UNWIND_END});
    // Frame pointers lead on where the stack changes.
    if (arm64() && (role == Role::leaves || (f.described.flags & symbols::kGoWritesStack) != 0))
      return tell(f.begin, {});
    if (arm64()) return add_compiled();
    if (role == Role::resumes) return add_resuming(f, place);
    if (!f.assembler && (f.described.flags & symbols::kGoWritesStack) == 0) return add_compiled();
    const auto code = code_.at(place, std::min(end_ - f.begin, kMostCode));
    if (!code || end_ - f.begin > kMostCode) return tell(f.begin, {.cfa = UNWIND_OTHER});
    // Without marks, any of them may.
    const bool switches = header_.absolute() || (f.described.flags & symbols::kGoWritesStack) != 0;
    const unwind_rule after{.cfa = role == Role::leaves ? std::uint8_t{UNWIND_END}
                                                        : std::uint8_t{UNWIND_OTHER}};
    code_rows_.clear();
    read_go_code({code->position(), code->left()}, steps_, switches, after, code_rows_);
    for (const auto& row : code_rows_) tell(row.address, row.rule);
  }

  /// A signal handler returns to its first instruction, to which no call is before it.
  void add_resuming(const Function& f, std::uint64_t place) {
    constexpr std::uint8_t kTrap = 0xcc;
    const auto before = place > 0 ? code_.at(place - 1, 1) : std::nullopt;
    const bool padding = before && *before->position() == kTrap;
    tell(f.begin - 1, {.cfa = padding ? std::uint8_t{UNWIND_SIGNAL} : std::uint8_t{UNWIND_OTHER}});
    tell(f.begin, {.cfa = UNWIND_SIGNAL});
  }

  /// A signal's handler may let a function continue as if it had called another one at the
  /// instruction where it was interrupted, right behind the one that made its frame, or removed it.
  /// So that the byte before that place has the same rule, rows begin one byte early: within these
  /// instructions, which have several bytes. It does not fit if the row follows a return.
  void add_compiled() {
    bool smaller = false;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      auto [address, delta] = steps_[i];
      if (i > 0) {
        const auto change = delta - steps_[i - 1].delta;
        // The push of rbp, before a larger change, has one byte.
        const bool several = change > 8 || change < -8 ||
                             (change > 0 && (i > 1 || header_.version != GoHeader::go120));
        if (several && (change < 0 || !smaller) && address - 1 > steps_[i - 1].address) --address;
        smaller |= change < 0;
      }
      tell(address, arm64() ? go_rule_of_arm64(delta) : go_rule(delta));
    }
  }

  const ElfCode& elf_;
  const Places places_;
  std::uint64_t budget_ = kMostRead, values_left_ = kMostValues;
  FilePiece list_, functions_, values_, names_, code_;
  GoHeader header_;
  std::uint64_t text_ = 0;  // address that starts are relative to
  std::vector<GoStep> steps_;
  std::uint64_t end_ = 0;  // of the function with these steps
  std::vector<GoRow> rows_, code_rows_;
  std::size_t at_ = 0;       // in rows_
  std::uint64_t next_ = 0;   // function
  std::uint64_t count_ = 0;  // of rows
  std::uint64_t covered_ = 0, last_address_ = 0;
  unwind_rule given_{};  // of the last row that was taken
};

GoFrames::GoFrames(const Image& image, const ElfCode& elf) {
  const auto places = find_places(image);
  if (places.table == 0) return;
  auto reader = std::make_unique<Reader>(image, elf, places);
  if (reader->open()) reader_ = std::move(reader);
}
GoFrames::~GoFrames() = default;

const GoRow* GoFrames::peek() { return reader_ ? reader_->peek() : nullptr; }
void GoFrames::pop() {
  if (reader_) reader_->pop();
}

}  // namespace coretap::unwind
