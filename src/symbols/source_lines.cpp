#include "symbols/source_lines.hpp"

#include <dwarf.h>
#include <fcntl.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "symbols/debug_data.hpp"
#include "symbols/debug_forms.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/line_program.hpp"
#include "symbols/process_files.hpp"

namespace coretap::symbols {

namespace {

// Files may be hostile. Work that bytes of the file can repeat is limited by time.
constexpr std::uint64_t kMostUnit = 256 << 20;         // bytes of a unit's entries
constexpr std::uint64_t kMostAbbreviations = 2 << 20;  // bytes, of one unit
constexpr std::size_t kMostUnits = 1 << 20;
constexpr std::size_t kMostDepth = 1024;
constexpr std::size_t kMostInlined = 256;  // frames of one address
constexpr std::size_t kMostSteps = 255;    // attributes of one entry that are of interest
constexpr std::size_t kMostRanges = 1 << 20;
constexpr int kMostLinks = 16;  // from an entry to the one that has its name
constexpr unsigned kBetweenChecks = 1024;
constexpr unsigned kOfUnit = 64;  // checks, for the abbreviations of a unit

constexpr std::string_view kNoUnit = "no unit of the debug information has this address";
constexpr std::string_view kDamaged = "the debug information is damaged";
constexpr std::string_view kTooLong = "reading the debug information takes too long";
constexpr std::string_view kSplit = "functions are in a .dwo file, which is not read";
constexpr std::string_view kShared = "functions are in a file that dwz made, which is not read";

bool is_unit_tag(std::uint16_t tag) {
  return tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit || tag == DW_TAG_skeleton_unit;
}
bool is_function(std::uint16_t tag) {
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/// The attributes that are read of an entry.
struct DebugEntry {
  DebugValue low, high, ranges, name, linkage_name, origin, call_file, call_line;
  // Of a unit.
  DebugValue lines, directory, str_offsets_base, addr_base, rnglists_base, split;

  DebugValue* member(std::uint64_t attribute, bool unit) {
    switch (attribute) {
      case DW_AT_name:
        return &name;
      case DW_AT_low_pc:
        return &low;
      case DW_AT_high_pc:
        return &high;
      case DW_AT_abstract_origin:
      case DW_AT_specification:
        return &origin;
      case DW_AT_ranges:
        return &ranges;
      case DW_AT_call_file:
        return &call_file;
      case DW_AT_call_line:
        return &call_line;
      case DW_AT_linkage_name:
      case DW_AT_MIPS_linkage_name:
        return &linkage_name;
      default:
        break;
    }
    if (!unit) return nullptr;
    switch (attribute) {
      case DW_AT_stmt_list:
        return &lines;
      case DW_AT_comp_dir:
        return &directory;
      case DW_AT_str_offsets_base:
        return &str_offsets_base;
      case DW_AT_addr_base:
      case DW_AT_GNU_addr_base:
        return &addr_base;
      case DW_AT_rnglists_base:
        return &rnglists_base;
      case DW_AT_dwo_name:
      case DW_AT_GNU_dwo_name:
        return &split;
      default:
        return nullptr;
    }
  }
};

/// The abbreviations of a unit, as steps to read its entries. Attributes that are not of interest
/// are skipped, several at once if their sizes are fixed.
class Abbreviations {
 public:
  struct Step {
    std::uint32_t skip = 0;  // bytes before the value
    std::uint16_t attribute = 0, form = 0;
    std::int64_t implicit = 0;
  };
  struct Abbreviation {
    std::uint64_t code = 0;
    std::uint16_t tag = 0;
    bool children = false;
    std::uint32_t first = 0, count = 0;  // steps
    std::uint32_t skip = 0;              // bytes after them
  };

  /// `only`: until this code. 0: all.
  bool read(DebugData& data, const DebugUnit& unit, std::uint64_t only = 0) {
    if (whole_ && offset_ == unit.abbreviations && same_sizes(unit)) return true;
    all_.clear();
    steps_.clear();
    dense_ = true;
    whole_ = false;
    offset_ = unit.abbreviations;
    unit_ = unit;
    auto& section = data[DebugData::abbrev];
    for (std::uint64_t size = only ? 256 : 16 << 10;; size *= 4) {
      Bytes bytes = section.from(offset_, size);
      const bool last = size >= kMostAbbreviations || bytes.left() < size;
      if (const auto read = parse(bytes, only)) {
        whole_ = *read && !only;
        return *read;
      }
      all_.clear();
      steps_.clear();
      dense_ = true;
      if (last) return false;
    }
  }
  const Abbreviation* find(std::uint64_t code) const {
    if (dense_) return code - 1 < all_.size() ? &all_[code - 1] : nullptr;
    const auto found = std::ranges::lower_bound(all_, code, {}, &Abbreviation::code);
    return found != all_.end() && found->code == code ? &*found : nullptr;
  }
  /// Reads or skips the values of an entry.
  bool take(Bytes& from, const Abbreviation& abbreviation, const DebugUnit& unit,
            DebugEntry& entry) const {
    const bool unit_entry = is_unit_tag(abbreviation.tag);
    for (auto i = abbreviation.first; i < abbreviation.first + abbreviation.count; i++) {
      const auto& step = steps_[i];
      if (step.skip) from.take(step.skip);
      DebugValue value;
      if (!read_form(from, step.form, step.implicit, unit, value)) return false;
      if (!step.attribute) continue;
      // A specification is as good as an origin; the first one counts.
      if (auto* member = entry.member(step.attribute, unit_entry); member && !*member)
        *member = value;
    }
    if (abbreviation.skip) from.take(abbreviation.skip);
    return from.ok();
  }

 private:
  bool same_sizes(const DebugUnit& unit) const {
    return unit_.version == unit.version && unit_.address_size == unit.address_size &&
           unit_.offset_size == unit.offset_size;
  }
  // nullopt: the bytes end before the table.
  std::optional<bool> parse(Bytes& from, std::uint64_t only) {
    for (;;) {
      Abbreviation next;
      next.code = from.uleb();
      if (!from.ok()) return {};
      if (next.code == 0) break;
      next.tag = static_cast<std::uint16_t>(std::min<std::uint64_t>(from.uleb(), UINT16_MAX));
      next.children = from.u8() != 0;
      next.first = static_cast<std::uint32_t>(steps_.size());
      const bool wanted =
          is_function(next.tag) || is_unit_tag(next.tag) || next.tag == DW_TAG_entry_point;
      std::uint64_t skip = 0;
      DebugEntry entry;
      for (;;) {
        const auto attribute = from.uleb(), form = from.uleb();
        const std::int64_t implicit = form == DW_FORM_implicit_const ? from.sleb() : 0;
        if (!from.ok()) return {};
        if (attribute == 0 && form == 0) break;
        if (form > UINT16_MAX) return false;
        const bool take = wanted && entry.member(attribute, is_unit_tag(next.tag)) != nullptr;
        const auto size = size_of_form(form, unit_);
        if (size && !take) {
          skip += *size;
        } else {
          if (steps_.size() - next.first >= kMostSteps) return false;
          steps_.push_back({static_cast<std::uint32_t>(skip),
                            static_cast<std::uint16_t>(take ? attribute : 0),
                            static_cast<std::uint16_t>(form), implicit});
          skip = 0;
        }
        if (skip > UINT32_MAX) return false;
      }
      next.count = static_cast<std::uint32_t>(steps_.size()) - next.first;
      next.skip = static_cast<std::uint32_t>(skip);
      if (next.code != all_.size() + 1) dense_ = false;
      all_.push_back(next);
      if (next.code == only) break;
    }
    if (!dense_) std::ranges::stable_sort(all_, {}, &Abbreviation::code);
    return true;
  }

  std::uint64_t offset_ = 0;
  DebugUnit unit_;
  bool whole_ = false, dense_ = true;
  std::vector<Abbreviation> all_;
  std::vector<Step> steps_;
};

using AddressRange = std::pair<std::uint64_t, std::uint64_t>;  // begin, end

}  // namespace

class SourceLines::Impl {
 public:
  Impl(int fd, std::uint64_t most_unpacked) : data_(fd, most_unpacked) {}

  std::string_view why_not() const { return data_.why_not(); }

  std::vector<SourcePlace> find(std::span<const std::uint64_t> addresses,
                                std::chrono::milliseconds most_time) {
    addresses_ = addresses;
    places_.assign(addresses.size(), {});
    limit_ = now() + most_time;
    late_ = false;
    std::string_view why = data_.why_not();
    if (why.empty() && !addresses.empty()) {
      if (!std::exchange(indexed_, true)) whole_ = find_units();
      why = late_ ? kTooLong : whole_ ? kNoUnit : kDamaged;
      each_unit_of(addresses);
      name_frames();
      bytes_ = {};
      program_ = {};
    }
    for (auto& place : places_)
      if (place.frames.empty() && place.why.empty()) place.why = why;
    return std::move(places_);
  }

 private:
  struct Hit {
    std::uint64_t entry = 0;  // its offset in .debug_info
    std::uint64_t call_file = 0, call_line = 0;
    std::uint32_t depth = 0;
    bool inlined = false;
  };
  struct Row {
    std::uint64_t file = 0, line = 0;
    bool known = false;
  };
  /// A name that is looked for from one entry to the next.
  struct Search {
    std::uint64_t at = 0;  // an entry's offset in .debug_info
    int links = 0;
    bool done = false, shared = false;
    std::string name = {};
  };

  static std::chrono::nanoseconds now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  bool late(unsigned cost = 1) {
    calls_ += cost;
    if (!late_ && calls_ >= kBetweenChecks) {
      calls_ = 0;
      late_ = now() > limit_;
    }
    return late_;
  }

  // --- units ---

  // False: a part of the debug information is damaged, or not read for lack of time.
  bool find_units() {
    bool whole = read_headers();
    std::vector<bool> listed(units_.size());
    whole &= read_aranges(listed);
    // Not all compilers make lists of addresses; those of some lack units.
    Abbreviations abbreviations;
    for (std::uint32_t i = 0; i < units_.size() && !late(kOfUnit); i++) {
      if (listed[i]) continue;
      DebugUnit unit = units_[i];
      DebugEntry entry;
      if (first_entry(unit, abbreviations, entry))
        each_range(unit, entry, [&](const AddressRange& range) { cover(range, i); });
      else
        whole = false;
    }
    // Parts that overlap belong to the first.
    std::ranges::stable_sort(covered_, {}, &Covered::begin);
    std::uint64_t end = 0;
    for (auto& each : covered_) {
      each.begin = std::max(each.begin, end);
      end = std::max(end, each.end);
    }
    std::erase_if(covered_, [](const Covered& each) { return each.begin >= each.end; });
    covered_.shrink_to_fit();
    return whole && !late_;
  }

  void cover(const AddressRange& range, std::uint32_t unit) {
    if (covered_.size() < kMostRanges) covered_.push_back({range.first, range.second, unit});
  }

  void each_unit_of(std::span<const std::uint64_t> addresses) {
    std::vector<std::pair<std::uint32_t, std::size_t>> wanted;  // unit, address by number
    for (std::size_t i = 0; i < addresses.size(); i++) {
      auto after = std::ranges::upper_bound(covered_, addresses[i], {}, &Covered::begin);
      if (after != covered_.begin() && addresses[i] < (--after)->end)
        wanted.emplace_back(after->unit, i);
    }
    std::ranges::sort(wanted);
    for (std::size_t i = 0; i < wanted.size() && !late(kOfUnit);) {
      const auto unit = wanted[i].first;
      mine_.clear();
      for (; i < wanted.size() && wanted[i].first == unit; i++) mine_.push_back(wanted[i].second);
      one_unit(units_[unit]);
    }
    if (late_)
      for (auto& place : places_)
        if (place.frames.empty()) place.why = kTooLong;
  }

  bool read_headers() {
    auto& info = data_[DebugData::info];
    for (std::uint64_t at = 0; at < info.size();) {
      DebugUnit unit;
      unit.offset = at;
      Bytes head = info.from(at, 48);
      const auto length = head.initial_length(unit.offset_size);
      const auto body = head.address();
      if (!head.ok() || length > info.size() - body || length == 0 || units_.size() >= kMostUnits ||
          late())
        return false;
      unit.end = at = body + length;
      const auto version = head.number<std::uint16_t>();
      if (version < 2 || version > 5) continue;
      unit.version = static_cast<std::uint8_t>(version);
      std::uint8_t type = DW_UT_compile;
      if (version == 5) {
        type = head.u8();
        unit.address_size = head.u8();
        unit.abbreviations = head.word(unit.offset_size);
        if (type == DW_UT_skeleton) head.number<std::uint64_t>();
      } else {
        unit.abbreviations = head.word(unit.offset_size);
        unit.address_size = head.u8();
      }
      if (type != DW_UT_compile && type != DW_UT_partial && type != DW_UT_skeleton) continue;
      unit.entries = head.address() - unit.offset;
      if (head.ok() && unit.offset + unit.entries < unit.end &&
          (unit.address_size == 4 || unit.address_size == 8))
        units_.push_back(unit);
    }
    return true;
  }

  // The index of the unit that has this offset of .debug_info.
  std::optional<std::uint32_t> unit_at(std::uint64_t offset) const {
    auto after = std::ranges::upper_bound(units_, offset, {}, &DebugUnit::offset);
    if (after == units_.begin() || offset >= (--after)->end) return {};
    return static_cast<std::uint32_t>(after - units_.begin());
  }

  bool read_aranges(std::vector<bool>& listed) {
    auto& section = data_[DebugData::aranges];
    for (std::uint64_t at = 0; at < section.size();) {
      Bytes head = section.from(at, 12);
      std::uint8_t offset_size = 4;
      const auto length = head.initial_length(offset_size);
      const auto start = head.address();
      if (!head.ok() || length > section.size() - start || late()) return false;
      head = section.from(start, 12);
      const auto version = head.number<std::uint16_t>();
      const auto info = head.word(offset_size);
      const unsigned size = head.u8(), selector = head.u8();
      const auto end = start + length;
      auto each = head.address();
      // Pairs are aligned to their size, from the start of this list.
      if (size) each = at + (each - at + 2 * size - 1) / (2 * size) * (2 * size);
      at = end;
      const auto unit = unit_at(info);
      if (!head.ok() || version != 2 || (size != 4 && size != 8) || selector || !unit ||
          units_[*unit].offset != info)
        continue;
      for (; each < end && end - each >= 2 * size; each += 2 * size) {
        Bytes pair = section.from(each, 2 * size);
        const std::uint64_t begin = pair.word(size);
        const std::uint64_t count = pair.word(size);
        std::uint64_t last = 0;
        if (late() || !pair.ok() || (!begin && !count)) break;
        if (!count || __builtin_add_overflow(begin, count, &last)) continue;
        listed[*unit] = true;
        cover({begin, last}, *unit);
      }
    }
    return true;
  }

  // Also sets what the unit's values depend on.
  bool first_entry(DebugUnit& unit, Abbreviations& abbreviations, DebugEntry& entry) {
    for (const std::uint64_t most : {std::uint64_t{512}, std::uint64_t{64 << 10}}) {
      const auto from = unit.offset + unit.entries;
      Bytes bytes = data_[DebugData::info].from(from, std::min(most, unit.end - from));
      const auto code = bytes.uleb();
      if (!abbreviations.read(data_, unit, code)) return false;
      const auto* known = abbreviations.find(code);
      entry = {};
      // The window of the section may have moved only by abbreviations of another section.
      if (known && is_unit_tag(known->tag) && abbreviations.take(bytes, *known, unit, entry)) {
        set_bases(unit, entry);
        return true;
      }
    }
    return false;
  }
  void set_bases(DebugUnit& unit, const DebugEntry& entry) {
    unit.str_offsets_base = entry.str_offsets_base.number;
    unit.addr_base = entry.addr_base.number;
    unit.rnglists_base = entry.rnglists_base.number;
    unit.low = address_of(data_, unit, entry.low).value_or(0);
  }

  // --- ranges ---

  template <class Visit>
  void each_range(const DebugUnit& unit, const DebugEntry& entry, Visit visit) {
    const auto tell = [&](std::uint64_t begin, std::uint64_t end) {
      if (begin < end) visit(AddressRange{begin, end});
    };
    if (entry.ranges) {
      if (unit.version < 5)
        old_ranges(unit, entry.ranges.number, tell);
      else
        list_of_ranges(unit, entry.ranges, tell);
      return;
    }
    const auto low = address_of(data_, unit, entry.low);
    if (!low || !entry.high) return;
    if (const auto high = address_of(data_, unit, entry.high))
      tell(*low, *high);
    else
      tell(*low, *low + entry.high.number);
  }

  template <class Tell>
  void old_ranges(const DebugUnit& unit, std::uint64_t at, Tell tell) {
    auto base = unit.low;
    const unsigned size = unit.address_size;
    const std::uint64_t selects = size == 8 ? UINT64_MAX : UINT32_MAX;
    for (std::size_t n = 0; n < kMostRanges && !late(); n++, at += 2 * size) {
      auto pair = data_[DebugData::ranges].at(at, 2 * size);
      if (!pair) return;
      const auto address = [&]() -> std::uint64_t { return pair->word(size); };
      const auto begin = address(), end = address();
      if (!begin && !end) return;
      if (begin == selects)
        base = end;
      else
        tell(base + begin, base + end);
    }
  }

  template <class Tell>
  void list_of_ranges(const DebugUnit& unit, const DebugValue& place, Tell tell) {
    auto& section = data_[DebugData::rnglists];
    auto at = place.number;
    if (place.form == DW_FORM_rnglistx) {
      std::uint64_t entry = 0;
      if (__builtin_mul_overflow(at, std::uint64_t{unit.offset_size}, &entry) ||
          __builtin_add_overflow(entry, unit.rnglists_base, &entry))
        return;
      auto bytes = section.at(entry, unit.offset_size);
      if (!bytes) return;
      at = unit.rnglists_base + (bytes->word(unit.offset_size));
    }
    auto base = unit.low;
    for (std::size_t n = 0; n < kMostRanges && !late(); n++) {
      constexpr std::uint64_t kMostEntry = 1 + 2 * 10;
      Bytes bytes = section.from(at, kMostEntry);
      const auto begin = bytes.address();
      const auto plain = [&] { return bytes.word(unit.address_size); };
      const auto indexed = [&] {
        return address_of(data_, unit, {DW_FORM_addrx, bytes.uleb()}).value_or(0);
      };
      std::uint64_t first = 0;
      const unsigned kind = bytes.u8();
      switch (kind) {
        case DW_RLE_base_addressx:
          base = indexed();
          break;
        case DW_RLE_startx_endx:
          first = indexed();
          tell(first, indexed());
          break;
        case DW_RLE_startx_length:
          first = indexed();
          tell(first, first + bytes.uleb());
          break;
        case DW_RLE_offset_pair:
          first = bytes.uleb();
          tell(base + first, base + bytes.uleb());
          break;
        case DW_RLE_base_address:
          base = plain();
          break;
        case DW_RLE_start_end:
          first = plain();
          tell(first, plain());
          break;
        case DW_RLE_start_length:
          first = plain();
          tell(first, first + bytes.uleb());
          break;
        default:
          return;
      }
      if (!bytes.ok()) return;
      at += bytes.address() - begin;
    }
  }

  // --- one unit ---

  bool load(const DebugUnit& header) {
    unit_ = header;
    if (unit_.end - unit_.offset > kMostUnit ||
        !data_[DebugData::info].read(unit_.offset, unit_.end - unit_.offset, bytes_) ||
        !abbreviations_.read(data_, unit_))
      return false;
    Bytes from = entries_from(unit_.offset + unit_.entries);
    const auto* known = abbreviations_.find(from.uleb());
    unit_entry_ = {};
    if (!known || !is_unit_tag(known->tag) ||
        !abbreviations_.take(from, *known, unit_, unit_entry_))
      return false;
    set_bases(unit_, unit_entry_);
    return true;
  }
  Bytes entries_from(std::uint64_t offset) const {
    const auto at = static_cast<std::size_t>(offset - unit_.offset);
    return Bytes({bytes_.data() + at, bytes_.size() - at}, offset);
  }
  std::string text(const DebugValue& value) {
    return text_of(data_, unit_, value, bytes_, unit_.offset);
  }

  // Calls back for the wanted addresses of this unit that are in the range, by number in `mine_`.
  template <class Visit>
  void each_wanted(std::uint64_t begin, std::uint64_t end, Visit visit) {
    auto first =
        std::ranges::lower_bound(mine_, begin, {}, [&](std::size_t i) { return addresses_[i]; });
    for (; first != mine_.end() && addresses_[*first] < end && !late(); ++first)
      visit(static_cast<std::size_t>(first - mine_.begin()));
  }

  void one_unit(const DebugUnit& header) {
    std::string_view why;
    hits_.assign(mine_.size(), {});
    rows_.assign(mine_.size(), {});
    bool has_lines = false;
    if (!load(header)) {
      why = kDamaged;
    } else {
      if (!walk()) why = kDamaged;
      if (unit_entry_.split) why = kSplit;
      has_lines = unit_entry_.lines && program_.read(data_, unit_, unit_entry_.lines.number,
                                                     text(unit_entry_.directory));
      if (has_lines && !program_.run([&](auto begin, auto end, auto file, auto line) {
            each_wanted(begin, end, [&](std::size_t i) {
              if (!rows_[i].known) rows_[i] = {file, line, true};
            });
            return !late();
          }))
        why = kDamaged;
      if (unit_entry_.lines && !has_lines) why = kDamaged;
    }
    if (late_) why = kTooLong;
    std::map<std::uint64_t, std::string> paths;
    const auto path = [&](std::uint64_t file) {
      if (!has_lines) return std::string();
      const auto [known, added] = paths.try_emplace(file);
      if (added) known->second = program_.path(file);
      return known->second;
    };
    const auto line_of = [](std::uint64_t line) {
      return line > UINT32_MAX ? 0 : static_cast<std::uint32_t>(line);
    };
    for (std::size_t i = 0; i < mine_.size(); i++) {
      auto& place = places_[mine_[i]];
      place.why = why;
      auto row = rows_[i];
      const auto& hits = hits_[i];
      for (auto hit = hits.rbegin(); hit != hits.rend(); ++hit) {
        SourceFrame frame{.file = row.known ? path(row.file) : std::string(),
                          .line = line_of(row.line),
                          .inlined = hit->inlined};
        place.frames.push_back(std::move(frame));
        named_.push_back({mine_[i], place.frames.size() - 1, hit->entry});
        row = {hit->call_file, hit->call_line, hit->call_file != 0 || hit->call_line != 0};
      }
      if (hits.empty() && row.known)
        place.frames.push_back({.file = path(row.file), .line = line_of(row.line)});
    }
    find_names();
  }

  // All entries of the unit in memory. A function within another one's entry, such as that of a
  // local class, may have its code elsewhere.
  bool walk() {
    Bytes from = entries_from(unit_.offset + unit_.entries);
    open_.clear();
    while (!from.at_end() && !late()) {
      const auto offset = from.address();
      const auto code = from.uleb();
      if (code == 0) {
        if (open_.empty()) break;
        open_.pop_back();
        if (open_.empty()) break;
        continue;
      }
      const auto* known = abbreviations_.find(code);
      if (!known) return false;
      DebugEntry entry;
      if (!abbreviations_.take(from, *known, unit_, entry)) return false;
      if (is_function(known->tag) && (entry.low || entry.ranges))
        each_range(unit_, entry, [&](const AddressRange& range) {
          each_wanted(range.first, range.second, [&](std::size_t i) {
            add_hit(hits_[i], entry, offset, known->tag == DW_TAG_inlined_subroutine);
          });
        });
      if (!known->children) continue;
      if (open_.size() >= kMostDepth) return false;
      open_.push_back(offset);
    }
    return from.ok();
  }

  // A later entry counts only within the last one: functions may share code.
  void add_hit(std::vector<Hit>& hits, const DebugEntry& entry, std::uint64_t offset,
               bool inlined) {
    const auto depth = static_cast<std::uint32_t>(open_.size());
    if (!hits.empty()) {
      const auto& last = hits.back();
      if (last.depth >= depth || open_[last.depth] != last.entry) return;
    }
    if (hits.size() < kMostInlined)
      hits.push_back({offset, entry.call_file.number, entry.call_line.number, depth, inlined});
  }

  // --- names ---

  // Follows the links within the unit in memory.
  void follow(Search& search) {
    while (!search.done) {
      if (search.at < unit_.offset + unit_.entries || search.at >= unit_.end) return;
      if (++search.links > kMostLinks) break;
      Bytes from = entries_from(search.at);
      const auto* known = abbreviations_.find(from.uleb());
      DebugEntry entry;
      if (!known || !abbreviations_.take(from, *known, unit_, entry)) break;
      if (auto name = text(entry.linkage_name); !name.empty()) {
        search.name = std::move(name);
        break;
      }
      if (search.name.empty()) search.name = text(entry.name);
      for (const auto* value : {&entry.name, &entry.linkage_name, &entry.origin})
        search.shared |= value->form == DW_FORM_GNU_ref_alt ||
                         value->form == DW_FORM_GNU_strp_alt || value->form == DW_FORM_strp_sup ||
                         value->form == DW_FORM_ref_sup4 || value->form == DW_FORM_ref_sup8;
      const auto form = entry.origin.form;
      if (form == DW_FORM_ref_addr)
        search.at = entry.origin.number;
      else if (form == DW_FORM_ref_udata || (form >= DW_FORM_ref1 && form <= DW_FORM_ref8))
        search.at = unit_.offset + entry.origin.number;
      else
        break;
    }
    search.done = true;
  }
  void find_names() {
    for (std::size_t i = first_named_; i < named_.size(); i++) {
      auto [known, added] = searches_.try_emplace(named_[i].entry);
      if (!added) continue;
      known->second.at = named_[i].entry;
      follow(known->second);
    }
    first_named_ = named_.size();
  }
  // The names that are in other units, unit by unit.
  void name_frames() {
    for (int round = 0; round < kMostLinks && !late_; round++) {
      std::vector<std::pair<std::uint32_t, Search*>> open;
      for (auto& [entry, search] : searches_) {
        if (search.done) continue;
        if (const auto unit = unit_at(search.at))
          open.emplace_back(*unit, &search);
        else
          search.done = true;
      }
      if (open.empty()) break;
      std::ranges::sort(open);
      std::optional<std::uint32_t> loaded;
      bool usable = false;
      for (auto& [unit, search] : open) {
        if (late(kOfUnit)) break;
        if (loaded != unit) usable = load(units_[unit]);
        loaded = unit;
        const auto at = search->at;
        if (usable) follow(*search);
        if (!usable || (!search->done && search->at == at)) search->done = true;
      }
    }
    for (const auto& named : std::exchange(named_, {})) {
      auto& place = places_[named.place];
      const auto& search = searches_[named.entry];
      place.frames[named.frame].function = search.name;
      if (search.shared && search.name.empty() && place.why.empty()) place.why = kShared;
    }
    searches_.clear();
    first_named_ = 0;
  }

  struct NamedFrame {
    std::size_t place, frame;
    std::uint64_t entry;
  };

  struct Covered {
    std::uint64_t begin, end;
    std::uint32_t unit;
  };

  DebugData data_;
  bool indexed_ = false, whole_ = false;
  std::vector<DebugUnit> units_;
  std::vector<Covered> covered_;  // sorted, without overlaps

  // Of one call.
  std::span<const std::uint64_t> addresses_;
  std::vector<SourcePlace> places_;
  std::vector<NamedFrame> named_;
  std::size_t first_named_ = 0;
  std::unordered_map<std::uint64_t, Search> searches_;
  std::chrono::nanoseconds limit_{};
  unsigned calls_ = 0;
  bool late_ = false;

  // Of the unit in memory.
  DebugUnit unit_;
  DebugEntry unit_entry_;
  std::vector<std::uint8_t> bytes_;
  Abbreviations abbreviations_;
  LineProgram program_;
  std::vector<std::size_t> mine_;       // wanted addresses by number, sorted
  std::vector<std::vector<Hit>> hits_;  // of these, outermost first
  std::vector<Row> rows_;               // of these
  std::vector<std::uint64_t> open_;     // entries whose children are read
};

SourceLines::SourceLines(int fd, std::uint64_t most_unpacked)
    : impl_(std::make_unique<Impl>(fd, most_unpacked)) {}
SourceLines::~SourceLines() = default;
SourceLines::SourceLines(SourceLines&&) noexcept = default;
SourceLines& SourceLines::operator=(SourceLines&&) noexcept = default;

std::string_view SourceLines::why_not() const { return impl_->why_not(); }

std::vector<SourcePlace> SourceLines::find(std::span<const std::uint64_t> addresses,
                                           std::chrono::milliseconds most_time) {
  return impl_->find(addresses, most_time);
}

DebugFile find_debug_file(int fd, const std::string& path,
                          std::span<const std::string> debug_roots) {
  const auto key = debug_file_key(fd);
  const auto own = identity_of(fd);
  for (const auto& root : debug_roots)
    for (auto& candidate : key.paths(root, path)) {
      Fd file = open_regular(open_handle(candidate, true), kMaxElfSize);
      if (file && identity_of(file.get()) != own && key.is_of(file.get()) &&
          DebugData(file.get()).why_not().empty())
        return {std::move(file), std::move(candidate)};
    }
  if (!DebugData(fd).why_not().empty()) return {};
  return {Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)), path};
}

}  // namespace coretap::symbols
