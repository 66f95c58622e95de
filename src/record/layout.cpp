#include "record/layout.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "kernel/min_core_btf.hpp"
#include "lib/core/shared.h"

namespace coretap::record {

namespace {

constexpr std::uint32_t kMostBytes = 1 << 20;
constexpr std::size_t kMostMembers = 4096, kMostName = 256;
constexpr std::uint32_t kMostElements =
    64;  ///< of an array of structs; more of them are one member
constexpr int kMostDepth = 16;

template <class T>
const T* tail(const btf_type* type) {
  return reinterpret_cast<const T*>(type + 1);
}

bool is_number(Member::Kind kind) {
  return kind == Member::unsigned_number || kind == Member::signed_number ||
         kind == Member::boolean;
}

/// FNV-1a: the same in each version of coretap.
std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (char c : bytes) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return hash;
}

/// Collects the members of a type.
class Flattened {
 public:
  explicit Flattened(const Btf& types) : types_(types) {}

  Layout layout(std::uint32_t id) {
    const auto bytes = size_of(id);
    if (!bytes || bytes > kMostBytes) return {};
    add(id, 0, "", 0);
    if (all_.size() > kMostMembers) return {};
    return {static_cast<std::uint32_t>(bytes), std::move(all_)};
  }

 private:
  std::uint64_t size_of(std::uint32_t id) const {
    auto* type = types_.plain(id);
    if (!type) return 0;
    switch (BTF_INFO_KIND(type->info)) {
      case BTF_KIND_INT:
      case BTF_KIND_ENUM:
      case BTF_KIND_ENUM64:
      case BTF_KIND_STRUCT:
      case BTF_KIND_UNION:
      case BTF_KIND_FLOAT:
        return type->size;
      case BTF_KIND_PTR:
        return 8;
      case BTF_KIND_ARRAY: {
        auto* array = tail<btf_array>(type);
        return array->nelems * size_of(array->type);
      }
      default:
        return 0;
    }
  }

  static Member::Kind kind_of(const btf_type* type) {
    switch (BTF_INFO_KIND(type->info)) {
      case BTF_KIND_INT: {
        const auto encoding = BTF_INT_ENCODING(*tail<std::uint32_t>(type));
        if (encoding & BTF_INT_BOOL) return Member::boolean;
        return encoding & BTF_INT_SIGNED ? Member::signed_number : Member::unsigned_number;
      }
      case BTF_KIND_ENUM:
      case BTF_KIND_ENUM64:
        return BTF_INFO_KFLAG(type->info) ? Member::signed_number : Member::unsigned_number;
      case BTF_KIND_PTR:
        return Member::unsigned_number;
      default:
        return Member::bytes_only;
    }
  }

  void put(std::string path, std::uint64_t at, std::uint64_t bytes, std::uint64_t count,
           Member::Kind kind) {
    if (all_.size() > kMostMembers || path.size() > kMostName || at + bytes * count > kMostBytes)
      return;
    all_.push_back({std::move(path), static_cast<std::uint32_t>(at),
                    static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(count), kind});
  }

  void add(std::uint32_t id, std::uint64_t at, const std::string& path, int depth) {
    auto* type = types_.plain(id);
    const auto bytes = size_of(id);
    if (!type || !bytes || depth > kMostDepth) return;
    const auto kind = BTF_INFO_KIND(type->info);
    if (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION)
      add_struct(*type, at, path, depth);
    else if (kind == BTF_KIND_ARRAY)
      add_array(*type, at, path, depth);
    else
      put(path, at, bytes, 1, kind_of(type));
  }

  void add_struct(const btf_type& type, std::uint64_t at, const std::string& path, int depth) {
    if (types_.name(type.name_off) == "text" && type.size == sizeof(::text))
      return put(path, at, type.size, 1, Member::text);
    auto* members = tail<btf_member>(&type);
    for (unsigned i = 0; i < BTF_INFO_VLEN(type.info); i++) {
      const bool fields = BTF_INFO_KFLAG(type.info);
      const auto bit = fields ? BTF_MEMBER_BIT_OFFSET(members[i].offset) : members[i].offset;
      const auto bits = fields ? BTF_MEMBER_BITFIELD_SIZE(members[i].offset) : 0;
      auto inner = path;
      if (const auto name = types_.name(members[i].name_off); !name.empty())
        inner += (path.empty() ? "" : ".") + std::string(name);
      // Bits keep their place in a byte, or are another member.
      if (bits)
        put(fmt::format("{}#{}+{}", inner, bit % 8, bits), at + bit / 8, (bit % 8 + bits + 7) / 8,
            1, Member::bytes_only);
      else
        add(members[i].type, at + bit / 8, inner, depth + 1);
    }
  }

  void add_array(const btf_type& type, std::uint64_t at, const std::string& path, int depth) {
    auto* array = tail<btf_array>(&type);
    auto* element = types_.plain(array->type);
    const auto bytes = size_of(array->type);
    const auto kind = BTF_INFO_KIND(element->info);
    const bool plain = kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION && kind != BTF_KIND_ARRAY;
    if (plain) return put(path, at, bytes, array->nelems, kind_of(element));
    if (array->nelems <= kMostElements) {
      for (std::uint32_t i = 0; i < array->nelems; i++)
        add(array->type, at + i * bytes, fmt::format("{}[{}]", path, i), depth + 1);
      return;
    }
    // With the layout of an element in its name: another one makes it another member.
    const auto inner = Flattened(types_).layout(array->type).packed();
    put(fmt::format("{}#{:x}", path, hash_of(inner)), at, bytes, array->nelems, Member::bytes_only);
  }

  const Btf& types_;
  std::vector<Member> all_;
};

/// Without what only makes it unique.
std::string shown(const std::string& path) { return path.substr(0, path.find('#')); }

}  // namespace

// Bytes, number of members; of each: kind, place, bytes, count, length of the name, name.
std::string Layout::packed() const {
  std::string to;
  put_varint(to, bytes);
  put_varint(to, members.size());
  for (auto& one : members) {
    for (auto number : {std::uint32_t{one.kind}, one.at, one.bytes, one.count})
      put_varint(to, number);
    put_varint(to, one.path.size());
    to += one.path;
  }
  return to;
}

std::optional<Layout> Layout::of(std::string_view packed) {
  Layout all;
  auto take = [&](std::uint64_t& number, std::uint64_t most) {
    return take_varint(packed, number) && number <= most;
  };
  std::uint64_t size = 0, count = 0;
  if (!take(size, kMostBytes) || !size || !take(count, kMostMembers)) return {};
  all.bytes = static_cast<std::uint32_t>(size);
  for (; count; count--) {
    std::uint64_t kind = 0, at = 0, bytes = 0, elements = 0, length = 0;
    if (!take(kind, Member::text) || !take(at, size) || !take(bytes, size) ||
        !take(elements, size) || !take(length, kMostName) || length > packed.size())
      return {};
    const auto as = static_cast<Member::Kind>(kind);
    if (!bytes || !elements || bytes * elements > size - at) return {};
    if (as == Member::text ? bytes != sizeof(::text) || elements != 1
                           : is_number(as) && bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
      return {};
    all.members.push_back({std::string(packed.substr(0, length)), static_cast<std::uint32_t>(at),
                           static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(elements),
                           as});
    packed.remove_prefix(length);
  }
  if (!packed.empty()) return {};
  return all;
}

Layout Layout::of(const Btf& types, std::uint32_t id) { return Flattened(types).layout(id); }

ObjectLayouts::ObjectLayouts(std::string_view object)
    : bytes_(object_types(object.data(), object.size()).types) {
  if (!bytes_.empty()) types_.view(bytes_.data(), bytes_.size());
}

Layout ObjectLayouts::of_struct(std::string_view name) const {
  return Layout::of(types_, types_.find(name, BTF_KIND_STRUCT));
}

/// A map is a variable of a struct whose members point to the types of keys and values.
std::uint32_t ObjectLayouts::type_in_map(std::string_view map, std::string_view member) const {
  auto* variable = types_.type(types_.find(map, BTF_KIND_VAR));
  auto* shape = variable ? types_.plain(variable->type) : nullptr;
  if (!shape || BTF_INFO_KIND(shape->info) != BTF_KIND_STRUCT) return 0;
  auto* members = tail<btf_member>(shape);
  for (unsigned i = 0; i < BTF_INFO_VLEN(shape->info); i++) {
    auto* pointer = types_.plain(members[i].type);
    if (types_.name(members[i].name_off) == member && pointer &&
        BTF_INFO_KIND(pointer->info) == BTF_KIND_PTR)
      return pointer->type;
  }
  return 0;
}

Layout ObjectLayouts::of_key(std::string_view map) const {
  return Layout::of(types_, type_in_map(map, "key"));
}

Layout ObjectLayouts::of_value(std::string_view map, std::size_t value_bytes) const {
  auto id = type_in_map(map, "value");
  auto only_member = [&](const btf_type* type) {
    return type && BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT && BTF_INFO_VLEN(type->info) == 1
               ? tail<btf_member>(type)
               : nullptr;
  };
  if (auto* of_cpu = only_member(types_.plain(id));
      of_cpu && types_.name(of_cpu->name_off) == "of_cpu")
    id = of_cpu->type;
  auto all = Layout::of(types_, id);
  if (all.bytes == value_bytes) return all;
  auto* type = types_.plain(id);
  if (auto* only = only_member(type)) type = types_.plain(only->type);
  return type && BTF_INFO_KIND(type->info) == BTF_KIND_ARRAY
             ? Layout::of(types_, tail<btf_array>(type)->type)
             : all;
}

Move::Move(const Layout& from, const Layout& to) : from_bytes_(from.bytes), to_bytes_(to.bytes) {
  std::unordered_map<std::string_view, const Member*> old;
  for (auto& member : from.members) old.try_emplace(member.path, &member);
  for (auto& member : to.members) {
    auto found = old.find(member.path);
    if (found != old.end())
      add(*found->second, member);
    else
      lacks_.push_back({shown(member.path), "not in this recording", member.at,
                        std::size_t{member.bytes} * member.count});
  }
}

void Move::add(const Member& from, const Member& to) {
  const bool numbers = is_number(from.kind) && is_number(to.kind);
  const bool wider = from.bytes < to.bytes;
  bool fits = from.kind == to.kind && from.bytes == to.bytes;
  // Each value of the former type is one of the new type.
  if (numbers && !fits)
    fits = from.kind == Member::signed_number
               ? wider && to.kind == Member::signed_number
               : wider || (from.bytes == to.bytes && to.kind == Member::unsigned_number);
  if (to.kind == Member::boolean && from.kind != to.kind) fits = false;
  if (!fits || (from.kind == Member::bytes_only ? from.count != to.count : from.count > to.count)) {
    lacks_.push_back({shown(to.path), "another type in this recording", to.at,
                      std::size_t{to.bytes} * to.count});
    return;
  }
  if (to.kind == Member::text) return texts_.emplace_back(from.at, to.at), void();
  Step next{from.at, to.at, from.bytes, to.bytes, from.count, from.kind == Member::signed_number};
  if (next.from_bytes == next.to_bytes) {  // as one block of bytes
    next.from_bytes = next.to_bytes = from.bytes * from.count;
    next.count = 1;
    if (auto* last = steps_.empty() ? nullptr : &steps_.back();
        last && last->count == 1 && last->from_bytes == last->to_bytes &&
        last->from + last->from_bytes == next.from && last->to + last->to_bytes == next.to) {
      last->from_bytes = last->to_bytes += next.to_bytes;
      return;
    }
  }
  steps_.push_back(next);
}

/// Its offset is from the start of the record, whose length has changed.
void Move::move_text(const char* from, char* to) const {
  ::text words{};
  memcpy(&words, from, sizeof words);
  if (words.at >= from_bytes_) {
    const auto at = words.at - from_bytes_ + to_bytes_;
    if (at > UINT16_MAX)
      words = {};
    else
      words.at = static_cast<__u16>(at);
  }
  memcpy(to, &words, sizeof words);
}

std::string Move::operator()(std::string_view from) const {
  std::string to(to_bytes_, '\0');
  to += from.substr(from_bytes_);
  for (auto& step : steps_) {
    if (step.count == 1 && step.from_bytes == step.to_bytes) {
      memcpy(to.data() + step.to, from.data() + step.from, step.to_bytes);
      continue;
    }
    for (std::uint32_t i = 0; i < step.count; i++) {
      auto* element = from.data() + step.from + std::size_t{i} * step.from_bytes;
      auto* place = to.data() + step.to + std::size_t{i} * step.to_bytes;
      // Little-endian, as all machines that coretap runs on.
      memcpy(place, element, step.from_bytes);
      const bool negative = (static_cast<std::uint8_t>(element[step.from_bytes - 1]) & 0x80) != 0;
      if (step.is_signed && step.from_bytes < step.to_bytes && negative)
        memset(place + step.from_bytes, 0xff, step.to_bytes - step.from_bytes);
    }
  }
  for (auto& [at, place] : texts_) move_text(from.data() + at, to.data() + place);
  return to;
}

}  // namespace coretap::record
