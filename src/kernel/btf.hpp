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

  /// False: no such file, or not type information. What it says is checked against its bounds.
  bool open(const char* path = "/sys/kernel/btf/vmlinux");
  /// The same of bytes that stay the caller's.
  bool view(const void* data, std::size_t size);
  void close();
  bool is_open() const { return types_ != nullptr; }

  /// Type id; 0: none of that name and kind.
  std::uint32_t find(std::string_view name, unsigned kind) const;
  const btf_type* type(std::uint32_t id) const;  ///< nullptr: no such id
  std::uint32_t count() const { return static_cast<std::uint32_t>(offsets_.size()); }
  /// Bytes that follow the type: members, values and the like.
  static std::size_t tail_bytes(const btf_type& type);
  const char* text(std::uint32_t offset) const;  ///< "": no such offset
  std::string_view name(std::uint32_t offset) const { return text(offset); }

  /// A struct's or union's member, in unnamed members too.
  bool has_member(const btf_type* type, std::string_view member) const;
  Enumerators enumerators(const btf_type* type) const;
  /// The unnamed enum that has this enumerator; nullptr: none.
  const btf_type* enum_with(std::string_view enumerator) const;

 private:
  /// Where a whole name begins in the strings; 0: nowhere.
  std::uint32_t name_offset(std::string_view name) const;

  void* data_ = nullptr;  ///< nullptr: not ours
  std::size_t size_ = 0;
  bool mapped_ = false;
  const char* types_ = nullptr;
  std::string_view strings_;
  std::vector<std::uint32_t> offsets_;  ///< of each type, by its id
};

}  // namespace coretap
