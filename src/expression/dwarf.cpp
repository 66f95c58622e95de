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
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/fd.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/process_files.hpp"

namespace coretap::expression {

namespace {

constexpr int kDeepest = 32;                   // modifiers of one type, entries within entries
constexpr std::size_t kMostInside = 64;        // unnamed members and base classes of one record
constexpr std::size_t kMostEntries = 1 << 22;  // of one search
constexpr std::size_t kMostNames = 4096;       // for "did you mean"
constexpr std::size_t kInRegisters = 6;

/// A function of a library by its address.
struct Symbol {
  void* address;
  template <class Function>
  operator Function*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Function*>(address);
  }
};

/// What is called of libdw.
struct Library {
  void* handle = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  bool complete = handle != nullptr;

  decltype(&::dwarf_begin) dwarf_begin = find("dwarf_begin");
  decltype(&::dwarf_end) dwarf_end = find("dwarf_end");
  decltype(&::dwarf_nextcu) dwarf_nextcu = find("dwarf_nextcu");
  decltype(&::dwarf_offdie) dwarf_offdie = find("dwarf_offdie");
  decltype(&::dwarf_addrdie) dwarf_addrdie = find("dwarf_addrdie");
  decltype(&::dwarf_child) dwarf_child = find("dwarf_child");
  decltype(&::dwarf_siblingof) dwarf_siblingof = find("dwarf_siblingof");
  decltype(&::dwarf_tag) dwarf_tag = find("dwarf_tag");
  decltype(&::dwarf_diename) dwarf_diename = find("dwarf_diename");
  decltype(&::dwarf_attr) dwarf_attr = find("dwarf_attr");
  decltype(&::dwarf_attr_integrate) dwarf_attr_integrate = find("dwarf_attr_integrate");
  decltype(&::dwarf_formudata) dwarf_formudata = find("dwarf_formudata");
  decltype(&::dwarf_formsdata) dwarf_formsdata = find("dwarf_formsdata");
  decltype(&::dwarf_formref_die) dwarf_formref_die = find("dwarf_formref_die");
  decltype(&::dwarf_formflag) dwarf_formflag = find("dwarf_formflag");
  decltype(&::dwarf_hasattr) dwarf_hasattr = find("dwarf_hasattr");
  decltype(&::dwarf_bytesize) dwarf_bytesize = find("dwarf_bytesize");
  decltype(&::dwarf_entrypc) dwarf_entrypc = find("dwarf_entrypc");
  decltype(&::dwarf_haspc) dwarf_haspc = find("dwarf_haspc");
  decltype(&::dwarf_aggregate_size) dwarf_aggregate_size = find("dwarf_aggregate_size");

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

/// Debug information that is open. Entries (DIEs) point into it.
class File final : public NamedTypes, public std::enable_shared_from_this<File> {
 public:
  File(Fd fd, Dwarf* dwarf) : fd_(std::move(fd)), dwarf_(dwarf) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() override { libdw().dwarf_end(dwarf_); }

  Dwarf* get() const { return dwarf_; }

  TypePtr named(std::string_view name) const override {
    auto die = find_type(name);
    return die ? of(*die) : nullptr;
  }
  std::optional<std::int64_t> enumerator(std::string_view name) const override;
  std::vector<std::string> records() const override;

  TypePtr of(Dwarf_Die die, int depth = 0) const;
  /// The type that an entry names; void where it names none.
  TypePtr type_of(Dwarf_Die& die, int depth = 0) const;
  std::optional<Dwarf_Die> function_at(std::uint64_t address) const;
  /// The definition of a struct or union that is only declared here.
  std::optional<Dwarf_Die> definition(Dwarf_Die die) const;

 private:
  /// Calls `visit` with the entries of all units, those of namespaces too, until it returns true.
  template <class Visit>
  void each(Visit visit) const;
  template <class Visit>
  bool each_below(Dwarf_Die& parent, int depth, std::size_t& left, Visit& visit) const;
  std::optional<Dwarf_Die> find_type(std::string_view name) const;

  Fd fd_;
  Dwarf* dwarf_;
};

std::string_view name_of(Dwarf_Die& die) {
  auto* name = libdw().dwarf_diename(&die);
  return name ? name : "";
}

std::optional<std::uint64_t> number(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (!libdw().dwarf_attr_integrate(&die, name, &attribute) ||
      libdw().dwarf_formudata(&attribute, &value) != 0)
    return {};
  return value;
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

/// Calls `visit` with each entry directly below until it returns true.
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

bool is_record(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

TypePtr nothing() {
  static const auto none = std::make_shared<const Type>(Type{Type::nothing, "void", 1});
  return none;
}

/// Members of a struct, union or class; those of base classes too.
class DwarfMembers final : public Members {
 public:
  DwarfMembers(std::shared_ptr<const File> file, Dwarf_Die die)
      : file_(std::move(file)), die_(die) {}

  std::optional<Member> find(std::string_view name) const override {
    std::optional<Member> found;
    each([&](Dwarf_Die& die, std::uint32_t bit) {
      if (name_of(die) != name) return false;
      found = member(die, bit);
      return true;
    });
    return found;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    each([&](Dwarf_Die& die, std::uint32_t) {
      all.emplace_back(name_of(die));
      return all.size() >= kMostNames;
    });
    return all;
  }

 private:
  /// The named members, with where the record begins that has them.
  template <class Visit>
  void each(Visit visit) const {
    struct Inside {
      Dwarf_Die die;
      std::uint32_t bit;
    };
    std::vector<Inside> inside{{die_, 0}};
    for (std::size_t at = 0; at < inside.size(); at++) {
      Dwarf_Die record = inside[at].die;
      const auto bit = inside[at].bit;
      if (auto whole = file_->definition(record)) record = *whole;
      const bool ended = children(record, [&](Dwarf_Die& die) {
        const int tag = libdw().dwarf_tag(&die);
        if (tag != DW_TAG_member && tag != DW_TAG_inheritance) return false;
        if (flag(die, DW_AT_external)) return false;  // a static member before DWARF 5
        if (tag == DW_TAG_member && !name_of(die).empty()) return visit(die, bit);
        auto type = reference(die, DW_AT_type);
        auto offset = number(die, DW_AT_data_member_location);
        const bool in_union = libdw().dwarf_tag(&record) == DW_TAG_union_type;
        if (type && (offset || in_union) && inside.size() < kMostInside)
          inside.push_back({*type, bit + static_cast<std::uint32_t>(offset.value_or(0) * 8)});
        return false;
      });
      if (ended) return;
    }
  }

  std::optional<Member> member(Dwarf_Die& die, std::uint32_t bit) const {
    Member m;
    m.type = file_->type_of(die);
    const auto bits = number(die, DW_AT_bit_size);
    const auto offset = number(die, DW_AT_data_member_location);
    auto at = std::uint64_t{bit};
    if (auto whole = number(die, DW_AT_data_bit_offset)) {
      at += *whole;
    } else {
      at += offset.value_or(0) * 8;
      // Up to DWARF 3 counted from the highest bit of what holds it.
      if (auto from_top = number(die, DW_AT_bit_offset); from_top && bits) {
        const auto holds = number(die, DW_AT_byte_size).value_or(m.type->bytes) * 8;
        if (*from_top + *bits <= holds) at += holds - *from_top - *bits;
      }
    }
    if (at > (1U << 30) || bits.value_or(0) > 64) return {};
    m.bit = static_cast<std::uint32_t>(at);
    m.bits = static_cast<std::uint32_t>(bits.value_or(0));
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

TypePtr File::type_of(Dwarf_Die& die, int depth) const {
  auto type = reference(die, DW_AT_type);
  return type ? of(*type, depth + 1) : nothing();
}

TypePtr File::of(Dwarf_Die die, int depth) const {
  if (depth > kDeepest) return nothing();
  const auto name = std::string(name_of(die));
  const auto size = libdw().dwarf_bytesize(&die);
  switch (libdw().dwarf_tag(&die)) {
    case DW_TAG_base_type: {
      const auto encoding = number(die, DW_AT_encoding).value_or(0);
      if (size < 1 || size > 8) return nothing();
      if (encoding == DW_ATE_float || encoding == DW_ATE_complex_float) {
        auto none = *nothing();
        none.name = name;
        return std::make_shared<const Type>(std::move(none));
      }
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
      for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
        Type t{Type::array, element->name + " []"};
        t.count = *count;
        t.bytes = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(std::uint64_t{element->bytes} * *count, 1U << 30));
        t.to = std::move(element);
        element = std::make_shared<const Type>(std::move(t));
      }
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
      return type_of(die, depth);
    default:
      return nothing();
  }
}

template <class Visit>
bool File::each_below(Dwarf_Die& parent, int depth, std::size_t& left, Visit& visit) const {
  return children(parent, [&](Dwarf_Die& die) {
    if (left-- == 0 || visit(die)) return true;
    const int tag = libdw().dwarf_tag(&die);
    return depth < kDeepest && (tag == DW_TAG_namespace || is_record(tag)) &&
           each_below(die, depth + 1, left, visit);
  });
}

template <class Visit>
void File::each(Visit visit) const {
  std::size_t left = kMostEntries, header = 0;
  Dwarf_Off at = 0, next = 0;
  while (left && libdw().dwarf_nextcu(dwarf_, at, &next, &header, nullptr, nullptr, nullptr) == 0) {
    Dwarf_Die unit;
    if (libdw().dwarf_offdie(dwarf_, at + header, &unit) && each_below(unit, 0, left, visit))
      return;
    at = next;
  }
}

/// "struct request", "enum state", or the name of a typedef or of a C++ class.
std::optional<Dwarf_Die> File::find_type(std::string_view name) const {
  auto word = name.substr(name.rfind(' ') + 1);
  const auto kind = word.size() < name.size() ? name.substr(0, name.find(' ')) : "";
  std::optional<Dwarf_Die> found;
  each([&](Dwarf_Die& die) {
    const int tag = libdw().dwarf_tag(&die);
    const bool wanted = kind == "struct"  ? tag == DW_TAG_structure_type || tag == DW_TAG_class_type
                        : kind == "union" ? tag == DW_TAG_union_type
                        : kind == "enum"  ? tag == DW_TAG_enumeration_type
                                          : tag == DW_TAG_typedef || tag == DW_TAG_class_type ||
                                               tag == DW_TAG_structure_type;
    if (!wanted || flag(die, DW_AT_declaration) || name_of(die) != word) return false;
    found = die;
    return true;
  });
  return found;
}

std::optional<Dwarf_Die> File::definition(Dwarf_Die die) const {
  for (int i = 0; i < kDeepest; i++) {
    const int tag = libdw().dwarf_tag(&die);
    if (is_record(tag)) {
      if (!flag(die, DW_AT_declaration)) return die;
      return find_type(
          fmt::format("{} {}", tag == DW_TAG_union_type ? "union" : "struct", name_of(die)));
    }
    if (tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type &&
        tag != DW_TAG_atomic_type)
      return {};
    auto next = reference(die, DW_AT_type);
    if (!next) return {};
    die = *next;
  }
  return {};
}

std::optional<std::int64_t> File::enumerator(std::string_view name) const {
  std::optional<std::int64_t> found;
  each([&](Dwarf_Die& die) {
    if (libdw().dwarf_tag(&die) != DW_TAG_enumeration_type) return false;
    return children(die, [&](Dwarf_Die& one) {
      Dwarf_Attribute attribute;
      Dwarf_Sword value = 0;
      if (name_of(one) != name || !libdw().dwarf_attr(&one, DW_AT_const_value, &attribute) ||
          libdw().dwarf_formsdata(&attribute, &value) != 0)
        return false;
      found = value;
      return true;
    });
  });
  return found;
}

std::vector<std::string> File::records() const {
  std::vector<std::string> all;
  each([&](Dwarf_Die& die) {
    const int tag = libdw().dwarf_tag(&die);
    if (auto name = is_record(tag) ? name_of(die) : ""; !name.empty())
      all.push_back(fmt::format("{} {}", tag == DW_TAG_union_type ? "union" : "struct", name));
    return all.size() >= kMostNames;
  });
  return all;
}

std::optional<Dwarf_Die> File::function_at(std::uint64_t address) const {
  std::optional<Dwarf_Die> found;
  auto visit = [&](Dwarf_Die& die) {
    Dwarf_Addr start = 0;
    if (libdw().dwarf_tag(&die) != DW_TAG_subprogram || libdw().dwarf_entrypc(&die, &start) != 0 ||
        start != address)
      return false;
    found = die;
    return true;
  };
  std::size_t left = kMostEntries, header = 0;
  Dwarf_Die unit;
  if (libdw().dwarf_addrdie(dwarf_, address, &unit)) {
    each_below(unit, 0, left, visit);
    return found;
  }
  // Clang writes no table of addresses.
  Dwarf_Off at = 0, next = 0;
  while (!found && left &&
         libdw().dwarf_nextcu(dwarf_, at, &next, &header, nullptr, nullptr, nullptr) == 0) {
    if (libdw().dwarf_offdie(dwarf_, at + header, &unit) && libdw().dwarf_haspc(&unit, address) > 0)
      each_below(unit, 0, left, visit);
    at = next;
  }
  return found;
}

bool has_functions(Dwarf* dwarf) {
  Dwarf_Off next = 0;
  std::size_t header = 0;
  return libdw().dwarf_nextcu(dwarf, 0, &next, &header, nullptr, nullptr, nullptr) == 0;
}

std::shared_ptr<const File> open_file(Fd fd) {
  auto* dwarf = fd ? libdw().dwarf_begin(fd.get(), DWARF_C_READ) : nullptr;
  if (!dwarf) return nullptr;
  auto file = std::make_shared<const File>(std::move(fd), dwarf);
  return has_functions(dwarf) ? file : nullptr;
}

/// Of the file itself, or of the separate file with the same build id.
std::shared_ptr<const File> open_debug_information(int fd, const std::string& debug_root) {
  if (auto own = open_file(Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)))) return own;
  const auto id = symbols::build_id(fd);
  if (id.size() < 4) return nullptr;
  auto path = fmt::format("{}/.build-id/{}/{}.debug", debug_root, id.substr(0, 2), id.substr(2));
  Fd separate = symbols::open_regular(symbols::open_handle(path, true), symbols::kMaxElfSize);
  if (!separate || symbols::build_id(separate.get()) != id) return nullptr;
  return open_file(std::move(separate));
}

/// How many integer registers come before the first parameter: one for the place of a large result.
std::size_t registers_of_result(const File& file, Dwarf_Die& function) {
#if defined(__x86_64__)
  auto type = reference(function, DW_AT_type);
  auto record = type ? file.definition(*type) : std::nullopt;
  if (!record) return 0;
  Dwarf_Word size = 0;
  libdw().dwarf_aggregate_size(&*record, &size);
  return size > 16 || number(*record, DW_AT_calling_convention) == DW_CC_pass_by_reference;
#else
  (void)file, (void)function;
  return 0;
#endif
}

}  // namespace

Result<UserFunction> user_function(int fd, std::uint64_t offset, const std::string& debug_root) {
  if (!libdw().complete)
    return Error{"no debug information is read, as libdw is not installed (package libdw1)"};
  auto elf = symbols::ElfSymbols::read(fd);
  auto address = elf ? elf->address_of_offset(offset) : std::nullopt;
  auto file = open_debug_information(fd, debug_root);
  if (!file || !address) return Error{"the file has no debug information"};
  auto function = file->function_at(*address);
  if (!function) return Error{"the file's debug information does not have this function"};
  if (number(*function, DW_AT_calling_convention) == DW_CC_nocall)
    return Error{"the compiler has changed the parameters of this function"};

  UserFunction f;
  f.types = file;
  f.result = file->type_of(*function);
  f.parameters.resize(registers_of_result(*file, *function));
  bool lost = false;
  children(*function, [&](Dwarf_Die& die) {
    if (libdw().dwarf_tag(&die) != DW_TAG_formal_parameter) return false;
    auto name = std::string(name_of(die));
    auto type = file->type_of(die);
    if (lost) {
      f.elsewhere[name] = "a parameter before it is a struct: its register is not known";
    } else if (type->kind == Type::record) {
      f.elsewhere[name] = "it is a struct that is passed by value";
      lost = true;
    } else if (type->kind == Type::nothing) {
      f.elsewhere[name] = "it is no integer and no pointer";
    } else if (f.parameters.size() >= kInRegisters) {
      f.elsewhere[name] = "it is passed on the stack";
    } else {
      f.parameters.push_back({name, type});
    }
    return false;
  });
  for (auto& p : f.parameters)
    if (!p.type) p.type = integer_type(8, false);
  return f;
}

}  // namespace coretap::expression

#endif
