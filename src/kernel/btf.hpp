// The kernel's type information (BTF), read in place. libbpf copies and indexes all of it, twice if
// a program is loaded as well; a tool looks up only a few types before it starts.
#pragma once
#include <linux/btf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coretap {

class Btf {
 public:
  using Enumerators = std::vector<std::pair<std::string, std::int64_t>>;

  Btf() = default;
  ~Btf();
  Btf(const Btf&) = delete;
  Btf& operator=(const Btf&) = delete;

  /// False, with errno: no such file, or not valid BTF (EINVAL). Offsets and sizes are checked
  /// against its bounds. `base`: for a module's BTF, the kernel's, whose ids and strings come
  /// first; the caller keeps ownership.
  bool open(const char* path = "/sys/kernel/btf/vmlinux", const Btf* base = nullptr);
  /// The same for BTF in memory that the caller keeps valid.
  bool view(const void* data, std::size_t size, const Btf* base = nullptr);
  void close();
  bool is_open() const { return types_ != nullptr; }

  /// Type id; 0: no type of that name and kind. A module's own types take precedence over its
  /// base's.
  std::uint32_t find(std::string_view name, unsigned kind) const;
  /// The same for several names; results are in the order of `names`.
  std::vector<std::uint32_t> find(const std::vector<std::string_view>& names, unsigned kind) const;
  const btf_type* type(std::uint32_t id) const;  ///< nullptr: no such id
  /// All ids are below this.
  std::uint32_t count() const { return first_ + static_cast<std::uint32_t>(offsets_.size()); }
  /// The first id that does not belong to the base.
  std::uint32_t first() const { return first_ ? first_ : 1; }
  const Btf* base() const { return base_; }
  /// The type without const, volatile, restrict, tags and (if `typedefs` is true) typedefs;
  /// nullptr: there is none.
  const btf_type* plain(std::uint32_t id, bool typedefs = true) const;
  /// Size in bytes of the data that follows the type: members, values and the like.
  static std::size_t tail_bytes(const btf_type& type);
  const char* text(std::uint32_t offset) const;  ///< "": no such offset
  std::string_view name(std::uint32_t offset) const { return text(offset); }

  /// True if the struct or union has the member, directly or in unnamed members.
  bool has_member(const btf_type* type, std::string_view member) const;
  /// In bytes; nullopt: the struct has no such member, or only in unnamed members.
  std::optional<std::uint32_t> member_offset(const btf_type* type, std::string_view member) const;
  Enumerators enumerators(const btf_type* type) const;
  /// The unnamed enum with this enumerator; nullptr: none. A module's base is not searched.
  const btf_type* enum_with(std::string_view enumerator) const;

 private:
  const btf_type* own_type(std::uint32_t id) const;
  std::uint32_t end_of_text() const {
    return first_text_ + static_cast<std::uint32_t>(strings_.size());
  }
  /// Offset of a complete string in the string section; 0: not found.
  std::uint32_t name_offset(std::string_view name) const;

  void* data_ = nullptr;  ///< nullptr: not owned
  std::size_t size_ = 0;
  bool mapped_ = false;
  const char* types_ = nullptr;
  std::string_view strings_;
  std::vector<std::uint32_t> offsets_;  ///< of each type outside the base, by id
  const Btf* base_ = nullptr;
  std::uint32_t first_ = 0;       ///< number of ids in the base
  std::uint32_t first_text_ = 0;  ///< bytes of strings in the base
};

}  // namespace coretap
