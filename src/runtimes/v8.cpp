#include "runtimes/v8.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "cfi/elf_code.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {

namespace {

/// Constants of the file, some with other names in later versions. One that is 0 has no bytes in
/// the file.
enum Fact {
  kMajor,
  kMinor,
  kFpContext,
  kFpFunction,
  kShared,
  kName,
  kName12,
  kName13,
  kScript,
  kScript12,
  kData,
  kFlags,
  kScriptSource,
  kScriptName,
  kFirstNames,
  kScopeCount,
  kMapType,
  kTypeShared,
  kTypeScope,
  kTypeScript,
  kLength,
  kOneByteChars,
  kTwoByteChars,
  kThinActual,
  kFirstNonString,
  kRepresentations,
  kEncodings,
  kOneByte,
  kExternal,
  kThin,
  kSmallShift,
  kSmallShiftSize,
  kFacts
};
constexpr std::array<std::string_view, kFacts> kFactNames = {
    "_ZN2v88internal7Version6major_E",
    "_ZN2v88internal7Version6minor_E",
    "v8dbg_off_fp_context",
    kV8Mark,
    "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
    "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
    "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
    "v8dbg_class_SharedFunctionInfo__function_data__Object",
    "v8dbg_class_SharedFunctionInfo__flags__int",
    "v8dbg_class_Script__source__Object",
    "v8dbg_class_Script__name__Object",
    "v8dbg_scopeinfo_idx_first_vars",
    "v8dbg_scopeinfo_idx_ncontextlocals",
    "v8dbg_class_Map__instance_type__uint16_t",
    "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
    "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
    "v8dbg_type_Script__SCRIPT_TYPE",
    "v8dbg_class_String__length__int32_t",
    "v8dbg_class_SeqOneByteString__chars__char",
    "v8dbg_class_SeqTwoByteString__chars__char",
    "v8dbg_class_ThinString__actual__String",
    "v8dbg_FirstNonstringType",
    "v8dbg_StringRepresentationMask",
    "v8dbg_StringEncodingMask",
    "v8dbg_OneByteStringTag",
    "v8dbg_ExternalStringTag",
    "v8dbg_ThinStringTag",
    "v8dbg_SmiValueShift",
    "v8dbg_SmiShiftSize",
};

/// Facts that the constants lack, from a version of V8 on.
struct Gap {
  int major, minor;
  bool known;
  std::uint16_t data;          ///< of a built-in function: its number; 0: the constant says it
  std::uint16_t module_scope;  ///< a scope's kind
  bool small_flags;            ///< a scope's flags are a small integer
};
constexpr Gap kGaps[] = {
    {0, 0, false, 0, 0, false},   //
    {10, 2, true, 0, 3, true},    // Node.js 18
    {10, 3, false, 0, 0, false},  //
    {11, 3, true, 0, 3, true},    // Node.js 20
    {11, 4, false, 0, 0, false},  //
    {12, 4, true, 8, 3, true},    // Node.js 22
    {12, 5, false, 0, 0, false},  //
    {13, 6, true, 16, 5, false},  // Node.js 24
    {13, 7, false, 0, 0, false},  //
};

constexpr std::uint16_t kPointer = 8;
constexpr std::uint16_t kScriptLine = 24, kScriptId = 64;  // lines are behind source and name
constexpr int kMostOffset = 1024, kMostShared = 80 - 8;    // the kernel program reads 80 bytes
constexpr int kIndexInHalf = 4;

using Facts = std::array<std::optional<int>, kFacts>;

Facts facts_of(int fd) {
  const auto found = symbols::find_exported(fd, kFactNames);
  Facts facts;
  for (std::size_t i = 0; i < kFacts; i++) {
    if (!found[i].address) continue;
    std::int32_t value = 0;
    if (found[i].offset && !unwind::Image(fd).read(*found[i].offset, &value, sizeof value))
      continue;
    facts[i] = value;
  }
  return facts;
}

const Gap& gap_of(int major, int minor) {
  const auto* found = std::begin(kGaps);
  for (auto& gap : kGaps)
    if (std::pair(gap.major, gap.minor) <= std::pair(major, minor)) found = &gap;
  return *found;
}

/// Numbers that the kernel program has as constants.
bool has_usual_strings(const Facts& facts) {
  constexpr std::pair<Fact, int> kUsual[] = {{kFirstNonString, 0x80}, {kRepresentations, 7},
                                             {kEncodings, 8},         {kOneByte, 8},
                                             {kExternal, 2},          {kThin, 5},
                                             {kSmallShift, 1},        {kSmallShiftSize, 31}};
  return std::ranges::all_of(kUsual,
                             [&](auto& usual) { return facts[usual.first] == usual.second; });
}

std::optional<v8_layout> layout_of(const Facts& facts) {
  if (!facts[kMajor] || !facts[kMinor] || !has_usual_strings(facts)) return {};
  const auto& gap = gap_of(*facts[kMajor], *facts[kMinor]);
  if (!gap.known) return {};
  bool fits = true;
  auto number = [&](Fact fact, int most, int sign = 1) {
    const auto value = facts[fact] ? sign * *facts[fact] : -1;
    fits &= value >= 0 && value <= most;
    return static_cast<__u16>(value);
  };
  auto either = [&](Fact fact, Fact other) { return facts[fact] ? fact : other; };
  v8_layout at{.known = 1};
  at.fp_context = number(kFpContext, kMostOffset, -1);
  at.fp_function = number(kFpFunction, kMostOffset, -1);
  at.shared = number(kShared, kMostOffset);
  at.name = number(either(either(kName, kName12), kName13), kMostShared);
  at.script = number(either(kScript, kScript12), kMostShared);
  at.data = gap.data ? gap.data : number(kData, kMostShared);
  at.literal = static_cast<__u16>(number(kFlags, kMostShared) + kIndexInHalf);
  at.script_source = number(kScriptSource, kMostOffset);
  at.script_name = number(kScriptName, kMostOffset);
  at.script_line = kScriptLine;
  at.script_id = kScriptId;
  const int first_names = number(kFirstNames, 16);
  at.scope_flags = gap.small_flags ? kPointer + kIndexInHalf : kPointer;
  at.scope_count = static_cast<__u16>(kPointer * (1 + number(kScopeCount, 16)));
  at.scope_names = static_cast<__u16>(kPointer * (1 + first_names));
  // Start and end are the last of the members that all scopes have, or behind the names.
  constexpr int kMembersWithout = 3;
  at.scope_start = first_names > kMembersWithout ? kPointer * (1 + kMembersWithout) : 0;
  at.module_scope = gap.module_scope;
  at.type = number(kMapType, kMostOffset);
  at.type_shared = number(kTypeShared, UINT16_MAX);
  at.type_scope = number(kTypeScope, UINT16_MAX);
  at.type_script = number(kTypeScript, UINT16_MAX);
  at.length = number(kLength, kMostOffset);
  at.chars = number(kOneByteChars, kMostOffset);
  fits &= facts[kTwoByteChars] == at.chars && facts[kThinActual] == at.chars;
  if (!fits) return {};
  return at;
}

}  // namespace

std::optional<runtime_file> v8_in(int fd) {
  const auto facts = facts_of(fd);
  if (!facts[kFpFunction]) return {};
  runtime_file file{};
  file.kind = RUNTIME_V8;
  file.v8 = layout_of(facts).value_or(v8_layout{});
  return file;
}

namespace {

/// Positions behind the ends of lines, as JavaScript has them.
class LineEnds {
 public:
  explicit LineEnds(unsigned width) : width_(width) {}
  /// Calls back with the positions behind the ends of lines in the next characters.
  template <class Each>
  void read(std::string_view bytes, Each each) {
    for (; bytes.size() >= width_; bytes.remove_prefix(width_)) {
      std::uint16_t c = static_cast<std::uint8_t>(bytes[0]);
      if (width_ == 2) std::memcpy(&c, bytes.data(), 2);
      if (after_return_ && c != '\n') each(at_);
      at_++;
      after_return_ = c == '\r';
      constexpr std::uint16_t kLineSeparator = 0x2028, kParagraphSeparator = 0x2029;
      if (c == '\n' || c == kLineSeparator || c == kParagraphSeparator) each(at_);
    }
  }

 private:
  unsigned width_;
  std::uint32_t at_ = 0;
  bool after_return_ = false;
};

constexpr std::uint32_t kMostSourceLine = 100'000'000;
constexpr std::size_t kReadAtOnce = 64 << 10;

}  // namespace

/// Objects are moved: is the script still where the kernel program has seen it?
bool SourceLines::is_there(pid_t pid, const runtime_source& source) const {
  std::uint64_t object = 0, id = 0;
  auto read = [&](std::uint16_t offset, std::uint64_t& to) {
    return read_(pid, source.script + offset, {reinterpret_cast<char*>(&to), sizeof to});
  };
  return read(source.object_at, object) && read(source.id_at, id) && object == source.object &&
         id == source.id;
}

const SourceLines::Source* SourceLines::find(pid_t pid, const runtime_source& source) {
  auto known = std::ranges::find_if(sources_, [&](auto& s) {
    return s.pid == pid && s.script == source.script && s.object == source.object &&
           s.id == source.id;
  });
  if (known != sources_.end()) {
    sources_.splice(sources_.begin(), sources_, known);
    return &sources_.front();
  }
  const auto bytes = std::size_t{source.length} * source.width;
  if (!read_ || pid <= 0 || !source.chars || bytes > kMostSource || !is_there(pid, source) ||
      !budget_.take(bytes))
    return nullptr;
  Source made{pid, source.script, source.object, source.id, {}};
  LineEnds ends(source.width);
  std::string chunk;
  for (std::size_t at = 0; at < bytes; at += chunk.size()) {
    chunk.resize(std::min(kReadAtOnce, bytes - at));
    if (!read_(pid, source.chars + at, chunk)) return nullptr;
    ends.read(chunk, [&](std::uint32_t end) { made.ends.push_back(end); });
  }
  if (!is_there(pid, source)) return nullptr;
  lines_ += made.ends.size() + 1;
  sources_.push_front(std::move(made));
  while (lines_ > kMostLines && sources_.size() > 1) {
    lines_ -= sources_.back().ends.size() + 1;
    sources_.pop_back();
  }
  return &sources_.front();
}

std::uint32_t SourceLines::line_of(pid_t pid, const runtime_source& source, std::string_view sent) {
  if ((source.width != 1 && source.width != 2) || source.start > source.length) return 0;
  std::size_t before = 0;  // ends of lines before the function
  if (source.start) {
    if (sent.size() == std::size_t{source.start} * source.width) {
      LineEnds(source.width).read(sent, [&](std::uint32_t) { before++; });
    } else if (const auto* found = find(pid, source)) {
      before = static_cast<std::size_t>(
          std::upper_bound(found->ends.begin(), found->ends.end(), source.start) -
          found->ends.begin());
    } else {
      return 0;
    }
  }
  const auto line = std::uint64_t{source.first_line} + before + 1;
  return line < kMostSourceLine ? static_cast<std::uint32_t>(line) : 0;
}

}  // namespace coretap::runtimes
