// C types for expressions: integers, pointers, arrays, and records whose members come from the
// kernel's type information (BTF) or from a tracepoint's format.
#pragma once
#include <cstdint>
#include <functional>
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

/// Location and type of a record's member.
struct Member {
  enum Place {
    memory,  ///< in the record
    behind,  ///< 32 bits in the record have its offset (__data_loc), from the start of the record
    beyond,  ///< the same, from the end of these 32 bits (__rel_loc)
    input,   ///< an input value of the program (compile.hpp)
  } place = memory;
  TypePtr type;
  std::uint32_t bit = 0;   ///< offset in the record; for an input its byte offset
  std::uint32_t bits = 0;  ///< width of a bit field; 0: not a bit field
};

/// The members of one record.
class Members {
 public:
  Members() = default;
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;
  virtual ~Members() = default;
  /// Visits named members in their order, those of unnamed members in their place, until `visit`
  /// returns true. `member`: nullopt if its offset is unknown.
  using Visit = std::function<bool(std::string_view name,
                                   const std::function<std::optional<Member>()>& member)>;
  virtual void each(const Visit& visit) const = 0;
  std::optional<Member> find(std::string_view name) const;
  std::vector<std::string> names() const;  ///< for "did you mean"
};

struct Type {
  enum Kind {
    integer,  ///< also enums and booleans
    pointer,
    array,
    record,
    nothing,  ///< void, functions, floating point: cannot be read
  } kind = integer;
  std::string name = {};  ///< in C syntax: "struct file", "unsigned long"
  std::uint32_t bytes = 8;
  bool is_signed = false;
  bool truth = false;                           ///< _Bool: nonzero values become 1
  bool character = false;                       ///< char: an array of them is text
  bool user = false;                            ///< pointer to user memory
  bool untyped = false;                         ///< integer: a register of unknown type
  TypePtr to = {};                              ///< target of a pointer; element of an array
  std::uint32_t count = 0;                      ///< number of array elements; 0: not known
  std::shared_ptr<const Members> members = {};  ///< of a record
  std::uint32_t id = 0;                         ///< BTF type id; 0: not from BTF

  bool is_text() const {
    return (kind == pointer || kind == array) && to && to->kind == integer && to->character;
  }
};

/// Damaged type information may contain cycles.
inline constexpr int kDeepest = 32;              ///< modifiers of one type, entries within entries
inline constexpr std::size_t kMostInside = 64;   ///< unnamed members and base classes of one record
inline constexpr std::size_t kMostNames = 4096;  ///< for "did you mean"

/// The data after a type: its members, values or parameters.
template <class T>
const T* behind(const btf_type* type) {
  return reinterpret_cast<const T*>(type + 1);
}

TypePtr nothing();
TypePtr integer_type(std::uint32_t bytes, bool is_signed);
/// A register whose type is not known. Conversions print an int of it, as in bcc.
TypePtr untyped_register(bool is_signed);
TypePtr pointer_to(TypePtr to, bool user = false);
TypePtr array_of(TypePtr element, std::uint32_t count);
/// The same type; a pointer becomes one to user memory.
TypePtr in_user_memory(const TypePtr& type);

struct Parameter {
  std::string name;
  TypePtr type;
};
struct Prototype {
  std::vector<Parameter> parameters;
  TypePtr result;
};

/// Types of a user program by name, and its enumerators.
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

/// Types by their C names, and functions. Types from BTF are created on
/// demand.
class Types {
 public:
  Types() = default;
  /// The caller keeps `btf` valid as long as these types are in use.
  explicit Types(const Btf* btf) : btf_(btf) {}

  /// Finds "unsigned long", "struct file", "size_t", without stars; nullptr: no such type.
  TypePtr named(std::string_view name) const;
  /// True if a type's name can start with this word.
  bool starts_type(std::string_view word) const;
  TypePtr of(std::uint32_t id) const;
  /// A kernel function's prototype; nullopt: not known.
  std::optional<Prototype> function(std::string_view name) const;
  /// The arguments that a tracepoint passes to programs, without the first (its private data).
  std::optional<Prototype> tracepoint(std::string_view name) const;
  std::optional<std::int64_t> enumerator(std::string_view name) const;
  /// Names of all structs and unions, with "struct " or "union ": for "did you mean".
  std::vector<std::string> records() const;
  const Btf* btf() const { return btf_; }

 private:
  Prototype prototype(const btf_type& type, bool skip_first) const;
  TypePtr make(std::uint32_t id, int depth) const;

  const Btf* btf_ = nullptr;
  mutable std::map<std::uint32_t, TypePtr> known_;
};

/// The members of a tracepoint's record from its "format" file in tracefs. For a system call's
/// entry, `inputs` is the input offset of the first argument.
std::shared_ptr<const Members> format_members(std::string_view format, const Types& types,
                                              std::optional<std::uint32_t> inputs = {});
/// Parses "unsigned long flags", "const char * name", "__u8 saddr[4]" to name and type.
Parameter parse_declaration(std::string_view text, const Types& types);

}  // namespace coretap::expression
