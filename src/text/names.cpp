#include "text/names.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/disks.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/symbols.hpp"
#include "coretap/syscalls.hpp"
#include "kernel/kernel.hpp"
#include "lib/core/shared.h"

namespace coretap {

namespace {

constexpr std::string_view kGfpBits = "gfp bits";  // unnamed in the kernel
constexpr int kOpBits = 8;                         // REQ_OP_BITS since 4.10; flags are above

constexpr const char* kOperationEnums[] = {"req_op", "req_opf"};  // until 6.0 (ff07a02e9e8e)
constexpr std::string_view kFlag = "__REQ_";                      // prefix of a flag's bit

/// Names as in biolatency -F, where they differ from the kernel's enumerators.
constexpr std::pair<std::string_view, std::string_view> kBlockWords[] = {
    {"META", "Metadata"},     {"PRIO", "Priority"},   {"FUA", "ForcedUnitAccess"},
    {"RAHEAD", "ReadAhead"},  {"NOMERGE", "NoMerge"}, {"NOWAIT", "NoWait"},
    {"PREFLUSH", "PreFlush"}, {"DRV_IN", "DriverIn"}, {"DRV_OUT", "DriverOut"},
};

struct Letters {
  std::string_view name, letters;
};
/// blktrace's letters for operations; any other operation is N.
constexpr Letters kOperations[] = {
    {"READ", "R"},         {"WRITE", "W"},         {"FLUSH", "F"},
    {"DISCARD", "D"},      {"SECURE_ERASE", "DE"}, {"WRITE_ZEROES", "WZ"},
    {"ZONE_APPEND", "ZA"}, {"ZONE_OPEN", "ZO"},    {"ZONE_CLOSE", "ZC"},
    {"ZONE_FINISH", "ZF"}, {"ZONE_RESET", "ZR"},   {"ZONE_RESET_ALL", "ZRA"},
};
/// blktrace's letters for flags, in this order, after the operation.
constexpr Letters kFlags[] = {
    {"FUA", "F"}, {"RAHEAD", "A"}, {"SYNC", "S"}, {"META", "M"}, {"ATOMIC", "U"}};

/// REQ_OP_ZONE_APPEND -> ZoneAppend
std::string camel(std::string_view name) {
  for (auto& [kernel, word] : kBlockWords)
    if (kernel == name) return std::string(word);
  std::string out;
  bool start = true;
  for (char c : name) {
    if (c == '_') {
      start = true;
      continue;
    }
    out += static_cast<char>(start ? toupper(c) : tolower(c));
    start = false;
  }
  return out;
}

/// Bits of gfp_t before 6.10 gave them an enum (772dd0342727); the same from 5.10 to 6.9.
constexpr std::string_view kOldGfp[] = {
    "DMA",   "HIGHMEM",    "DMA32",         "MOVABLE",  "RECLAIMABLE",    "HIGH",
    "IO",    "FS",         "ZERO",          "ATOMIC",   "DIRECT_RECLAIM", "KSWAPD_RECLAIM",
    "WRITE", "NOWARN",     "RETRY_MAYFAIL", "NOFAIL",   "NORETRY",        "MEMALLOC",
    "COMP",  "NOMEMALLOC", "HARDWALL",      "THISNODE", "ACCOUNT"};

/// Named sets of flags in the kernel (include/linux/gfp_types.h), the largest first.
constexpr std::pair<std::string_view, std::string_view> kGfpSets[] = {
    {"GFP_TRANSHUGE", "DIRECT_RECLAIM IO FS HARDWALL HIGHMEM MOVABLE COMP NOMEMALLOC NOWARN"},
    {"GFP_TRANSHUGE_LIGHT", "IO FS HARDWALL HIGHMEM MOVABLE COMP NOMEMALLOC NOWARN"},
    {"GFP_HIGHUSER_MOVABLE", "DIRECT_RECLAIM KSWAPD_RECLAIM IO FS HARDWALL HIGHMEM MOVABLE"},
    {"GFP_HIGHUSER", "DIRECT_RECLAIM KSWAPD_RECLAIM IO FS HARDWALL HIGHMEM"},
    {"GFP_USER", "DIRECT_RECLAIM KSWAPD_RECLAIM IO FS HARDWALL"},
    {"GFP_KERNEL_ACCOUNT", "DIRECT_RECLAIM KSWAPD_RECLAIM IO FS ACCOUNT"},
    {"GFP_KERNEL", "DIRECT_RECLAIM KSWAPD_RECLAIM IO FS"},
    {"GFP_NOFS", "DIRECT_RECLAIM KSWAPD_RECLAIM IO"},
    {"GFP_NOIO", "DIRECT_RECLAIM KSWAPD_RECLAIM"},
    {"GFP_ATOMIC", "HIGH KSWAPD_RECLAIM"},
    {"GFP_NOWAIT", "KSWAPD_RECLAIM"},
};

/// The format of enumerators in the kernel's trace output.
std::string lower(std::string_view word) {
  std::string out(word);
  for (auto& c : out) c = static_cast<char>(tolower(c));
  return out;
}

std::string_view without(std::string_view prefix, std::string_view name) {
  return name.substr(name.starts_with(prefix) ? prefix.size() : 0);
}

void join(std::string& list, std::string_view word, char separator) {
  if (!list.empty()) list += separator;
  list += word;
}

}  // namespace

void Names::learn(std::string_view type, Enumerators values) {
  enums_.insert_or_assign(std::string(type), std::move(values));
}

void Names::learn(const Format& format, Kernel& kernel) {
  auto ask = [&](std::string_view type) {
    if (!type.empty() && !enums_.contains(type)) learn(type, kernel.enumerators(type));
  };
  ask(format.type);
  if (format.kind == Format::pointer || format.kind == Format::symbol) ask_hidden();
  if (format.kind == Format::symbol && !symbols_) symbols_ = std::make_unique<KernelSymbols>();
  if (format.kind == Format::block_flags || format.kind == Format::rwbs) {
    for (auto* type : kOperationEnums) ask(type);
    ask("req_flag_bits");
  }
  if (format.kind == Format::gfp && !enums_.contains(kGfpBits))
    learn(kGfpBits, kernel.enumerators_beside("___GFP_DMA_BIT"));
}

const Names::Enumerators& Names::values_of(std::string_view type) const {
  static const Enumerators kNone;
  auto known = enums_.find(type);
  return known == enums_.end() ? kNone : known->second;
}

std::string Names::enumerator(const Format& format, std::uint64_t value) const {
  for (auto& [name, number] : values_of(format.type))
    if (static_cast<std::uint64_t>(number) == value) return lower(without(format.prefix, name));
  return std::to_string(value);
}

std::string Names::gfp(std::uint64_t flags) const {
  std::vector<std::pair<std::string_view, std::uint64_t>> bits;
  for (auto& [name, bit] : values_of(kGfpBits)) {
    std::string_view word = name;  // ___GFP_DMA32_BIT
    if (word.starts_with("___GFP_") && word.ends_with("_BIT") && !word.ends_with("_LAST_BIT"))
      bits.emplace_back(word.substr(7, word.size() - 11), 1ULL << bit);
  }
  if (values_of(kGfpBits).empty())
    for (std::size_t i = 0; i < std::size(kOldGfp); i++) bits.emplace_back(kOldGfp[i], 1ULL << i);
  std::string text;
  auto rest = flags;
  auto bit_of = [&](std::string_view flag) {
    auto known = std::ranges::find(bits, flag, [](auto& b) { return b.first; });
    return known == bits.end() ? 0 : known->second;
  };
  for (auto [set, flags_of_set] : kGfpSets) {
    std::uint64_t mask = 0;
    bool complete = true;
    while (!flags_of_set.empty()) {
      auto bit = bit_of(take_until(flags_of_set, ' '));
      complete &= bit != 0;
      mask |= bit;
    }
    if (!complete || (rest & mask) != mask) continue;
    text = set;
    rest &= ~mask;
    // Until 6.2 GFP_ATOMIC had an additional flag (2973d8229b78).
    if (set == "GFP_ATOMIC") rest &= ~bit_of("ATOMIC");
    break;
  }
  for (auto& [name, bit] : bits)
    if (rest & bit) {
      join(text, fmt::format("__GFP_{}", name), '|');
      rest &= ~bit;
    }
  if (rest || text.empty()) join(text, fmt::format("{:#x}", rest), '|');
  return text;
}

bool Names::has_flag(std::uint64_t flags, std::string_view flag) const {
  for (auto& [name, bit] : values_of("req_flag_bits"))
    if (name.starts_with(kFlag) && without(kFlag, name) == flag)
      return bit >= kOpBits && bit < 63 && (flags >> bit & 1) != 0;
  return false;
}

std::string_view Names::operation(std::uint64_t flags) const {
  for (auto* type : kOperationEnums)
    for (auto& [name, op] : values_of(type))
      if (static_cast<std::uint64_t>(op) == (flags & ((1 << kOpBits) - 1)))
        return without("REQ_OP_", name);
  return {};
}

std::string Names::block_flags(std::uint64_t flags) const {
  std::string text;
  auto rest = flags >> kOpBits;
  const bool read_ahead = has_flag(flags, "RAHEAD");
  for (auto& [name, bit] : values_of("req_flag_bits")) {
    if (!name.starts_with(kFlag) || name == "__REQ_NR_BITS" || bit < kOpBits || bit > 62) continue;
    auto mask = 1ULL << (bit - kOpBits);
    if (!(rest & mask)) continue;  // not set, or an alias of a bit already named
    rest &= ~mask;
    // The block layer sets FAILFAST on all read-ahead: redundant.
    auto word = without(kFlag, name);
    if (!read_ahead || !word.starts_with("FAILFAST"))
      text = text.empty() ? camel(word) : camel(word) + '-' + text;
  }
  // The usual order: the highest flag first, the operation last.
  if (rest) text = fmt::format("{:#x}{}{}", rest << kOpBits, text.empty() ? "" : "-", text);
  auto op = operation(flags);
  join(text, op.empty() ? fmt::format("Op{}", flags & ((1 << kOpBits) - 1)) : camel(op), '-');
  return text;
}

std::string_view restart_name(int error) {
  constexpr std::pair<int, std::string_view> kRestarts[] = {{512, "ERESTARTSYS"},
                                                            {513, "ERESTARTNOINTR"},
                                                            {514, "ERESTARTNOHAND"},
                                                            {516, "ERESTART_RESTARTBLOCK"}};
  for (auto& [number, name] : kRestarts)
    if (error == number) return name;
  return {};
}

std::string error_name(int error) {
  if (error == 0) return "0";
  if (error == std::numeric_limits<int>::min()) return std::to_string(error);
  if (auto name = restart_name(std::abs(error)); !name.empty()) return std::string(name);
  auto* name = strerrorname_np(std::abs(error));
  return name ? name : std::to_string(error);
}

std::optional<int> error_number(std::string_view text) {
  constexpr int kMost = 4095;  // MAX_ERRNO of the kernel
  if (auto number = parse_unsigned(text))
    return *number >= 1 && *number <= kMost ? std::optional(static_cast<int>(*number))
                                            : std::nullopt;
  auto name = upper_case(text);
  constexpr std::pair<std::string_view, int> kOtherNames[] = {
      {"EWOULDBLOCK", EWOULDBLOCK}, {"EDEADLOCK", EDEADLOCK}, {"ENOTSUP", ENOTSUP}};
  for (auto& [other, number] : kOtherNames)
    if (other == name) return number;
  for (int number = 1; number <= kMost; number++)
    if (auto* known = strerrorname_np(number); known && name == known) return number;
  return std::nullopt;
}

std::string Names::rwbs(std::uint64_t flags) const {
  auto* known = std::ranges::find(kOperations, operation(flags), &Letters::name);
  std::string text(has_flag(flags, "PREFLUSH") ? "F" : "");
  text += known == std::end(kOperations) ? "N" : known->letters;
  for (auto& [flag, letters] : kFlags)
    if (has_flag(flags, flag)) text += letters;
  return text;
}

bool names_things(const Format& format) {
  switch (format.kind) {
    case Format::disk:
    case Format::enumerator:
    case Format::symbol:
    case Format::gfp:
    case Format::block_flags:
    case Format::rwbs:
    case Format::error:
    case Format::syscall:
    case Format::target:
      return true;
    default:
      return false;
  }
}

Names::Names() : why_hidden([] { return kernel_addresses_hidden(); }) {}

bool Names::hides(std::uint64_t address) const {
  if (!(address >> 63)) return false;  // a user address
  ask_hidden();
  auto& why = *hidden_;
  if (why && tell_hidden && !std::exchange(told_, true)) tell_hidden(*why);
  return why.has_value();
}

void Names::ask_hidden() const {
  if (!hidden_) hidden_ = why_hidden();
}

std::string Names::symbol(std::uint64_t address) const {
  if (!address) return "-";
  auto found = symbols_ ? symbols_->find(address) : Symbol{};
  if (found.known()) return found.name;
  return hides(address) ? std::string(kHiddenAddress) : fmt::format("{:#x}", address);
}

std::string Names::name(const Format& format, std::uint64_t value) const {
  switch (format.kind) {
    case Format::disk:
      return value ? disk_name(static_cast<std::uint32_t>(value)) : "-";
    case Format::enumerator:
      return enumerator(format, value);
    case Format::gfp:
      return gfp(value);
    case Format::block_flags:
      return block_flags(value);
    case Format::rwbs:
      return rwbs(value);
    case Format::symbol:
      return symbol(value);
    case Format::error:
      return error_name(static_cast<int>(value));
    case Format::syscall:
      return syscall_name(static_cast<std::uint32_t>(value));
    case Format::target:
      return value < targets.size() ? targets[value] : fmt::format("[{}]", value);
    default:
      return std::to_string(value);
  }
}

namespace {

/// Numbers do not use a format string: lines of frequent events must be cheap.
void decimal(std::string& line, std::uint64_t value) {
  fmt::format_int text(value);
  line.append(text.data(), text.size());
}

/// `value` divided by 10^zeros, with `digits` decimals; halves are rounded to even, as printf()
/// does.
void decimal_fraction(std::string& line, std::uint64_t value, int zeros, int digits) {
  std::uint64_t dropped = 1, part = 1;
  for (int i = digits; i < zeros; i++) dropped *= 10;
  for (int i = 0; i < std::min(digits, zeros); i++) part *= 10;
  auto rest = value % dropped;
  value /= dropped;
  value += rest * 2 > dropped || (rest * 2 == dropped && value % 2);
  decimal(line, value / part);
  if (digits <= 0) return;
  line += '.';
  fmt::format_int shown(value % part + part);  // a one before leading zeros
  line.append(shown.data() + 1, shown.size() - 1);
  line.append(static_cast<std::size_t>(std::max(0, digits - zeros)), '0');
}

void show_unsigned(std::string& line, const Format& format, std::uint64_t n, const Names& names) {
  auto out = std::back_inserter(line);
  if (names_things(format)) {
    append_printable(line, names.name(format, n));
    // Two tables use the same name for different calls.
    if (format.kind == Format::syscall && n >= CALLS_COMPAT)
      fmt::format_to(out, " ({})", syscall_abi(static_cast<std::uint32_t>(n)));
  } else if (format.kind == Format::milliseconds)
    decimal_fraction(line, n, 6, format.digits);
  else if (format.kind == Format::microseconds)
    decimal_fraction(line, n, 3, format.digits);
  else if (format.kind == Format::octal)
    fmt::format_to(out, "{:0{}o}", n, format.digits);
  else if (hidden(format, n, names))
    line += kHiddenAddress;
  else if (format.kind == Format::pointer)
    fmt::format_to(out, "{:#x}", n);
  else if (format.kind == Format::kilobytes)
    decimal(line, n / 1024);
  else
    decimal(line, n);
}

void show_signed(std::string& line, const Format& format, std::int64_t n, const Names& names) {
  if (names_things(format)) {
    line += names.name(format, static_cast<std::uint64_t>(n));
  } else if (format.kind == Format::thousandths) {
    fmt::format_to(std::back_inserter(line), "{:.3f}", static_cast<double>(n) / 1e3);
  } else {
    if (n < 0) line += '-';
    decimal(line, n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n));
  }
}

bool ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return c & 0x80; });
}

}  // namespace

void show(std::string& line, const Format& format, const Value& value, const Names& names) {
  auto begin = line.size();
  if (auto* n = std::get_if<std::uint64_t>(&value))
    show_unsigned(line, format, *n, names);
  else if (auto* i = std::get_if<std::int64_t>(&value))
    show_signed(line, format, *i, names);
  else if (auto* d = std::get_if<double>(&value))
    line += fmt::format("{:.2f}", format.kind == Format::percent ? *d * 100 : *d);
  else if (auto* s = std::get_if<std::string>(&value))
    append_printable(line, *s);
  else if (auto* b = std::get_if<bool>(&value))
    line += *b ? "yes" : "no";
  else if (auto* frames = std::get_if<Frames>(&value))
    line += folded(*frames);
  else if (auto* words = std::get_if<TextList>(&value))
    append_printable(line, words->line);
  else
    line += '-';
  auto wanted = static_cast<std::size_t>(std::abs(format.width));
  auto is = line.size() - begin;
  if (!ascii(std::string_view(line).substr(begin))) {
    auto text = line.substr(begin);  // a character may take no column, or two
    line.resize(begin);
    line += format.width < 0 ? fmt::format("{:<{}}", text, wanted)
                             : fmt::format("{:>{}}", text, wanted);
  } else if (is < wanted && format.width < 0) {
    line.append(wanted - is, ' ');
  } else if (is < wanted) {
    line.insert(begin, wanted - is, ' ');
  }
}

std::string show(const Format& format, const Value& value, const Names& names) {
  std::string text;
  show(text, format, value, names);
  return text;
}

std::string folded(const Frames& frames, std::string before) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    before += (before.empty() ? "" : ";") + folded_word(*frame);
  return before;
}

std::string frame_line(std::string_view frame) { return "        " + printable(frame); }

}  // namespace coretap
