#include "program/function_returns.hpp"

#include <algorithm>
#include <climits>
#include <string_view>

#include <fmt/format.h>

#include "base/read_failures.hpp"
#include "cfi/read_cfi.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/instructions.hpp"

namespace coretap {

namespace {

using symbols::Flow;

/// Bytes of code that are read in one file; functions may share code.
constexpr std::uint64_t kMostSwept = 256 << 20;
constexpr std::size_t kLongest = 16;  // upper bound of an instruction's length in bytes

/// These call no function of the program and are not cancellation points (pthreads(7)): nothing
/// unwinds through them, switches stacks in them or calls them again. They are the most frequently
/// called functions, and in a virtual machine a plain probe on a return instruction takes ten times
/// as long as the kernel's return probe (docs/effects.md).
constexpr std::string_view kNeverUnwound[] = {
    "aligned_alloc",
    "calloc",
    "free",
    "malloc",
    "memalign",
    "mmap",
    "mmap64",
    "mremap",
    "munmap",
    "posix_memalign",
    "pthread_create",
    "pthread_mutex_clocklock",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pvalloc",
    "realloc",
    "reallocarray",
    "valloc",
};

}  // namespace

FileCode::FileCode(int fd, bool (*emulated)(symbols::EntryStep::Form))
    : fd_(fd), emulated_(emulated), left_(kMostSwept) {}

bool FileCode::is_go() {
  if (std::exchange(inspected_, true)) return go_;
  const auto elf = symbols::open_elf(fd_);
  if (!elf) return false;
  symbols::find_section(elf.get(), [&](Elf_Scn*, const GElf_Shdr&, auto name) {
    // Go's linker writes these sections, and strip(1) keeps them.
    go_ |= name == ".go.buildinfo" || name.ends_with(".gopclntab");
    return go_;
  });
  return go_;
}

void FileCode::read_relocations(Elf* elf, Elf_Scn* section, const GElf_Shdr& header) {
  constexpr std::uint64_t kMostRelocations = 16 << 20, kMostSymbols = 16 << 20;
  GElf_Shdr symbols_header;
  auto* linked = elf_getscn(elf, header.sh_link);
  if (!linked || !gelf_getshdr(linked, &symbols_header)) return;
  auto* data = symbols::section_data(section, header, kMostRelocations);
  auto* symbols = symbols::section_data(linked, symbols_header, kMostSymbols);
  GElf_Rela word;
  GElf_Sym symbol;
  for (int i = 0; data && symbols && gelf_getrela(data, i, &word); i++)
    if (auto n = GELF_R_SYM(word.r_info); n && n < INT_MAX && !word.r_addend)
      if (gelf_getsym(symbols, static_cast<int>(n), &symbol) &&
          GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
        linked_[word.r_offset] = symbol.st_value;
}

/// The target of a PLT stub, if it is in this file; else the address itself.
std::uint64_t FileCode::behind_stub(std::uint64_t address) {
  auto offset = symbols_->offset_of_address(address);
  std::uint8_t code[16] = {};
  if (!offset || read_bytes(fd_, *offset, code, sizeof code) != sizeof code) return address;
  auto at = symbols::jump_by_word(code);
  auto found = at ? linked_.find(address + static_cast<std::uint64_t>(*at)) : linked_.end();
  return found == linked_.end() ? address : found->second;
}

void FileCode::read_frames() {
  if (std::exchange(frames_read_, true)) return;
  if (const auto elf = symbols::open_elf(fd_))
    symbols::find_section(elf.get(), [&](Elf_Scn* section, const GElf_Shdr& header, auto) {
      if (header.sh_type == SHT_RELA) read_relocations(elf.get(), section, header);
      return false;
    });
  unwind::Image image(fd_);
  unwind::read_cfi(
      image, unwind::read_elf_code(image),
      [&](std::uint64_t row, const unwind_rule& rule) {
        const bool at_entry = rule.cfa == UNWIND_SP && rule.offset == 8;
        rows_.emplace_back(row, at_entry || rule.cfa == UNWIND_NONE);
      },
      [&](std::uint64_t begin, std::uint64_t end) {
        described_.push_back({begin, end - begin});
      });
}

std::optional<symbols::CodeRange> FileCode::described_at(std::uint64_t address) {
  read_frames();
  auto next = std::ranges::upper_bound(described_, address, {}, &symbols::CodeRange::start);
  if (next == described_.begin()) return {};
  auto& found = *std::prev(next);
  if (address - found.start >= found.size) return {};
  return found;
}

/// A stripped file has symbols only for exported functions, but .eh_frame describes all functions.
symbols::CodeRange FileCode::bounds_of(std::uint64_t address) {
  auto* f = symbols_->find(address);
  if (f && f->start == address && f->size) return {f->start, f->size};
  auto part = described_at(address);
  return part && part->start == address ? *part : symbols::CodeRange{address, 0};
}

/// True if the stack may be as at the function's entry, so that a jump here may be a tail call.
/// Code without unwind rows belongs to a function without a frame: true.
bool FileCode::may_have_left(std::uint64_t address) {
  read_frames();
  auto next = std::upper_bound(rows_.begin(), rows_.end(), std::pair(address, true));
  return next == rows_.begin() || std::prev(next)->second;
}

/// Follows the code of one function.
class FileCode::Sweep {
 public:
  Sweep(FileCode& file, symbols::CodeRange f) : file_(file), parts_{f} { found_.calls = false; }

  FunctionReturns run() {
    for (std::size_t i = 0; i < parts_.size() && found_.state == FunctionReturns::found; i++)
      sweep(parts_[i]);
    if (found_.state != FunctionReturns::found) return {found_.state};
    std::sort(found_.offsets.begin(), found_.offsets.end());
    return std::move(found_);
  }

 private:
  /// Code, read in pieces.
  class Block {
   public:
    explicit Block(Sweep& sweep) : sweep_(sweep) {}
    symbols::CodeBytes at(std::uint64_t address) {
      constexpr std::size_t kPiece = 4096;
      if (address < begin_ || address + kLongest > begin_ + bytes_.size()) {
        auto offset = sweep_.file_.symbols_->offset_of_address(address);
        bytes_.resize(kPiece);
        bytes_.resize(offset ? read_bytes(sweep_.file_.fd_, *offset, bytes_.data(), bytes_.size())
                             : 0);
        begin_ = address;
      }
      return symbols::CodeBytes(bytes_).subspan(address - begin_);
    }

   private:
    Sweep& sweep_;
    std::uint64_t begin_ = 0;
    std::vector<std::uint8_t> bytes_;
  };

  void fail(FunctionReturns::State state) {
    if (found_.state == FunctionReturns::found) found_.state = state;
  }

  void end_in(std::uint64_t target) {
    found_.calls = true;
    if (auto offset = file_.symbols_->offset_of_address(file_.behind_stub(target)))
      found_.tails.push_back(*offset);
    else
      fail(FunctionReturns::leaves);
  }

  bool is_own(std::uint64_t address) const {
    return std::ranges::any_of(parts_,
                               [&](auto& part) { return address - part.start < part.size; });
  }

  /// Adds a part of the function that has its own .eh_frame description.
  void add_part(std::uint64_t target) {
    auto part = file_.described_at(target);
    if (!part || part->size > kMostCode)
      fail(FunctionReturns::unreadable);
    else
      parts_.push_back(*part);
  }

  /// Compilers move rarely executed code elsewhere: "NAME.cold".
  bool is_named_cold(std::uint64_t address) const {
    auto* other = file_.symbols_->find(address);
    auto* self = file_.symbols_->find(parts_.front().start);
    if (!other || !self) return false;
    const std::string_view own = file_.symbols_->name(*self), name = file_.symbols_->name(*other);
    return name.starts_with(own) && name.substr(own.size()).starts_with(".cold");
  }

  Flow step(Block& block, std::uint64_t address, const Flow& last) {
    auto flow = symbols::flow_of(block.at(address));
    if (file_.left_ < flow.bytes) flow.kind = Flow::unknown;
    file_.left_ -= std::min<std::uint64_t>(file_.left_, flow.bytes);
    switch (flow.kind) {
      case Flow::next:
      case Flow::by_table:
      case Flow::ends:
        break;
      case Flow::call:
        found_.calls = true;
        break;
      case Flow::returns:
        if (auto offset = file_.symbols_->offset_of_address(address))
          found_.offsets.push_back(*offset);
        else
          fail(FunctionReturns::unreadable);
        break;
      case Flow::indirect:
        if (!symbols::jumps_by_table(flow, last) && !file_.is_go() && file_.may_have_left(address))
          fail(FunctionReturns::leaves);
        break;
      case Flow::branch:
      case Flow::jump: {
        auto target = address + static_cast<std::uint64_t>(flow.target);
        if (is_own(target)) break;
        if (file_.may_have_left(address) && !is_named_cold(target))
          end_in(target);
        else
          add_part(target);
        break;
      }
      case Flow::unknown:
        fail(FunctionReturns::unreadable);
        break;
    }
    return flow;
  }

  /// Compilers put no data between instructions: this sweeps all of them, which covers code that is
  /// reached only through a jump table.
  void sweep(symbols::CodeRange code) {
    Block block(*this);
    Flow last;
    std::uint64_t at = 0;
    for (; at < code.size && found_.state == FunctionReturns::found; at += last.bytes)
      last = step(block, code.start + at, last);
    // The last instruction must not extend into the next function.
    if (at != code.size) fail(FunctionReturns::unreadable);
  }

  FileCode& file_;
  std::vector<symbols::CodeRange> parts_;  ///< the function and its parts elsewhere
  FunctionReturns found_{FunctionReturns::found};
};

std::optional<std::uint64_t> FileCode::address_of(std::uint64_t offset) {
  if (!symbols_) symbols_ = symbols::ElfSymbols::read(fd_);
  return symbols_ ? symbols_->address_of_offset(offset) : std::nullopt;
}

FunctionReturns FileCode::returns(std::uint64_t begin) {
  auto address = address_of(begin);
  if (!address) return {};
  auto bounds = bounds_of(*address);
  if (!bounds.size || bounds.size > kMostCode) return {};
  return Sweep(*this, bounds).run();
}

Error cannot_probe_return(std::string_view function, const ReturnProbe& refused) {
  return {fmt::format("the return of {} cannot be probed without harm", printable(function)),
          refused.refusal, refused.hint, kUnsupported};
}

FileCode& ReturnProbes::code(const std::shared_ptr<Fd>& file) {
  auto& code = files_[file];
  if (!code) code = std::make_unique<FileCode>(file->get());
  return *code;
}

ReturnProbe ReturnProbes::of(const std::shared_ptr<Fd>& file, std::string_view function,
                             std::uint64_t begin, bool matched) {
  auto& known = code(file);
  if (!known.is_go() && std::ranges::binary_search(kNeverUnwound, function)) return {};
  constexpr std::size_t kMostFunctions = 16;
  ReturnProbe probe;
  const ReadFailures failures;
  std::vector<std::uint64_t> all{begin};
  for (std::size_t i = 0; i < all.size(); i++) {
    auto found = known.returns(all[i]);
    if (failures) return refused(failures.error({}).why, known);
    if (found.state == FunctionReturns::found && !found.calls && !i && !known.is_go()) return {};
    if (found.state == FunctionReturns::unreadable)
      return refused("its code cannot be read whole", known);
    if (found.state == FunctionReturns::no_bounds && !i)
      return refused("no symbol says where it ends", known);
    if (found.state != FunctionReturns::found || all.size() > kMostFunctions ||
        (!matched && !found.tails.empty()))
      return refused("may end by a jump to another function", known);
    probe.offsets.insert(probe.offsets.end(), found.offsets.begin(), found.offsets.end());
    for (auto tail : found.tails)
      if (std::ranges::find(all, tail) == all.end()) all.push_back(tail);
  }
  if (probe.offsets.empty()) return {.refusal = "never returns"};
  return probe;
}

ReturnProbe ReturnProbes::refused(std::string why, FileCode& code) const {
  ReturnProbe probe{.refusal = std::move(why)};
  if (code.is_go()) return probe;
  if (any_) return {};
  probe.hint +=
      "; --return-trampoline takes the kernel's return probe, which breaks programs that unwind "
      "or switch stacks in the function";
  return probe;
}

}  // namespace coretap
