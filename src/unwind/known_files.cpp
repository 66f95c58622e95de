#include "unwind/known_files.hpp"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace coretap::unwind {

namespace {

constexpr std::uint64_t kPageBytes = 4096;

auto parts(const unwind_file_key& k) {
  return std::tie(k.inode, k.superblock, k.generation, k.modified_ns, k.size);
}

}  // namespace

bool KnownFiles::Before::operator()(const unwind_file_key& a, const unwind_file_key& b) const {
  return parts(a) < parts(b);
}

unwind_file file_entry(const File& file, std::uint16_t number) {
  unwind_file entry{};
  entry.file = number;
  entry.runtime = file.runtime;
  entry.page = file.state == File::no_memory ? UNWIND_LACK_MEMORY : UNWIND_LACK_CFI;
  if (file.state == File::ready) {
    entry.page = file.page;
    entry.pages = file.pages;
  }
  std::size_t count = 0;
  for (auto& s : file.elf.segments) {
    if (!s.executable || count == UNWIND_EXTENTS) continue;
    auto first = s.offset / kPageBytes;
    auto end = (s.offset + s.size + kPageBytes - 1) / kPageBytes;
    auto address = file.elf.address_of_mapping(first * kPageBytes, (end - first) * kPageBytes);
    if (!address || end > UINT32_MAX) continue;
    entry.extents[count++] = {static_cast<__u32>(first), static_cast<__u32>(end - first),
                              *address - file.base};
  }
  return entry;
}

std::optional<unwind_answer> KnownFiles::ask(const void* address) const {
  unwind_answer answer{};
  auto at = reinterpret_cast<std::uint64_t>(address);
  LIBBPF_OPTS(bpf_test_run_opts, options);
  options.ctx_in = &at;
  options.ctx_size_in = sizeof at;
  __u32 zero = 0;
  if (bpf_prog_test_run_opts(maps_.ask, &options) || options.retval != 1 ||
      bpf_map_lookup_elem(maps_.answer, &zero, &answer) || answer.start != at)
    return {};
  return answer;
}

/// Another program of coretap may interrupt the requested one, and use its memory: two answers
/// must be equal.
std::optional<unwind_file_key> KnownFiles::key_of(int fd) const {
  void* at = mmap(nullptr, kPageBytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED) return {};
  auto first = ask(at), second = ask(at);
  munmap(at, kPageBytes);
  if (!first || !second || memcmp(&first->key, &second->key, sizeof first->key) != 0) return {};
  unwind_file_key none{};
  if (memcmp(&first->key, &none, sizeof none) == 0) return {};
  return first->key;
}

bool KnownFiles::write(const unwind_file_key& key, const File& file, std::uint16_t number) const {
  auto entry = file_entry(file, number);
  return bpf_map_update_elem(maps_.files, &key, &entry, BPF_ANY) == 0;
}

bool KnownFiles::enter(const unwind_file_key& key, const KnownFile& file) {
  if (!write(key, *file.table, file.number)) return false;
  files_[key] = {file.table, file.number};
  return true;
}

bool KnownFiles::tell(int fd, const KnownFile& file) {
  auto key = key_of(fd);
  return key && enter(*key, file);
}

bool KnownFiles::tell_vdso(const KnownFile& file) { return enter({}, file); }

void KnownFiles::changed(const File& file) {
  for (auto& [key, known] : files_)
    if (known.file.lock().get() == &file) write(key, file, known.number);
}

void KnownFiles::forget(const File& file) {
  std::erase_if(files_, [&](auto& entry) {
    auto known = entry.second.file.lock();
    if (known && known.get() != &file) return false;
    bpf_map_delete_elem(maps_.files, &entry.first);
    return true;
  });
}

}  // namespace coretap::unwind
