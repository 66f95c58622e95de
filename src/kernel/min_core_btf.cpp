#include "kernel/min_core_btf.hpp"

#include <gelf.h>
#include <libelf.h>
#include <linux/bpf.h>

#include <bitset>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace coretap {

ObjectTypes object_types(const void* object, std::size_t size) {
  ObjectTypes found;
  elf_version(EV_CURRENT);
  // libelf only reads, but its parameter is not const.
  std::unique_ptr<Elf, decltype(&elf_end)> elf(
      elf_memory(const_cast<char*>(static_cast<const char*>(object)), size), elf_end);
  std::size_t names = 0;
  if (!elf || elf_getshdrstrndx(elf.get(), &names)) return found;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section));) {
    GElf_Shdr header;
    if (!gelf_getshdr(section, &header)) continue;
    auto* name = elf_strptr(elf.get(), names, header.sh_name);
    if (!name || header.sh_offset > size || header.sh_size > size - header.sh_offset) continue;
    std::string_view bytes(static_cast<const char*>(object) + header.sh_offset, header.sh_size);
    if (!strcmp(name, ".BTF")) found.types = bytes;
    if (!strcmp(name, ".BTF.ext")) found.relocations = bytes;
  }
  return found;
}

namespace {

template <class T>
bool take_value(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

/// struct bpf_core_relo; in a damaged file, kind may be any number.
struct Relocation {
  __u32 instruction, type_id, access, kind;
};

/// Calls back for each CO-RE relocation of .BTF.ext (Documentation/bpf/btf.rst); false: damaged.
template <class Visit>
bool each_relocation(std::string_view section, Visit visit) {
  struct {
    __u16 magic;
    __u8 version, flags;
    __u32 header_bytes, func_at, func_bytes, line_at, line_bytes, core_at, core_bytes;
  } header;
  auto all = section;
  if (!take_value(section, header) || header.magic != BTF_MAGIC ||
      header.header_bytes < sizeof header)
    return false;
  auto begin = static_cast<std::uint64_t>(header.header_bytes) + header.core_at;
  if (begin + header.core_bytes > all.size()) return false;
  auto rest = all.substr(begin, header.core_bytes);
  __u32 record_bytes = 0;
  if (rest.empty()) return true;
  if (!take_value(rest, record_bytes) || record_bytes < sizeof(Relocation)) return false;
  while (!rest.empty()) {
    __u32 of_program = 0, count = 0;
    if (!take_value(rest, of_program) || !take_value(rest, count)) return false;
    for (; count; count--) {
      if (rest.size() < record_bytes) return false;
      Relocation relocation{};
      memcpy(&relocation, rest.data(), sizeof relocation);
      rest.remove_prefix(record_bytes);
      visit(relocation);
    }
  }
  return true;
}

/// "task_struct___before_5_14" refers to task_struct.
std::string_view essential(std::string_view name) {
  auto flavour = name.rfind("___");
  return flavour == name.npos || flavour == 0 ? name : name.substr(0, flavour);
}

bool is_modifier(unsigned kind) {
  return kind == BTF_KIND_CONST || kind == BTF_KIND_VOLATILE || kind == BTF_KIND_RESTRICT ||
         kind == BTF_KIND_TYPE_TAG;
}

/// Copies types and all types that they contain by value. Pointed-to types are omitted: a
/// relocation never follows a pointer.
class Trimmer {
 public:
  explicit Trimmer(const Btf& kernel) : kernel_(kernel) {}

  std::uint32_t keep(std::uint32_t id) {
    auto* type = kernel_.type(id);
    if (!type) return 0;
    bool pointer = BTF_INFO_KIND(type->info) == BTF_KIND_PTR;
    if (pointer && pointer_) return pointer_;
    auto [at, is_new] = ids_.try_emplace(id, static_cast<std::uint32_t>(order_.size()) + 1);
    if (is_new) order_.push_back(id);
    if (pointer) pointer_ = at->second;
    return at->second;
  }

  std::string finish() {
    for (std::size_t i = 0; i < order_.size(); i++) copy(*kernel_.type(order_[i]));
    btf_header header{};
    header.magic = BTF_MAGIC;
    header.version = BTF_VERSION;
    header.hdr_len = sizeof header;
    header.type_len = static_cast<__u32>(types_.size());
    header.str_off = header.type_len;
    header.str_len = static_cast<__u32>(strings_.size());
    std::string all(reinterpret_cast<const char*>(&header), sizeof header);
    return all.append(types_).append(strings_);
  }

 private:
  __u32 word(__u32 offset) {
    auto name = kernel_.name(offset);
    if (name.empty()) return 0;
    auto [at, is_new] = words_.try_emplace(offset, static_cast<__u32>(strings_.size()));
    if (is_new) strings_.append(name).push_back('\0');
    return at->second;
  }

  template <class T>
  void put(const T& value) {
    types_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  /// Writes the data after a type, each entry with its ids and names replaced by the copy's.
  template <class T, class Change>
  void put_tail(const btf_type& type, Change change) {
    auto* entries = reinterpret_cast<const T*>(&type + 1);
    for (unsigned i = 0; i < BTF_INFO_VLEN(type.info); i++) {
      T entry = entries[i];
      entry.name_off = word(entry.name_off);
      change(entry);
      put(entry);
    }
  }

  void copy(const btf_type& original) {
    btf_type type = original;
    auto kind = BTF_INFO_KIND(type.info);
    type.name_off = word(type.name_off);
    if (kind == BTF_KIND_TYPEDEF || is_modifier(kind)) type.type = keep(type.type);
    if (kind == BTF_KIND_PTR) type.type = 0;
    if (kind == BTF_KIND_FUNC_PROTO) type.info = BTF_KIND_FUNC_PROTO << 24, type.type = 0;
    put(type);
    switch (kind) {
      case BTF_KIND_STRUCT:
      case BTF_KIND_UNION:
        return put_tail<btf_member>(original, [&](auto& m) { m.type = keep(m.type); });
      case BTF_KIND_ENUM:
        return put_tail<btf_enum>(original, [](auto&) {});
      case BTF_KIND_ENUM64:
        return put_tail<btf_enum64>(original, [](auto&) {});
      case BTF_KIND_ARRAY: {
        auto array = *reinterpret_cast<const btf_array*>(&original + 1);
        array.type = keep(array.type);
        array.index_type = keep(array.index_type);
        return put(array);
      }
      case BTF_KIND_FUNC_PROTO:
        return;
      default:
        types_.append(reinterpret_cast<const char*>(&original + 1), Btf::tail_bytes(original));
    }
  }

  const Btf& kernel_;
  std::string types_, strings_{'\0'};
  std::unordered_map<std::uint32_t, std::uint32_t> ids_;
  std::unordered_map<__u32, __u32> words_;
  std::vector<std::uint32_t> order_;
  std::uint32_t pointer_ = 0;  ///< one pointer type is used for all
};

/// True if a relocation can refer to a type of that kind.
bool can_be_asked(unsigned kind) {
  switch (kind) {
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_INT:
    case BTF_KIND_FLOAT:
    case BTF_KIND_FWD:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string trimmed_types(const Btf& kernel, const void* object, std::size_t size) {
  auto sections = object_types(object, size);
  const std::string types(sections.types);  // the section in the object may be unaligned
  Btf local;
  if (!kernel.is_open() || !local.view(types.data(), types.size())) return {};

  std::unordered_set<std::string_view> names;
  bool answerable = true;
  bool whole = each_relocation(sections.relocations, [&](const Relocation& relocation) {
    if (relocation.kind == BPF_CORE_TYPE_ID_TARGET) answerable = false;
    auto* type = local.plain(relocation.type_id, false);
    auto name = type ? essential(local.name(type->name_off)) : std::string_view();
    if (name.empty())
      answerable = false;
    else
      names.insert(name);
  });
  if (!whole || !answerable) return {};

  // Most names are rejected by their first two characters.
  std::bitset<1 << 16> beginnings;
  auto beginning = [](std::string_view name) {
    return static_cast<std::uint8_t>(name[0]) << 8 |
           (name.size() > 1 ? static_cast<std::uint8_t>(name[1]) : 0);
  };
  for (auto name : names) beginnings.set(static_cast<std::size_t>(beginning(name)));
  Trimmer trimmer(kernel);
  for (std::uint32_t id = 1; id < kernel.count(); id++) {
    auto* type = kernel.type(id);
    if (!can_be_asked(BTF_INFO_KIND(type->info))) continue;
    auto* word = kernel.text(type->name_off);
    auto first =
        static_cast<std::uint8_t>(word[0]) << 8 | static_cast<std::uint8_t>(word[0] ? word[1] : 0);
    if (beginnings.test(static_cast<std::size_t>(first)) && names.contains(essential(word)))
      trimmer.keep(id);
  }
  return trimmer.finish();
}

}  // namespace coretap
