// Layouts of the structs that a recording has: so that a version of coretap with other structs
// reads it by the names of their members. They are made from a kernel object's type information.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/btf.hpp"

namespace coretap::record {

/// A member of a struct that is no struct itself.
struct Member {
  enum Kind : std::uint8_t {
    bytes_only,  ///< of another form: it can only be copied whole
    unsigned_number,
    signed_number,
    boolean,
    text,  ///< a struct text: an offset from the start of the record, and a length
  };
  std::string path;         ///< "owner.pid", "slots[3].count"; empty: the type is no struct
  std::uint32_t at = 0;     ///< bytes from the start of the struct
  std::uint32_t bytes = 0;  ///< of one element
  std::uint32_t count = 1;  ///< of elements
  Kind kind = bytes_only;

  bool operator==(const Member&) const = default;
};

/// The layout of a struct, or of a key that is a number.
struct Layout {
  std::uint32_t bytes = 0;  ///< 0: not known
  std::vector<Member> members = {};

  bool operator==(const Layout&) const = default;
  explicit operator bool() const { return bytes != 0; }
  /// As it is written, and back. Nothing: the bytes are not of that form, members are outside the
  /// struct, or there are more of them than may be.
  std::string packed() const;
  static std::optional<Layout> of(std::string_view packed);
  /// Of a type; not known: there is no such type, or it has too many members.
  static Layout of(const Btf& types, std::uint32_t id);
};

/// The layouts in a kernel object.
class ObjectLayouts {
 public:
  ObjectLayouts() = default;
  /// `object`: an ELF file; without type information nothing is known.
  explicit ObjectLayouts(std::string_view object);
  ObjectLayouts(const ObjectLayouts&) = delete;
  ObjectLayouts& operator=(const ObjectLayouts&) = delete;

  Layout of_struct(std::string_view name) const;
  /// Of a map's keys and values. In a CPU_SLOTS (bpf/lib/core/coretap.bpf.h) a value is what has
  /// `value_bytes`: that of a CPU, or an element of its array.
  Layout of_key(std::string_view map) const;
  Layout of_value(std::string_view map, std::size_t value_bytes) const;

 private:
  std::uint32_t type_in_map(std::string_view map, std::string_view member) const;

  std::string bytes_;
  Btf types_;
};

/// Why a struct does not have a member's value.
struct Lack {
  std::string member;  ///< its path
  std::string why;     ///< "not in this recording"
  std::size_t at = 0, bytes = 0;
};

/// Makes structs of one layout from those of another: members of the same name are copied, integers
/// may be wider than they were; all else is 0.
class Move {
 public:
  Move(const Layout& from, const Layout& to);

  std::size_t from_bytes() const { return from_bytes_; }
  std::size_t to_bytes() const { return to_bytes_; }
  /// Members without a value in the structs that it makes.
  const std::vector<Lack>& lacks() const { return lacks_; }
  /// `from` has at least from_bytes(); what follows these is appended, and texts there are still
  /// found.
  std::string operator()(std::string_view from) const;

 private:
  struct Step {
    std::uint32_t from, to, from_bytes, to_bytes, count;
    bool is_signed;
  };
  void add(const Member& from, const Member& to);
  void move_text(const char* from, char* to) const;

  std::size_t from_bytes_, to_bytes_;
  std::vector<Step> steps_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> texts_;  ///< from, to
  std::vector<Lack> lacks_;
};

}  // namespace coretap::record
