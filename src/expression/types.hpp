// Types of C as expressions need them: integers, pointers, arrays, and records whose members are
// known by the kernel's type information (BTF) or by the format of a tracepoint.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/btf.hpp"

namespace coretap::expression {

struct Type;
using TypePtr = std::shared_ptr<const Type>;

/// Where a member of a record is, and of what type.
struct Member {
  enum Place {
    memory,  ///< in the record
    behind,  ///< 32 bits in the record say where (__data_loc): from the record's begin on
    beyond,  ///< the same from the end of these 32 bits on (__rel_loc)
    input,   ///< a value that the program was given (compile.hpp)
  } place = memory;
  TypePtr type;
  std::uint32_t bit = 0;   ///< from the record's begin; of an input its byte
  std::uint32_t bits = 0;  ///< of a bit field; 0: it is none
};

/// The members of one record.
class Members {
 public:
  Members() = default;
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  virtual ~Members() = default;
  virtual std::optional<Member> find(std::string_view name) const = 0;
  virtual std::vector<std::string> names() const = 0;  ///< for "did you mean"
};

struct Type {
  enum Kind {
    integer,  ///< also of enums and truth values
    pointer,
    array,
    record,
    nothing,  ///< void, functions, floating point: cannot be read
  } kind = integer;
  std::string name = {};  ///< as C writes it: "struct file", "unsigned long"
  std::uint32_t bytes = 8;
  bool is_signed = false;
  bool truth = false;                           ///< _Bool: other values become 1
  bool character = false;                       ///< char: an array of them is text
  bool user = false;                            ///< of a pointer: into the memory of the process
  TypePtr to = {};                              ///< of a pointer; of an array the element
  std::uint32_t count = 0;                      ///< of an array's elements; 0: not known
  std::shared_ptr<const Members> members = {};  ///< of a record
  std::uint32_t id = 0;  ///< in the kernel's type information; 0: it is not from there

  bool is_text() const {
    return (kind == pointer || kind == array) && to && to->kind == integer && to->character;
  }
};

/// Damaged type information may lead in a circle.
inline constexpr int kDeepest = 32;             ///< modifiers of one type, entries within entries
inline constexpr std::size_t kMostInside = 64;  ///< unnamed members and base classes of one record

/// What follows a type: its members, values or parameters.
template <class T>
const T* behind(const btf_type* type) {
  return reinterpret_cast<const T*>(type + 1);
}

TypePtr nothing();
TypePtr integer_type(std::uint32_t bytes, bool is_signed);
TypePtr pointer_to(TypePtr to, bool user = false);
/// The same, of memory of the process wherever it leads.
TypePtr in_user_memory(const TypePtr& type);

struct Parameter {
  std::string name;
  TypePtr type;
};
struct Prototype {
  std::vector<Parameter> parameters;
  TypePtr result;
};

/// Types of a user program by their names, and its enumerators.
class NamedTypes {
 public:
  NamedTypes() = default;
  NamedTypes(const NamedTypes&) = delete;
  NamedTypes& operator=(const NamedTypes&) = delete;
  virtual ~NamedTypes() = default;
  virtual TypePtr named(std::string_view name) const = 0;  ///< nullptr: there is no such type
  virtual std::optional<std::int64_t> enumerator(std::string_view name) const = 0;
  virtual std::vector<std::string> records() const = 0;  ///< for "did you mean"
};

/// Types by their names in C, and functions. Types that the kernel's type information has are made
/// when they are asked for.
class Types {
 public:
  Types() = default;
  /// `btf` stays the caller's, for as long as these types are in use.
  explicit Types(const Btf* btf) : btf_(btf) {}

  /// "unsigned long", "struct file", "size_t"; nullptr: there is no such type. Without stars.
  TypePtr named(std::string_view name) const;
  /// May a type's name start with this word?
  bool starts_type(std::string_view word) const;
  TypePtr of(std::uint32_t id) const;
  /// A function of the kernel; none: it is not known.
  std::optional<Prototype> function(std::string_view name) const;
  /// The arguments that a tracepoint hands to programs, without the first one, which is its own.
  std::optional<Prototype> tracepoint(std::string_view name) const;
  std::optional<std::int64_t> enumerator(std::string_view name) const;
  /// Names that resemble none: for "did you mean". `prefix`: "struct ".
  std::vector<std::string> records() const;
  const Btf* btf() const { return btf_; }

 private:
  std::optional<std::int64_t> enumerator(std::string_view name, std::uint32_t first,
                                         std::uint32_t end) const;
  Prototype prototype(const btf_type& type, bool skip_first) const;
  TypePtr make(std::uint32_t id, int depth) const;

  const Btf* btf_ = nullptr;
  mutable std::map<std::uint32_t, TypePtr> known_;
};

/// The members of a tracepoint's record by its "format" file in tracefs. Of a system call's entry
/// (`inputs`) they are the arguments in their order.
std::shared_ptr<const Members> format_members(std::string_view format, const Types& types,
                                              std::optional<std::uint32_t> inputs = {});
/// "unsigned long flags", "const char * name", "__u8 saddr[4]": its name and its type.
Parameter parse_declaration(std::string_view text, const Types& types);

}  // namespace coretap::expression
