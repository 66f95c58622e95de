#include "expression/dwarf.hpp"

#include <fmt/format.h>

#ifdef CORETAP_STATIC

namespace coretap::expression {

Result<UserFunction> user_function(int, std::uint64_t, const std::string&) {
  return Error{"the static executable reads no debug information"};
}

}  // namespace coretap::expression

#else

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/machine.hpp"
#include "base/read_failures.hpp"
#include "coretap/fd.hpp"
#include "expression/debug_sections.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/process_files.hpp"

namespace coretap::expression {

namespace {

constexpr std::size_t kMostMembers = 1 << 16;  // of one record, including its inner records
constexpr std::size_t kMostEntries = 1 << 22;  // visited in one search
constexpr std::size_t kMostNameBytes = 4096;
constexpr std::size_t kMostParameters = 256;
constexpr std::uint64_t kMostOffset = 1U << 27;  // offset of a member, in bytes
// libdw allocates a kilobyte for each unit, and for each unit all of its abbreviations: units may
// share these, so that a small file could use all memory. Each entry takes as many steps as its
// abbreviation has attributes.
constexpr std::size_t kMostUnits = 1 << 18;
constexpr std::uint64_t kMostAbbreviations = 128 << 20;  // bytes, all units together
constexpr std::size_t kMostAttributes = 128;
constexpr std::int64_t kMostSeconds = 10;  // CPU time of this thread, for searches in one file

constexpr auto& kRegisters = machine::kArguments;
constexpr std::size_t kInRegisters = kRegisters.size();

/// Address of a library function.
struct Symbol {
  void* address;
  template <class Function>
  operator Function*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Function*>(address);
  }
};

/// The functions used from libdw.
struct Library {
  void* handle = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  std::string error = handle ? "" : ::dlerror();
  bool complete = handle != nullptr;

  decltype(&::dwarf_begin_elf) dwarf_begin_elf = find("dwarf_begin_elf");
  decltype(&::dwarf_end) dwarf_end = find("dwarf_end");
  decltype(&::dwarf_setalt) dwarf_setalt = find("dwarf_setalt");
  decltype(&::dwarf_next_unit) dwarf_next_unit = find("dwarf_next_unit");
  decltype(&::dwarf_cu_info) dwarf_cu_info = find("dwarf_cu_info");
  decltype(&::dwarf_offdie) dwarf_offdie = find("dwarf_offdie");
  decltype(&::dwarf_offdie_types) dwarf_offdie_types = find("dwarf_offdie_types");
  decltype(&::dwarf_addrdie) dwarf_addrdie = find("dwarf_addrdie");
  decltype(&::dwarf_child) dwarf_child = find("dwarf_child");
  decltype(&::dwarf_siblingof) dwarf_siblingof = find("dwarf_siblingof");
  decltype(&::dwarf_tag) dwarf_tag = find("dwarf_tag");
  decltype(&::dwarf_diename) dwarf_diename = find("dwarf_diename");
  decltype(&::dwarf_attr) dwarf_attr = find("dwarf_attr");
  decltype(&::dwarf_whatform) dwarf_whatform = find("dwarf_whatform");
  decltype(&::dwarf_formblock) dwarf_formblock = find("dwarf_formblock");
  decltype(&::dwarf_ranges) dwarf_ranges = find("dwarf_ranges");
  decltype(&::dwarf_lowpc) dwarf_lowpc = find("dwarf_lowpc");
  decltype(&::dwarf_attr_integrate) dwarf_attr_integrate = find("dwarf_attr_integrate");
  decltype(&::dwarf_formudata) dwarf_formudata = find("dwarf_formudata");
  decltype(&::dwarf_formsdata) dwarf_formsdata = find("dwarf_formsdata");
  decltype(&::dwarf_formref_die) dwarf_formref_die = find("dwarf_formref_die");
  decltype(&::dwarf_formflag) dwarf_formflag = find("dwarf_formflag");
  decltype(&::dwarf_hasattr) dwarf_hasattr = find("dwarf_hasattr");
  decltype(&::dwarf_bytesize) dwarf_bytesize = find("dwarf_bytesize");
  decltype(&::dwarf_entrypc) dwarf_entrypc = find("dwarf_entrypc");
  decltype(&::dwarf_haspc) dwarf_haspc = find("dwarf_haspc");

 private:
  Symbol find(const char* name) {
    void* address = handle ? ::dlsym(handle, name) : nullptr;
    complete = complete && address;
    return {address};
  }
};

const Library& libdw() {
  static const Library library;
  return library;
}

struct DwarfCloser {
  void operator()(Dwarf* dwarf) const { libdw().dwarf_end(dwarf); }
};

/// The sections that libdw reads, and its handle.
struct Opened {
  DebugSections sections;
  std::unique_ptr<Dwarf, DwarfCloser> dwarf = {};
};

std::int64_t thread_time_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::string_view name_of(Dwarf_Die& die) {
  auto* name = libdw().dwarf_diename(&die);
  return name ? std::string_view(name, ::strnlen(name, kMostNameBytes)) : "";
}

std::optional<std::uint64_t> number(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (!libdw().dwarf_attr_integrate(&die, name, &attribute) ||
      libdw().dwarf_formudata(&attribute, &value) != 0)
    return {};
  return value;
}

/// Forms of a fixed size have no sign: compilers write negative numbers as sdata.
std::optional<std::int64_t> constant(Dwarf_Attribute& attribute) {
  const auto form = libdw().dwarf_whatform(&attribute);
  Dwarf_Sword value = 0;
  Dwarf_Word number = 0;
  if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
    if (libdw().dwarf_formsdata(&attribute, &value) != 0) return {};
    return value;
  }
  if (libdw().dwarf_formudata(&attribute, &number) != 0) return {};
  return static_cast<std::int64_t>(number);
}

bool flag(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  bool value = false;
  return libdw().dwarf_attr(&die, name, &attribute) &&
         libdw().dwarf_formflag(&attribute, &value) == 0 && value;
}

std::optional<Dwarf_Die> reference(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Die target;
  if (!libdw().dwarf_attr_integrate(&die, name, &attribute) ||
      !libdw().dwarf_formref_die(&attribute, &target))
    return {};
  return target;
}

/// Resolves a reference to a type in a separate unit (-fdebug-types-section).
Dwarf_Die type_itself(Dwarf_Die die) {
  return libdw().dwarf_hasattr(&die, DW_AT_signature)
             ? reference(die, DW_AT_signature).value_or(die)
             : die;
}

/// The type without typedefs and qualifiers; nullopt: void. (dwarf_peel_type() follows cycles of
/// damaged files.)
std::optional<Dwarf_Die> plain_type(Dwarf_Die die) {
  for (int i = 0; i < kDeepest; i++) {
    die = type_itself(die);
    switch (libdw().dwarf_tag(&die)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type:
        break;
      default:
        return die;
    }
    auto next = reference(die, DW_AT_type);
    if (!next) return {};
    die = *next;
  }
  return {};
}

/// Calls `visit` with each direct child until it returns true.
template <class Visit>
bool children(Dwarf_Die& parent, Visit visit) {
  Dwarf_Die die;
  if (libdw().dwarf_child(&parent, &die) != 0) return false;
  for (std::size_t n = 0; n < kMostEntries; n++) {
    if (visit(die)) return true;
    Dwarf_Die next;
    if (libdw().dwarf_siblingof(&die, &next) != 0) return false;
    die = next;
  }
  return false;
}

struct Unit {
  Dwarf_Off entry = 0;          ///< offset of its first entry
  Dwarf_Off next = 0;           ///< offset of the next unit
  Dwarf_Off abbreviations = 0;  ///< offset of their table
  bool of_types = false;        ///< in .debug_types
};

/// Calls `visit` with each unit until it returns true. True: it did, or the file is damaged.
template <class Visit>
bool each_unit(Dwarf* dwarf, Visit visit) {
  for (bool types : {false, true}) {
    Unit unit{.of_types = types};
    Dwarf_Off at = 0, type = 0;
    std::size_t header = 0;
    std::uint64_t signature = 0;
    while (libdw().dwarf_next_unit(dwarf, at, &unit.next, &header, nullptr, &unit.abbreviations,
                                   nullptr, nullptr, types ? &signature : nullptr,
                                   types ? &type : nullptr) == 0) {
      unit.entry = at + header;
      if (unit.next <= at || visit(unit)) return true;
      at = unit.next;
    }
  }
  return false;
}

Bytes bytes_of(std::string_view text) {
  return Bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

/// The expression in an attribute; empty: it has none.
Bytes block(Dwarf_Attribute& attribute) {
  Dwarf_Block bytes;
  if (libdw().dwarf_formblock(&attribute, &bytes) != 0) return Bytes({});
  return Bytes({bytes.data, bytes.length});
}

/// Offset in bytes in the record; nullopt: known only at run time (virtual base classes), or too
/// large.
std::optional<std::uint32_t> member_offset(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (!libdw().dwarf_attr_integrate(&die, DW_AT_data_member_location, &attribute)) return 0;
  if (libdw().dwarf_formudata(&attribute, &value) != 0) {
    // In DWARF 2 and 3 an expression: add a constant.
    auto bytes = block(attribute);
    if (bytes.u8() != DW_OP_plus_uconst) return {};
    value = bytes.uleb();
    if (!bytes.ok() || !bytes.at_end()) return {};
  }
  if (value > kMostOffset) return {};
  return static_cast<std::uint32_t>(value);
}

bool is_record(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/// True if the code of a function starts at this address.
bool starts_at(Dwarf_Die& die, std::uint64_t address) {
  Dwarf_Addr start = 0, base = 0, end = 0;
  if (libdw().dwarf_entrypc(&die, &start) == 0) return start == address;
  // The function has several ranges: unlikely code may be elsewhere, in a range after the first.
  return libdw().dwarf_hasattr(&die, DW_AT_ranges) &&
         libdw().dwarf_ranges(&die, 0, &base, &start, &end) > 0 && start == address;
}

/// Open debug information. Entries (DIEs) point into it.
class File final : public NamedTypes, public std::enable_shared_from_this<File> {
 public:
  File(Opened own, std::optional<Opened> alternate)
      : alternate_(std::move(alternate)), own_(std::move(own)), dwarf_(own_.dwarf.get()) {
    if (alternate_) libdw().dwarf_setalt(dwarf_, alternate_->dwarf.get());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string_view section(std::string_view name) const { return own_.sections.section(name); }

  TypePtr named(std::string_view name) const override {
    auto die = find_type(name);
    return die ? of(*die) : nullptr;
  }

  std::optional<std::int64_t> enumerator(std::string_view name) const override {
    std::optional<std::int64_t> found;
    each([&](Dwarf_Die& die) {
      if (libdw().dwarf_tag(&die) != DW_TAG_enumeration_type) return false;
      return children(die, [&](Dwarf_Die& one) {
        Dwarf_Attribute attribute;
        if (name_of(one) != name || !libdw().dwarf_attr(&one, DW_AT_const_value, &attribute))
          return false;
        found = constant(attribute);
        return found.has_value();
      });
    });
    return found;
  }

  std::vector<std::string> records() const override {
    std::vector<std::string> all;
    each([&](Dwarf_Die& die) {
      const int tag = libdw().dwarf_tag(&die);
      if (auto name = is_record(tag) ? name_of(die) : ""; !name.empty())
        all.push_back(fmt::format("{} {}", tag == DW_TAG_union_type ? "union" : "struct", name));
      return all.size() >= kMostNames;
    });
    return all;
  }

  TypePtr of(Dwarf_Die die, int depth = 0) const;

  /// The type that an entry refers to; void if it refers to none.
  TypePtr type_of(Dwarf_Die& die, int depth = 0) const {
    auto type = reference(die, DW_AT_type);
    return type ? of(*type, depth + 1) : nothing();
  }

  std::optional<Dwarf_Die> function_at(std::uint64_t address) const {
    std::optional<Dwarf_Die> found;
    auto visit = [&](Dwarf_Die& die) {
      if (libdw().dwarf_tag(&die) != DW_TAG_subprogram || !starts_at(die, address)) return false;
      found = die;
      return true;
    };
    std::size_t left = kMostEntries;
    Dwarf_Die unit;
    if (const Search search(*this);
        libdw().dwarf_addrdie(dwarf_, address, &unit) && each_below(unit, 0, left, visit) && found)
      return found;
    // Clang does not write .debug_aranges.
    each_unit_entry([&](Dwarf_Die& one) {
      return libdw().dwarf_haspc(&one, address) > 0 && each_below(one, 0, left, visit);
    });
    return found;
  }

  /// True if the unit with this code only refers to a separate file (-gsplit-dwarf).
  bool is_split(std::uint64_t address) const {
    bool split = false;
    each_unit_entry([&](Dwarf_Die& unit) {
      split = (libdw().dwarf_hasattr(&unit, DW_AT_dwo_name) ||
               libdw().dwarf_hasattr(&unit, DW_AT_GNU_dwo_name)) &&
              libdw().dwarf_haspc(&unit, address) > 0;
      return split;
    });
    return split;
  }

  /// The definition of a struct or union of which `type` is only a declaration.
  std::optional<Dwarf_Die> definition(Dwarf_Die type) const {
    auto die = plain_type(type);
    const int tag = die ? libdw().dwarf_tag(&*die) : 0;
    if (!is_record(tag)) return {};
    if (!flag(*die, DW_AT_declaration)) return die;
    return find_type(
        fmt::format("{} {}", tag == DW_TAG_union_type ? "union" : "struct", name_of(*die)));
  }

 private:
  /// Adds a search's time to the file's total.
  struct Search {
    explicit Search(const File& searched) : file(searched) {
      file.started_ns_ = thread_time_ns() - file.used_ns_;
    }
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;
    ~Search() { file.used_ns_ = thread_time_ns() - file.started_ns_; }
    const File& file;
  };

  /// False if the time is used up: hostile files can make searches long and require many.
  bool is_time_left() const {
    constexpr std::size_t kBetween = 256;  // steps between readings of the clock
    if (steps_++ % kBetween == 0) used_ns_ = thread_time_ns() - started_ns_;
    return used_ns_ < kMostSeconds * 1'000'000'000;
  }

  template <class Visit>
  bool each_below(Dwarf_Die& parent, int depth, std::size_t& left, Visit& visit) const {
    return children(parent, [&](Dwarf_Die& die) {
      if (left == 0 || !is_time_left()) {
        left = 0;
        return true;
      }
      left--;
      if (visit(die)) return true;
      const int tag = libdw().dwarf_tag(&die);
      return depth < kDeepest && (tag == DW_TAG_namespace || is_record(tag)) &&
             each_below(die, depth + 1, left, visit);
    });
  }

  /// Calls `visit` with all units' entries, those in namespaces too, until it returns true.
  template <class Visit>
  void each(Visit visit) const {
    std::size_t left = kMostEntries;
    each_unit_entry([&](Dwarf_Die& unit) { return each_below(unit, 0, left, visit) || left == 0; });
  }

  /// Calls `visit` with the entry of each unit until it returns true.
  template <class Visit>
  void each_unit_entry(Visit visit) const {
    const Search search(*this);
    each_unit(dwarf_, [&](const Unit& unit) {
      if (!is_time_left()) return true;
      Dwarf_Die die;
      auto* known = unit.of_types ? libdw().dwarf_offdie_types(dwarf_, unit.entry, &die)
                                  : libdw().dwarf_offdie(dwarf_, unit.entry, &die);
      return known && visit(die);
    });
  }

  std::optional<Dwarf_Die> find_type(std::string_view name) const {
    if (auto known = found_.find(name); known != found_.end()) return known->second;
    auto found = search_type(name);
    if (found_.size() < kMostNames) found_.emplace(name, found);
    return found;
  }

  /// "struct request", "enum state", or the name of a typedef or of a C++ class.
  std::optional<Dwarf_Die> search_type(std::string_view name) const {
    auto word = name.substr(name.rfind(' ') + 1);
    const auto kind = word.size() < name.size() ? name.substr(0, name.find(' ')) : "";
    std::optional<Dwarf_Die> found;
    each([&](Dwarf_Die& die) {
      const int tag = libdw().dwarf_tag(&die);
      const bool is_struct = tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
      const bool wanted = kind == "struct"  ? is_struct
                          : kind == "union" ? tag == DW_TAG_union_type
                          : kind == "enum"  ? tag == DW_TAG_enumeration_type
                                            : tag == DW_TAG_typedef || is_struct;
      if (!wanted || flag(die, DW_AT_declaration) || name_of(die) != word) return false;
      found = die;
      return true;
    });
    return found;
  }

  std::optional<Opened> alternate_;  // declared first: destroyed after own_, which refers to it
  Opened own_;
  Dwarf* dwarf_;
  mutable std::size_t steps_ = 0;
  mutable std::int64_t started_ns_ = 0, used_ns_ = 0;
  mutable std::map<std::string, std::optional<Dwarf_Die>, std::less<>> found_;
};

/// Members of a struct, union or class, including base classes.
class DwarfMembers final : public Members {
 public:
  DwarfMembers(std::shared_ptr<const File> file, Dwarf_Die die)
      : file_(std::move(file)), die_(die) {}

  void each(const Visit& visit) const override {
    struct Inside {
      Dwarf_Die die;
      std::uint32_t bit;
    };
    std::vector<Inside> inside{{die_, 0}};
    std::size_t left = kMostMembers;
    for (std::size_t at = 0; at < inside.size(); at++) {
      Dwarf_Die record = inside[at].die;
      const auto bit = inside[at].bit;
      if (auto whole = file_->definition(record)) record = *whole;
      const bool ended = children(record, [&](Dwarf_Die& die) {
        if (left-- == 0) return true;
        const int tag = libdw().dwarf_tag(&die);
        if (tag != DW_TAG_member && tag != DW_TAG_inheritance) return false;
        if (flag(die, DW_AT_external)) return false;  // a static member before DWARF 5
        if (tag == DW_TAG_member && !name_of(die).empty())
          return visit(name_of(die), [&] { return member(die, bit); });
        auto type = reference(die, DW_AT_type);
        auto offset = member_offset(die);
        if (type && offset && bit + *offset * 8 <= kMostOffset * 8 && inside.size() < kMostInside)
          inside.push_back({*type, bit + *offset * 8});
        return false;
      });
      if (ended) return;
    }
  }

 private:
  std::optional<Member> member(Dwarf_Die& die, std::uint32_t bit) const {
    Member m;
    m.type = file_->type_of(die);
    const auto bits = number(die, DW_AT_bit_size).value_or(0);
    const auto offset = member_offset(die);
    if (!offset || bits > 64) return {};
    auto at = std::uint64_t{bit};
    if (auto whole = number(die, DW_AT_data_bit_offset)) {
      if (*whole > kMostOffset * 8) return {};
      at += *whole;
    } else {
      at += std::uint64_t{*offset} * 8;
      // In DWARF 2 and 3 counted from the highest bit of the storage unit. Negative: a packed field
      // that ends behind the unit.
      Dwarf_Attribute from_top;
      if (bits && libdw().dwarf_attr_integrate(&die, DW_AT_bit_offset, &from_top)) {
        const auto from = constant(from_top);
        const auto holds = number(die, DW_AT_byte_size).value_or(m.type->bytes);
        const auto behind = static_cast<std::int64_t>(holds * 8) - from.value_or(0) -
                            static_cast<std::int64_t>(bits);
        if (!from || holds > 16 || *from > 128 || *from < -128 || behind < 0) return {};
        at += static_cast<std::uint64_t>(behind);
      }
    }
    if (at > kMostOffset * 8) return {};
    m.bit = static_cast<std::uint32_t>(at);
    m.bits = static_cast<std::uint32_t>(bits);
    return m;
  }

  std::shared_ptr<const File> file_;
  Dwarf_Die die_;
};

std::uint32_t array_count(Dwarf_Die& range) {
  auto count = number(range, DW_AT_count);
  if (!count)
    if (auto last = number(range, DW_AT_upper_bound); last && *last < (1U << 30)) count = *last + 1;
  return count && *count < (1U << 30) ? static_cast<std::uint32_t>(*count) : 0;
}

bool is_floating(Dwarf_Word encoding) {
  return encoding == DW_ATE_float || encoding == DW_ATE_complex_float ||
         encoding == DW_ATE_imaginary_float || encoding == DW_ATE_decimal_float;
}

/// A type that expressions cannot read.
TypePtr without_values(std::string name) {
  auto none = *nothing();
  none.name = std::move(name);
  return std::make_shared<const Type>(std::move(none));
}

TypePtr File::of(Dwarf_Die die, int depth) const {
  if (depth > kDeepest) return nothing();
  die = type_itself(die);
  const auto name = std::string(name_of(die));
  const auto size = libdw().dwarf_bytesize(&die);
  switch (libdw().dwarf_tag(&die)) {
    case DW_TAG_base_type: {
      const auto encoding = number(die, DW_AT_encoding).value_or(0);
      if (size < 1 || size > 8 || is_floating(encoding)) return without_values(name);
      Type t{Type::integer, name, static_cast<std::uint32_t>(size),
             encoding == DW_ATE_signed || encoding == DW_ATE_signed_char,
             encoding == DW_ATE_boolean};
      t.character = name == "char";
      return std::make_shared<const Type>(std::move(t));
    }
    case DW_TAG_enumeration_type: {
      if (size < 1 || size > 8) return nothing();
      auto under = libdw().dwarf_hasattr(&die, DW_AT_type) ? type_of(die, depth) : nullptr;
      return std::make_shared<const Type>(Type{Type::integer, "enum " + name,
                                               static_cast<std::uint32_t>(size),
                                               !under || under->is_signed});
    }
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      return pointer_to(type_of(die, depth), true);
    case DW_TAG_array_type: {
      std::vector<std::uint32_t> counts;
      children(die, [&](Dwarf_Die& range) {
        if (libdw().dwarf_tag(&range) == DW_TAG_subrange_type) counts.push_back(array_count(range));
        return counts.size() >= kDeepest;
      });
      auto element = type_of(die, depth);
      for (auto count = counts.rbegin(); count != counts.rend(); ++count)
        element = array_of(std::move(element), *count);
      return element;
    }
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type: {
      auto whole = definition(die).value_or(die);
      Type t{Type::record,
             (libdw().dwarf_tag(&die) == DW_TAG_union_type ? "union " : "struct ") + name,
             static_cast<std::uint32_t>(std::max(0, libdw().dwarf_bytesize(&whole)))};
      t.members = std::make_shared<const DwarfMembers>(shared_from_this(), whole);
      return std::make_shared<const Type>(std::move(t));
    }
    case DW_TAG_typedef:
    case DW_TAG_const_type:
    case DW_TAG_volatile_type:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
    case DW_TAG_subrange_type:
      return type_of(die, depth);
    case DW_TAG_ptr_to_member_type:
      return without_values("a pointer to a member");
    default:
      return nothing();
  }
}

/// Size in bytes of the abbreviation table at the front; nullopt: one has too many attributes.
std::optional<std::uint64_t> table_size(std::string_view section, std::uint64_t most) {
  auto bytes = bytes_of(section.substr(0, most));
  const auto all = bytes.left();
  while (bytes.uleb() != 0) {
    bytes.uleb();
    bytes.u8();
    for (std::size_t n = 0; !bytes.at_end(); n++) {
      const auto name = bytes.uleb(), form = bytes.uleb();
      if (form == DW_FORM_implicit_const) bytes.uleb();
      if (!name && !form) break;
      if (n >= kMostAttributes) return {};
    }
  }
  return all - bytes.left();
}

/// Fails if the file has no units, or more than libdw can handle in bounded memory.
Result<void> bounded(const Opened& file) {
  const auto abbreviations = file.sections.section(".debug_abbrev");
  const Error beyond{"the file's debug information has more than any compiler writes"};
  std::map<std::uint64_t, std::uint64_t> sizes;
  std::size_t units = 0;
  std::uint64_t bytes = 0;
  const bool too_much = each_unit(file.dwarf.get(), [&](const Unit& unit) {
    if (++units > kMostUnits) return true;
    if (unit.abbreviations >= abbreviations.size()) return false;
    auto known = sizes.find(unit.abbreviations);
    if (known == sizes.end()) {
      const auto size = table_size(abbreviations.substr(unit.abbreviations), kMostAbbreviations);
      if (!size) return true;
      known = sizes.emplace(unit.abbreviations, *size).first;
    }
    return (bytes += known->second) > kMostAbbreviations;
  });
  if (too_much) return beyond;
  if (!units) return Error{"the file has no debug information"};
  return {};
}

Result<Opened> open_sections(int fd, bool relocatable = false) {
  auto sections = DebugSections::read(fd, relocatable);
  if (!sections) return sections.error();
  Opened file{std::move(*sections)};
  file.dwarf.reset(libdw().dwarf_begin_elf(file.sections.elf(), DWARF_C_READ, nullptr));
  if (!file.dwarf) return Error{"the file has no debug information"};
  if (auto r = bounded(file); !r) return r.error();
  return file;
}

Fd open_debug_file(const std::string& path) {
  return symbols::open_regular(symbols::open_handle(path, true), symbols::kMaxElfSize);
}

/// Parts that several files share (dwz) may be in another file.
Result<std::optional<Opened>> open_alternate(const DebugSections& sections,
                                             const std::string& directory,
                                             const std::string& debug_root) {
  auto name = sections.alternate();
  if (name.empty()) return std::optional<Opened>();
  const auto& id = sections.alternate_id();
  if (!name.starts_with('/')) name = directory + "/" + name;
  for (auto& path : {symbols::build_id_path(debug_root, id), name}) {
    const auto file = path.empty() ? Fd() : open_debug_file(path);
    if (!file || id.empty() || symbols::build_id(file.get(), true) != id) continue;
    auto opened = open_sections(file.get(), true);
    if (opened && opened->sections.alternate().empty())
      return std::optional<Opened>(std::move(*opened));
  }
  return Error{fmt::format("the file's debug information needs {}, which is not here", name)};
}

std::string path_of(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
}

Result<std::shared_ptr<const File>> open_file(int fd, const std::string& debug_root) {
  auto own = open_sections(fd);
  if (!own) return own.error();
  const auto path = path_of(fd);
  auto alternate = open_alternate(own->sections, path.substr(0, path.rfind('/')), debug_root);
  if (!alternate) return alternate.error();
  return std::make_shared<const File>(std::move(*own), std::move(*alternate));
}

/// Opens debug information in the file, or in a separate file with its build id or its debuglink.
Result<std::shared_ptr<const File>> open_debug_information(int fd, const std::string& debug_root) {
  auto own = open_file(fd, debug_root);
  if (own) return own;
  const auto key = symbols::debug_file_key(fd);
  for (auto& path : key.paths(debug_root, path_of(fd))) {
    const auto file = open_debug_file(path);
    if (!file || symbols::identity_of(file.get()) == symbols::identity_of(fd) ||
        !key.is_of(file.get()))
      continue;
    auto separate = open_file(file.get(), debug_root);
    if (separate) return separate;
    own = separate.error();
  }
  return own;
}

/// Number of integer registers before the first parameter: one for the address of a large result.
std::size_t registers_of_result(const File& file, Dwarf_Die& function) {
  if (!machine::kResultIsArgument) return 0;
  auto type = reference(function, DW_AT_type);
  auto record = type ? file.definition(*type) : std::nullopt;
  if (!record) return 0;
  return libdw().dwarf_bytesize(&*record) > 16 ||
         number(*record, DW_AT_calling_convention) == DW_CC_pass_by_reference;
}

/// How a value of a type is passed.
enum class Passed {
  integer,   ///< in one register, or on the stack when all are used
  floating,  ///< not in an integer register
  unknown,   ///< in an unknown number of registers
};

Passed passed(Dwarf_Die type) {
  auto die = plain_type(type);
  switch (die ? libdw().dwarf_tag(&*die) : 0) {
    case DW_TAG_base_type:
      if (is_floating(number(*die, DW_AT_encoding).value_or(0))) return Passed::floating;
      return libdw().dwarf_bytesize(&*die) <= 8 ? Passed::integer : Passed::unknown;
    case DW_TAG_array_type:  // a vector
      return Passed::floating;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_unspecified_type:  // nullptr_t
      return Passed::integer;
    default:
      return Passed::unknown;
  }
}

/// Location of a parameter at function entry.
struct AtEntry {
  enum Place {
    nowhere,      ///< removed by the compiler
    constant,     ///< it has a constant value
    in_register,  ///< described in optimised code only
    memory,       ///< as declared: the function's prologue stores it there
    stack,
  } place = nowhere;
  std::uint64_t number = 0;  ///< register number
};

AtEntry at_entry_by(Bytes bytes, bool frame_is_cfa) {
  const auto whole = bytes;
  const auto operation = bytes.u8();
  if (!bytes.ok()) return {};
  if (operation >= DW_OP_reg0 && operation <= DW_OP_reg31 && bytes.at_end())
    return {AtEntry::in_register, static_cast<std::uint64_t>(operation - DW_OP_reg0)};
  if (operation == DW_OP_regx) return {AtEntry::in_register, bytes.uleb()};
  if (whole.position()[whole.left() - 1] == DW_OP_stack_value) return {};
  if (operation == DW_OP_fbreg)
    return {frame_is_cfa && bytes.sleb() >= 0 ? AtEntry::stack : AtEntry::memory};
  if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31) return {AtEntry::memory};
  return {};
}

/// The expression that is valid at this address, from an attribute's location list.
Bytes listed(const File& file, Dwarf_Die& die, Dwarf_Attribute& attribute, std::uint64_t address) {
  Dwarf_Half version = 0;
  std::uint8_t offset_size = 4;
  Dwarf_Die unit;
  if (!die.cu || libdw().dwarf_cu_info(die.cu, &version, nullptr, &unit, nullptr, nullptr, nullptr,
                                       &offset_size) != 0)
    return Bytes({});
  Dwarf_Addr base = 0;
  if (libdw().dwarf_lowpc(&unit, &base) != 0) base = 0;
  const auto section = file.section(version < 5 ? ".debug_loc" : ".debug_loclists");
  Dwarf_Word offset = 0;
  if (libdw().dwarf_whatform(&attribute) == DW_FORM_loclistx) {
    // Reading is safe: zeros follow the section.
    const auto index = Bytes({attribute.valp, 10}).uleb();
    const auto lists = number(unit, DW_AT_loclists_base).value_or(offset_size == 8 ? 20 : 12);
    if (lists > section.size() || index >= (section.size() - lists) / offset_size) return Bytes({});
    auto at = bytes_of(section.substr(lists + index * offset_size));
    offset = lists + (offset_size == 8 ? at.number<std::uint64_t>() : at.number<std::uint32_t>());
  } else if (libdw().dwarf_formudata(&attribute, &offset) != 0) {
    return Bytes({});
  }
  if (offset >= section.size()) return Bytes({});
  auto bytes = bytes_of(section.substr(offset));
  if (version < 5) {
    while (!bytes.at_end()) {
      const auto start = bytes.number<std::uint64_t>(), end = bytes.number<std::uint64_t>();
      if (!start && !end) break;
      if (start == UINT64_MAX) {
        base = end;
        continue;
      }
      const auto expression = bytes.take(bytes.number<std::uint16_t>());
      if (address >= base + start && address < base + end) return expression;
    }
    return Bytes({});
  }
  const auto addresses = file.section(".debug_addr");
  const auto first = number(unit, DW_AT_addr_base).value_or(8);
  auto indexed = [&](std::uint64_t index) -> std::uint64_t {
    if (first > addresses.size() || index >= (addresses.size() - first) / 8) return 0;
    return bytes_of(addresses.substr(first + index * 8)).number<std::uint64_t>();
  };
  while (!bytes.at_end()) {
    std::uint64_t start = 0, end = UINT64_MAX;
    switch (bytes.u8()) {
      case DW_LLE_base_addressx:
        base = indexed(bytes.uleb());
        continue;
      case DW_LLE_base_address:
        base = bytes.number<std::uint64_t>();
        continue;
      case DW_LLE_GNU_view_pair:
        bytes.uleb();
        bytes.uleb();
        continue;
      case DW_LLE_startx_endx:
        start = indexed(bytes.uleb());
        end = indexed(bytes.uleb());
        break;
      case DW_LLE_startx_length:
        start = indexed(bytes.uleb());
        end = start + bytes.uleb();
        break;
      case DW_LLE_offset_pair:
        start = base + bytes.uleb();
        end = base + bytes.uleb();
        break;
      case DW_LLE_default_location:
        break;
      case DW_LLE_start_end:
        start = bytes.number<std::uint64_t>();
        end = bytes.number<std::uint64_t>();
        break;
      case DW_LLE_start_length:
        start = bytes.number<std::uint64_t>();
        end = start + bytes.uleb();
        break;
      default:
        return Bytes({});
    }
    const auto expression = bytes.take(bytes.uleb());
    if (address >= start && address < end) return expression;
  }
  return Bytes({});
}

AtEntry at_entry(const File& file, Dwarf_Die& function, Dwarf_Die& die, std::uint64_t address) {
  Dwarf_Attribute attribute;
  if (!libdw().dwarf_attr(&die, DW_AT_location, &attribute))
    return {libdw().dwarf_hasattr(&die, DW_AT_const_value) ? AtEntry::constant : AtEntry::nowhere};
  auto expression = block(attribute);
  if (expression.at_end()) expression = listed(file, die, attribute, address);
  Dwarf_Attribute frame;
  const bool is_cfa = libdw().dwarf_attr_integrate(&function, DW_AT_frame_base, &frame) &&
                      block(frame).left() == 1 && block(frame).u8() == DW_OP_call_frame_cfa;
  return at_entry_by(expression, is_cfa);
}

struct Declared {
  std::string name;
  TypePtr type;
  Passed passed;
  AtEntry at;
};

/// In optimised code, debug information has the register of each parameter: the compiler may have
/// removed or reordered some. Other code follows the calling convention.
void place(UserFunction& f, const std::vector<Declared>& declared, std::size_t next) {
  const bool optimised =
      std::ranges::any_of(declared, [](auto& p) { return p.at.place == AtEntry::in_register; });
  bool lost = false;
  f.parameters.resize(next);
  auto put = [&](const Declared& p, std::size_t at) {
    if (f.parameters.size() <= at) f.parameters.resize(at + 1);
    f.parameters[at] = {p.name, p.type};
    if (p.type->kind == Type::nothing) f.parameters[at].type = untyped_register(false);
  };
  for (auto& p : declared) {
    std::string why;
    const auto known = std::ranges::find(kRegisters, p.at.number);
    if (p.type->kind == Type::record) {
      why = "it is a struct that is passed by value";
    } else if (p.passed != Passed::integer) {
      why = "it is no integer and no pointer";
    } else if (p.at.place == AtEntry::constant) {
      why = "the compiler has put a constant in its place";
    } else if (p.at.place == AtEntry::nowhere) {
      why = "the compiler has left it out";
    } else if (p.at.place == AtEntry::in_register) {
      if (known == kRegisters.end())
        why =
            "its register is none of the first six that the calling convention has for parameters";
      else
        put(p, static_cast<std::size_t>(known - kRegisters.begin()));
    } else if (p.at.place == AtEntry::stack || optimised || (!lost && next >= kInRegisters)) {
      why = "it is passed on the stack";
    } else if (lost) {
      why = "a parameter before it takes several registers, or none: its register is not known";
    } else {
      put(p, next++);
    }
    lost = lost || p.passed == Passed::unknown;
    if (!why.empty() && !p.name.empty()) f.elsewhere[p.name] = why;
  }
  for (auto& p : f.parameters) {
    if (!p.type) p.type = untyped_register(false);
    f.elsewhere.erase(p.name);  // damaged information may contain a name twice
  }
}

Result<UserFunction> read_function(int fd, std::uint64_t offset, const std::string& debug_root) {
  if (!libdw().complete)
    return Error{
        fmt::format("no debug information is read, as libdw (package libdw1) cannot be loaded: {}",
                    libdw().error.empty() ? "it is too old" : libdw().error)};
  auto elf = symbols::ElfSymbols::read(fd);
  auto address = elf ? elf->address_of_offset(offset) : std::nullopt;
  if (!address) return Error{"the file has no debug information"};
  auto opened = open_debug_information(fd, debug_root);
  if (!opened) return opened.error();
  auto& file = *opened;
  auto function = file->function_at(*address);
  if (!function && file->is_split(*address))
    return Error{
        "the function's debug information is in a .dwo file, which is not read "
        "(-gsplit-dwarf)"};
  if (!function) return Error{"the file's debug information does not have this function"};
  if (number(*function, DW_AT_calling_convention) == DW_CC_nocall)
    return Error{"the compiler has changed the parameters of this function"};

  UserFunction f;
  f.types = file;
  f.result = file->type_of(*function);
  std::vector<Declared> declared;
  children(*function, [&](Dwarf_Die& die) {
    if (libdw().dwarf_tag(&die) != DW_TAG_formal_parameter) return false;
    auto type = reference(die, DW_AT_type);
    declared.push_back({std::string(name_of(die)), file->type_of(die),
                        type ? passed(*type) : Passed::unknown,
                        at_entry(*file, *function, die, *address)});
    return declared.size() >= kMostParameters;
  });
  place(f, declared, registers_of_result(*file, *function));
  return f;
}

}  // namespace

Result<UserFunction> user_function(int fd, std::uint64_t offset, const std::string& debug_root) {
  const ReadFailures failures("the file's debug information");
  auto function = read_function(fd, offset, debug_root);
  if (!function && failures) return Error{failures.error({}).why};
  return function;
}

}  // namespace coretap::expression

#endif
