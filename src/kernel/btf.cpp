#include "kernel/btf.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "coretap/small_files.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostBytes = 256 << 20;
constexpr std::size_t kMostInside = 1024;
constexpr int kMostModifiers = 32;  // bounds the walk: types may refer to each other in a cycle

template <class T>
const T* tail(const btf_type* type) {
  return reinterpret_cast<const T*>(type + 1);
}

}  // namespace

std::size_t Btf::tail_bytes(const btf_type& type) {
  std::size_t n = BTF_INFO_VLEN(type.info);
  switch (BTF_INFO_KIND(type.info)) {
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
      return 4;
    case BTF_KIND_ARRAY:
      return sizeof(btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return n * sizeof(btf_member);
    case BTF_KIND_ENUM:
      return n * sizeof(btf_enum);
    case BTF_KIND_ENUM64:
      return n * sizeof(btf_enum64);
    case BTF_KIND_FUNC_PROTO:
      return n * sizeof(btf_param);
    case BTF_KIND_DATASEC:
      return n * sizeof(btf_var_secinfo);
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
      return 0;
    default:
      return SIZE_MAX;  // unknown kind: larger than any file
  }
}

Btf::~Btf() { close(); }

void Btf::close() {
  if (mapped_)
    munmap(data_, size_);
  else
    free(data_);
  data_ = nullptr;
  types_ = nullptr;
  base_ = nullptr;
  first_ = first_text_ = 0;
  strings_ = {};
  mapped_ = false;
  std::vector<std::uint32_t>().swap(offsets_);  // clear() would keep the memory
}

bool Btf::open(const char* path, const Btf* base) {
  close();
  errno = 0;
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat st {};
  if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < static_cast<off_t>(sizeof(btf_header)) ||
      static_cast<std::size_t>(st.st_size) > kMostBytes) {
    const int error = fd < 0 || errno ? errno : EINVAL;
    if (fd >= 0) ::close(fd);
    errno = error;
    return false;
  }
  size_ = static_cast<std::size_t>(st.st_size);
  // /sys/kernel/btf files can be mapped since 6.16 (a539e2a6d51d).
  data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  mapped_ = data_ != MAP_FAILED;
  if (!mapped_) {
    data_ = malloc(size_);
    if (!data_ || read_bytes(fd, 0, data_, size_) != size_) size_ = 0;
  }
  const int error = size_ ? EINVAL : errno;
  ::close(fd);
  const bool good = view(data_, size_, base);
  if (!good) errno = error;
  return good;
}

bool Btf::view(const void* data, std::size_t size, const Btf* base_types) {
  types_ = nullptr;
  offsets_.clear();
  base_ = base_types;
  first_ = base_ ? base_->count() : 0;
  first_text_ = base_ ? base_->end_of_text() : 0;
  btf_header header{};
  if (!data || size < sizeof header) return false;
  memcpy(&header, data, sizeof header);
  auto inside = [&](std::uint64_t offset, std::uint64_t length) {
    return header.hdr_len + offset + length <= size;
  };
  if (header.magic != BTF_MAGIC || !inside(header.type_off, header.type_len) ||
      !inside(header.str_off, header.str_len) || (header.str_len == 0 && !base_))
    return false;
  auto* base = static_cast<const char*>(data) + header.hdr_len;
  if (reinterpret_cast<std::uintptr_t>(base + header.type_off) % alignof(btf_type) != 0)
    return false;  // the kernel rejects it too
  strings_ = {base + header.str_off, header.str_len};
  if (!strings_.empty() && strings_.back() != '\0') return false;
  offsets_.reserve(header.type_len / 32);
  if (!base_) offsets_.push_back(0);  // id 0 is void
  for (std::uint32_t at = 0; at < header.type_len;) {
    if (header.type_len - at < sizeof(btf_type)) return false;
    auto bytes = tail_bytes(*reinterpret_cast<const btf_type*>(base + header.type_off + at));
    if (bytes > header.type_len - at - sizeof(btf_type)) return false;
    offsets_.push_back(at);
    at += static_cast<std::uint32_t>(sizeof(btf_type) + bytes);
  }
  types_ = base + header.type_off;
  return true;
}

const btf_type* Btf::type(std::uint32_t id) const {
  if (id < first_) return base_->type(id);
  if (!types_ || id == 0 || id >= count()) return nullptr;
  return own_type(id);
}

const btf_type* Btf::own_type(std::uint32_t id) const {
  return reinterpret_cast<const btf_type*>(types_ + offsets_[id - first_]);
}

const btf_type* Btf::plain(std::uint32_t id, bool typedefs) const {
  auto* t = type(id);
  for (int i = 0; t && i < kMostModifiers; i++) {
    auto kind = BTF_INFO_KIND(t->info);
    const bool modifier = kind == BTF_KIND_CONST || kind == BTF_KIND_VOLATILE ||
                          kind == BTF_KIND_RESTRICT || kind == BTF_KIND_TYPE_TAG ||
                          (kind == BTF_KIND_TYPEDEF && typedefs);
    if (!modifier) return t;
    t = type(t->type);
  }
  return nullptr;
}

const char* Btf::text(std::uint32_t offset) const {
  if (offset < first_text_) return base_->text(offset);
  offset -= first_text_;
  // The last string is NUL-terminated, so all are.
  return offset < strings_.size() ? strings_.data() + offset : "";
}

std::uint32_t Btf::name_offset(std::string_view name) const {
  std::string word;
  word += '\0';
  word += name;
  word += '\0';
  // Each name occurs once, and a terminated string precedes every name.
  auto* found =
      static_cast<const char*>(memmem(strings_.data(), strings_.size(), word.data(), word.size()));
  return found ? first_text_ + static_cast<std::uint32_t>(found - strings_.data()) + 1 : 0;
}

std::uint32_t Btf::find(std::string_view name, unsigned kind) const {
  if (!types_ || name.empty()) return 0;
  for (auto id = first(); id < count(); id++) {
    auto* t = own_type(id);
    if (BTF_INFO_KIND(t->info) != kind) continue;
    auto* word = text(t->name_off);
    if (word[0] == name[0] && word == name) return id;
  }
  return base_ ? base_->find(name, kind) : 0;
}

std::vector<std::uint32_t> Btf::find(const std::vector<std::string_view>& names,
                                     unsigned kind) const {
  std::vector<std::uint32_t> found(names.size());
  // Backwards, so that the first type of a name is the one that remains.
  for (auto id = count(); types_ && id-- > first();) {
    auto* t = own_type(id);
    if (BTF_INFO_KIND(t->info) != kind) continue;
    auto word = name(t->name_off);
    if (auto at = std::find(names.begin(), names.end(), word); at != names.end())
      found[static_cast<std::size_t>(at - names.begin())] = id;
  }
  if (!base_) return found;
  auto theirs = base_->find(names, kind);
  for (std::size_t i = 0; i < found.size(); i++)
    if (!found[i]) found[i] = theirs[i];
  return found;
}

bool Btf::has_member(const btf_type* type, std::string_view member) const {
  std::vector<const btf_type*> inside{type};
  for (std::size_t at = 0; at < inside.size(); at++) {
    auto* outer = inside[at];
    auto kind = outer ? BTF_INFO_KIND(outer->info) : 0;
    if (kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION) continue;
    auto* members = tail<btf_member>(outer);
    for (unsigned i = 0; i < BTF_INFO_VLEN(outer->info); i++) {
      auto word = name(members[i].name_off);
      if (word == member) return true;
      if (word.empty() && inside.size() < kMostInside)  // a damaged type may contain itself
        inside.push_back(this->type(members[i].type));
    }
  }
  return false;
}

std::optional<std::uint32_t> Btf::member_offset(const btf_type* type,
                                                std::string_view member) const {
  auto* members = tail<btf_member>(type);
  for (unsigned i = 0; i < BTF_INFO_VLEN(type->info); i++)
    if (name(members[i].name_off) == member)
      return (BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BIT_OFFSET(members[i].offset)
                                         : members[i].offset) /
             8;
  return {};
}

Btf::Enumerators Btf::enumerators(const btf_type* type) const {
  Enumerators all;
  if (!type) return all;
  unsigned n = BTF_INFO_VLEN(type->info);
  if (BTF_INFO_KIND(type->info) == BTF_KIND_ENUM) {
    bool is_signed = BTF_INFO_KFLAG(type->info);
    for (auto* v = tail<btf_enum>(type); v != tail<btf_enum>(type) + n; v++)
      all.emplace_back(
          name(v->name_off),
          is_signed ? v->val : static_cast<std::int64_t>(static_cast<std::uint32_t>(v->val)));
  } else if (BTF_INFO_KIND(type->info) == BTF_KIND_ENUM64) {
    for (auto* v = tail<btf_enum64>(type); v != tail<btf_enum64>(type) + n; v++)
      all.emplace_back(
          name(v->name_off),
          static_cast<std::int64_t>(static_cast<std::uint64_t>(v->val_hi32) << 32 | v->val_lo32));
  }
  return all;
}

const btf_type* Btf::enum_with(std::string_view enumerator) const {
  auto offset = types_ ? name_offset(enumerator) : 0;
  if (!offset) return nullptr;
  for (auto id = first(); id < count(); id++) {
    auto* t = own_type(id);
    if (t->name_off || BTF_INFO_KIND(t->info) != BTF_KIND_ENUM) continue;
    auto* values = tail<btf_enum>(t);
    for (unsigned i = 0; i < BTF_INFO_VLEN(t->info); i++)
      if (values[i].name_off == offset) return t;
  }
  return nullptr;
}

}  // namespace coretap
