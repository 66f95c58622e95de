// The kernel's type information, read in place. libbpf copies and indexes all of it, twice where a
// program is loaded too; a tool asks a handful of questions before it starts.
#pragma once
#include <linux/btf.h>

#include <cstddef>
#include <cstdint>
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

  /// False, with errno: no such file, or not type information (EINVAL). What it says is checked
  /// against its bounds. `base`: of a module's, the kernel's, whose ids and strings come first; it
  /// stays the caller's.
  bool open(const char* path = "/sys/kernel/btf/vmlinux", const Btf* base = nullptr);
  /// The same of bytes that stay the caller's.
  bool view(const void* data, std::size_t size, const Btf* base = nullptr);
  void close();
  bool is_open() const { return types_ != nullptr; }

  /// Type id; 0: none of that name and kind. A module's own come before those of its base.
  std::uint32_t find(std::string_view name, unsigned kind) const;
  /// The same of several, each in its place.
  std::vector<std::uint32_t> find(const std::vector<std::string_view>& names, unsigned kind) const;
  const btf_type* type(std::uint32_t id) const;  ///< nullptr: no such id
  /// All ids are below this.
  std::uint32_t count() const { return first_ + static_cast<std::uint32_t>(offsets_.size()); }
  /// The first id that is not its base's.
  std::uint32_t first() const { return first_ ? first_ : 1; }
  const Btf* base() const { return base_; }
  /// The type behind const, volatile, restrict, tags and, unless they are to stay, typedefs;
  /// nullptr: there is none.
  const btf_type* plain(std::uint32_t id, bool typedefs = true) const;
  /// Bytes that follow the type: members, values and the like.
  static std::size_t tail_bytes(const btf_type& type);
  const char* text(std::uint32_t offset) const;  ///< "": no such offset
  std::string_view name(std::uint32_t offset) const { return text(offset); }

  /// A struct's or union's member, in unnamed members too.
  bool has_member(const btf_type* type, std::string_view member) const;
  Enumerators enumerators(const btf_type* type) const;
  /// The unnamed enum that has this enumerator; nullptr: none. A module's base is not searched.
  const btf_type* enum_with(std::string_view enumerator) const;

 private:
  const btf_type* own_type(std::uint32_t id) const;
  std::uint32_t end_of_text() const {
    return first_text_ + static_cast<std::uint32_t>(strings_.size());
  }
  /// Where a whole name begins in the strings; 0: nowhere.
  std::uint32_t name_offset(std::string_view name) const;

  void* data_ = nullptr;  ///< nullptr: not ours
  std::size_t size_ = 0;
  bool mapped_ = false;
  const char* types_ = nullptr;
  std::string_view strings_;
  std::vector<std::uint32_t> offsets_;  ///< of each own type, by its id
  const Btf* base_ = nullptr;
  std::uint32_t first_ = 0;       ///< ids that are the base's
  std::uint32_t first_text_ = 0;  ///< bytes of strings that are
};

}  // namespace coretap
