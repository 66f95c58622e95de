#include "cfi/read_cfi.hpp"

#include <elf.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cfi/frame_program.hpp"
#include "cfi/piece.hpp"
#include "cfi/runtime_code.hpp"

namespace coretap::unwind {
namespace {

// Files may be hostile. These limits bound the work: bytes count when read, and again when
// interpreted, which takes far longer. Programs may share bytes, but those of valid files do not.
constexpr std::uint64_t kMaxBytes = 1ULL << 30;
constexpr std::uint64_t kMaxPrograms = 128 << 20;
constexpr std::uint64_t kProgramsBySize = 4;
constexpr std::uint64_t kMaxFrames = 4 << 20;
constexpr std::uint64_t kMaxRows = 8 << 20;
constexpr std::uint64_t kMaxEntry = 256 << 10;  // bytes of an FDE
constexpr std::uint64_t kMaxCommon = 4 << 10;   // bytes of a CIE
constexpr std::uint64_t kChunk = 64 << 10;
constexpr std::uint64_t kSmallChunk = 8 << 10;
constexpr std::size_t kWalkEntries = 32 << 10;
constexpr std::size_t kCommons = 64;
constexpr std::uint64_t kCodeBytes = 4 << 10;  // bytes searched in a gap
constexpr std::uint64_t kEndBytes = 64 << 10;  // at either end of the gap at a segment's end
constexpr std::uint64_t kFunctionBytes = 64;   // maximum, of _init or _fini
constexpr std::uint64_t kCodeGap = 0x80;       // minimum size of crtstuff
constexpr int kMaxCodeGaps = 16;

// A piece of the image, indexed by address.
class Window {
 public:
  Window(const Image& image, const ElfCode& elf, std::uint64_t chunk, std::uint64_t& budget)
      : elf_(elf), piece_(image, chunk, budget) {}

  /// nullopt unless all bytes can be read. Valid until the next call.
  std::optional<Bytes> at(std::uint64_t address, std::uint64_t bytes) {
    if ((!segment_ || address - segment_->address >= segment_->size) && !find_segment(address))
      return {};
    const auto offset = segment_->offset + (address - segment_->address);
    const auto* found =
        piece_.at(offset, bytes, {segment_->offset, segment_->offset + segment_->size});
    if (found == nullptr) return {};
    return Bytes({found, bytes}, address);
  }

 private:
  bool find_segment(std::uint64_t address) {
    const auto found = std::ranges::find_if(elf_.segments, [&](const ElfCode::Segment& each) {
      return address - each.address < each.size;
    });
    segment_ = found == elf_.segments.end() ? nullptr : &*found;
    return segment_ != nullptr;
  }

  const ElfCode& elf_;
  const ElfCode::Segment* segment_ = nullptr;
  Piece piece_;
};

// Of several rows at one address the last one is kept; rows that change nothing are omitted.
class Rows {
 public:
  explicit Rows(const OnRow& row) : row_(row) {}
  void add(std::uint64_t address, const unwind_rule& rule) {
    if (waits_ && address != address_) flush();
    address_ = address;
    rule_ = rule;
    waits_ = true;
  }
  void flush() {
    if (waits_ && !same_rule(rule_, told_)) {
      row_(address_, rule_);
      told_ = rule_;
      ++count_;
    }
    waits_ = false;
  }
  std::uint64_t count() const { return count_; }

 private:
  const OnRow& row_;
  unwind_rule told_{}, rule_{};
  std::uint64_t address_ = 0, count_ = 0;
  bool waits_ = false;
};

class Reader {
 public:
  Reader(const Image& image, const ElfCode& elf, const OnRow& row, const OnFunction& function)
      : image_(image),
        elf_(elf),
        on_function_(function),
        rows_(row),
        programs_(std::min(image.size(), kMaxPrograms / kProgramsBySize) * kProgramsBySize),
        table_(image, elf, kChunk, budget_),
        frames_(image, elf, kChunk, budget_),
        commons_(image, elf, kSmallChunk, budget_),
        code_(image, elf, kEndBytes, budget_) {
    for (const auto& segment : elf.segments)
      if (segment.executable)
        executable_.emplace_back(segment.address, segment.address + segment.size);
    std::sort(executable_.begin(), executable_.end());
    // Overlapping parts of segments belong to the first.
    for (std::uint64_t end = 0; auto& each : executable_) {
      each.first = std::max(each.first, end);
      each.second = end = std::max(each.second, end);
    }
  }

  bool read() {
    bool all = elf_.frame_header != 0 ? by_header() : by_section();
    if (found_ == 0) all = is_like_vdso();
    if (found_ == 0 && !all) return false;
    gap(covered_, std::numeric_limits<std::uint64_t>::max());
    rows_.flush();
    return all;
  }

 private:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // begin, end

  // A CIE or an FDE.
  struct Entry {
    Bytes body{{}};          // from its second word on
    std::uint64_t next = 0;  // the address after it
    bool whole = true;
  };
  struct Function {
    std::uint64_t begin = 0, end = 0;
    Bytes program{{}};
    bool whole = true;
    const FrameContext* context = nullptr;
  };
  struct Common {
    std::uint64_t address = 0;
    bool known = false, usable = false, augmented = false;
    FrameContext context;
  };
  struct Start {
    std::uint64_t begin, address;
    bool operator<(const Start& other) const {
      return begin != other.begin ? begin < other.begin : address < other.address;
    }
  };

  // The vdso of arm64 has no CFI (87676cfca141): the instructions of small libraries are read.
  bool is_like_vdso() const {
    constexpr std::uint64_t kMaxVdso = 64 << 10;
    return elf_.machine == EM_AARCH64 && elf_.size <= kMaxVdso && executable_.size() == 1 &&
           elf_.entry == 0;
  }

  // --- locating frames ---

  bool by_header() {
    constexpr std::uint8_t kTableEncoding = 0x3b;  // all linkers use it: datarel, sdata4
    constexpr std::uint8_t kCountEncoding = 0x03;
    constexpr std::uint64_t kMinHeader = 4 + 4, kMaxHeader = 4 + 10 + 10;
    auto header = table_.at(elf_.frame_header, kMaxHeader);
    if (!header) header = table_.at(elf_.frame_header, kMinHeader);
    if (!header || header->u8() != 1) return false;
    const auto frames_encoding = header->u8();
    const auto count_encoding = header->u8();
    const auto table_encoding = header->u8();
    const auto frames = header->encoded(frames_encoding, elf_.frame_header);
    const auto count = header->encoded(count_encoding);
    if (count && *count > 0 && *count <= kMaxFrames && table_encoding == kTableEncoding &&
        count_encoding == kCountEncoding && ascending(header->address(), *count))
      return by_table(header->address(), *count);
    return frames && by_walk(*frames, std::numeric_limits<std::uint64_t>::max());
  }

  std::optional<Start> table_entry(std::uint64_t address) {
    auto entry = table_.at(address, 8);
    if (!entry) return {};
    const auto relative = [&] {
      return elf_.frame_header + static_cast<std::uint64_t>(std::int64_t{entry->number<int>()});
    };
    Start start{};
    start.begin = relative();
    start.address = relative();
    return start;
  }
  bool ascending(std::uint64_t table, std::uint64_t count) {
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto entry = table_entry(table + i * 8);
      if (!entry || entry->begin < last) return false;
      last = entry->begin;
    }
    return true;
  }
  bool by_table(std::uint64_t table, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto entry = table_entry(table + i * 8);
      if (!entry || !one(*entry)) return false;
    }
    return true;
  }

  // Without a table, walk the frames in file order. The lowest ones that fit are kept; then walk
  // again for the next.
  bool by_walk(std::uint64_t address, std::uint64_t end) {
    std::vector<Start> starts;
    starts.reserve(kWalkEntries);
    for (Start done{}; walk(address, end, done, starts);) {
      std::sort(starts.begin(), starts.end());
      for (const auto& start : starts)
        if (!one(start)) return false;
      done = starts.back();
      if (starts.size() < kWalkEntries / 2) break;
    }
    return budget_ > 0;
  }
  bool walk(std::uint64_t address, std::uint64_t end, const Start& done,
            std::vector<Start>& starts) {
    starts.clear();
    Start limit{.begin = std::numeric_limits<std::uint64_t>::max(), .address = 0};
    while (address < end) {
      const auto entry = entry_at(frames_, address, kMaxEntry);
      if (!entry) break;
      const auto function = function_of(*entry);
      const Start start{.begin = function ? function->begin : 0, .address = address};
      address = entry->next;
      if (!function || !(done < start) || !(start < limit)) continue;
      if (starts.size() == kWalkEntries) {
        const auto middle = starts.begin() + kWalkEntries / 2;
        std::nth_element(starts.begin(), middle, starts.end());
        limit = *middle;
        starts.erase(middle, starts.end());
        if (!(start < limit)) continue;
      }
      starts.push_back(start);
    }
    return !starts.empty();
  }

  bool by_section() {
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    const auto read = [&](std::uint64_t index, Elf64_Shdr& to) {
      std::uint64_t offset = 0;
      return !__builtin_add_overflow(header.e_shoff, index * sizeof to, &offset) &&
             image_.read(offset, &to, sizeof to);
    };
    if (!image_.read(0, &header, sizeof header) || header.e_shentsize != sizeof section ||
        !read(header.e_shstrndx, names))
      return false;
    for (unsigned i = 0; i < header.e_shnum && read(i, section); ++i) {
      constexpr char kName[] = ".eh_frame";
      char name[sizeof kName];
      if (image_.read(names.sh_offset + section.sh_name, name, sizeof name) &&
          ::memcmp(name, kName, sizeof name) == 0 && section.sh_type != SHT_NOBITS &&
          section.sh_size <= std::numeric_limits<std::uint64_t>::max() - section.sh_addr)
        return by_walk(section.sh_addr, section.sh_addr + section.sh_size);
    }
    return false;
  }

  // --- parsing entries ---

  // nullopt at the end of the list, too.
  std::optional<Entry> entry_at(Window& window, std::uint64_t address, std::uint64_t most) {
    constexpr std::uint32_t kLong = 0xffffffff;
    auto head = window.at(address, 4);
    if (!head) return {};
    std::uint64_t length = head->number<std::uint32_t>();
    std::uint64_t start = address + 4;
    if (length == kLong) {
      head = window.at(start, 8);
      if (!head) return {};
      length = head->number<std::uint64_t>();
      start += 8;
    }
    Entry entry;
    if (length == 0 || __builtin_add_overflow(start, length, &entry.next)) return {};
    const auto body = window.at(start, std::min(length, most));
    if (!body) return {};
    entry.body = *body;
    entry.whole = length <= most;
    return entry;
  }

  std::optional<Function> function_of(const Entry& entry) {
    Bytes body = entry.body;
    // The word has 4 bytes in the 64-bit form, too (Linux Standard Base, Exception Frames).
    const auto place = body.address();
    const std::uint64_t back = body.number<std::uint32_t>();
    if (back == 0) return {};  // a CIE
    const Common& common = common_at(place - back);
    if (!common.usable) return {};
    const auto begin = body.encoded(common.context.encoding);
    const auto size = body.encoded(common.context.encoding & 0x0f);
    if (common.augmented) body.take(body.uleb());
    Function function;
    if (!begin || !size || !body.ok() || __builtin_add_overflow(*begin, *size, &function.end))
      return {};
    function.begin = *begin;
    function.program = body;
    function.whole = entry.whole;
    function.context = &common.context;
    return function;
  }

  const Common& common_at(std::uint64_t address) {
    Common& common = common_[address / 4 % kCommons];
    if (common.known && common.address == address) return common;
    common = {.address = address, .known = true};
    const auto entry = entry_at(commons_, address, kMaxCommon);
    common.context.registers = &frame_registers(elf_.machine);
    common.usable = entry && entry->whole && spend(entry->body) && read_common(entry->body, common);
    return common;
  }

  static bool read_common(Bytes body, Common& common) {
    auto& context = common.context;
    if (body.number<std::uint32_t>() != 0) return false;
    const auto version = body.u8();
    if (version != 1 && version != 3) return false;
    std::array<char, 8> letters{};
    std::size_t count = 0;
    while (const char letter = static_cast<char>(body.u8())) {
      if (count == letters.size()) return false;
      letters[count++] = letter;
    }
    context.code_align = body.uleb();
    context.data_align = body.sleb();
    if ((version == 1 ? body.u8() : body.uleb()) != context.registers->return_address) return false;
    if (count > 0) {
      if (letters[0] != 'z') return false;
      common.augmented = true;
      Bytes data = body.take(body.uleb());
      for (std::size_t i = 1; i < count; ++i)
        if (!augmentation(letters[i], data, context)) return false;
    }
    std::uint64_t location = 0;
    if (!body.ok() || !run_frame_program(body, context, location, context.initial,
                                         [](std::uint64_t, const Frame&) {}))
      return false;
    return location == 0;
  }
  static bool augmentation(char letter, Bytes& data, FrameContext& context) {
    switch (letter) {
      case 'P':
        data.encoded(data.u8());
        break;
      case 'L':
        data.u8();
        break;
      case 'R':
        context.encoding = data.u8();
        break;
      case 'S':
        context.signal = true;
        break;
      case 'B':
        break;
      default:
        return false;
    }
    return data.ok();
  }

  // --- emitting rows ---

  // False: a limit of this file is reached.
  bool one(const Start& start) {
    const auto entry = entry_at(frames_, start.address, kMaxEntry);
    const auto function = entry ? function_of(*entry) : std::nullopt;
    if (function && function->begin == start.begin) tell(*function);
    return rows_.count() < kMaxRows && budget_ > 0 && programs_ > 0;
  }

  void tell(const Function& function) {
    const auto segment = executable_after(function.begin);
    if (segment == executable_.size() || function.begin < executable_[segment].first) return;
    const auto end = std::min(function.end, executable_[segment].second);
    const auto begin = std::max(function.begin, covered_);
    if (begin >= end || !spend(function.program)) return;
    if (begin > covered_) gap(covered_, begin);
    if (on_function_) on_function_(begin, end);
    ++found_;
    Frame frame = function.context->initial;
    std::uint64_t location = function.begin;
    const auto row = [&](std::uint64_t from, const Frame& held) {
      if (from < end) rows_.add(std::max(from, begin), rule_of(held, *function.context));
    };
    const bool understood =
        run_frame_program(function.program, *function.context, location, frame, std::ref(row));
    if (location < end)
      rows_.add(std::max(location, begin), understood && function.whole
                                               ? rule_of(frame, *function.context)
                                               : unwind_rule{.cfa = UNWIND_OTHER});
    covered_ = end;
  }

  bool spend(const Bytes& bytes) {
    const bool enough = programs_ >= bytes.left();
    programs_ -= std::min<std::uint64_t>(programs_, bytes.left());
    return enough;
  }

  // Index of the first range that ends after the address.
  std::size_t executable_after(std::uint64_t address) const {
    const auto found = std::upper_bound(executable_.begin(), executable_.end(), address,
                                        [](auto at, auto& each) { return at < each.second; });
    return static_cast<std::size_t>(found - executable_.begin());
  }

  // Code without frames. Of large gaps, only the ends and the known locations of functions are
  // searched.
  void gap(std::uint64_t begin, std::uint64_t end) {
    // On arm64 the PLT behind _init has no CFI.
    const auto with_plt = elf_.machine == EM_AARCH64 ? kEndBytes : kFunctionBytes;
    rows_.add(begin, {});
    for (auto i = executable_after(begin); i < executable_.size() && executable_[i].first < end;
         ++i) {
      const auto [segment, segment_end] = executable_[i];
      const auto from = std::max(begin, segment);
      const auto to = std::min(end, segment_end);
      if (from >= to) continue;
      const bool last = to == segment_end;
      const auto size = std::min(to - from, last ? kEndBytes : kCodeBytes);
      places_.clear();
      if (last || from == segment || (to - from >= kCodeGap && ++code_gaps_ <= kMaxCodeGaps))
        places_.emplace_back(from, from + size);
      if (last) places_.emplace_back(to - size, to);
      for (const auto function : {elf_.init, elf_.fini})
        if (function >= from && function < to)
          places_.emplace_back(function, function + std::min(to - function, with_plt));
      std::sort(places_.begin(), places_.end());
      auto done = from;
      for (const auto& [start, place_end] : places_) {
        if (place_end <= done) continue;
        runtime(std::max(start, done), place_end);
        done = place_end;
      }
    }
  }
  void runtime(std::uint64_t begin, std::uint64_t end) {
    const auto code = code_.at(begin, end - begin);
    if (!code) return;
    (elf_.machine == EM_AARCH64 ? read_arm64_code : read_runtime_code)(
        {code->position(), code->left()}, begin,
        [&](std::uint64_t from, const unwind_rule& rule) { rows_.add(from, rule); });
  }

  const Image& image_;
  const ElfCode& elf_;
  const OnFunction& on_function_;
  Rows rows_;
  std::uint64_t budget_ = kMaxBytes;  // bytes left to read
  std::uint64_t programs_;            // bytes left to interpret
  Window table_, frames_, commons_, code_;
  std::vector<Range> executable_;  // sorted, disjoint
  std::array<Common, kCommons> common_;
  std::vector<Range> places_;  // code to search in a gap
  std::uint64_t covered_ = 0, found_ = 0;
  int code_gaps_ = 0;
};

}  // namespace

bool read_cfi(const Image& image, const ElfCode& elf, const OnRow& row,
              const OnFunction& function) {
  return elf.state == ElfCode::usable && Reader(image, elf, row, function).read();
}

}  // namespace coretap::unwind
