#include "unwind/kernel_maps.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace coretap::unwind {

namespace {

template <class Use>
bool with_mapped(int fd, std::size_t offset, std::size_t size, int rights, Use use) {
  if (!size) return true;
  auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto before = offset % page;
  void* at =
      mmap(nullptr, before + size, rights, MAP_SHARED, fd, static_cast<off_t>(offset - before));
  if (at == MAP_FAILED) return false;
  use(static_cast<char*>(at) + before);
  munmap(at, before + size);
  return true;
}

}  // namespace

bool write_map(int fd, std::size_t offset, const void* bytes, std::size_t size) {
  return with_mapped(fd, offset, size, PROT_READ | PROT_WRITE,
                     [&](char* at) { memcpy(at, bytes, size); });
}

bool read_map(int fd, std::size_t offset, void* bytes, std::size_t size) {
  return with_mapped(fd, offset, size, PROT_READ, [&](char* at) { memcpy(bytes, at, size); });
}

}  // namespace coretap::unwind
