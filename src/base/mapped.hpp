// Files or BPF array maps, mapped into memory.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace coretap {

/// A shared mapping (MAP_SHARED).
class Mapped {
 public:
  Mapped() = default;
  Mapped(Mapped&& other) noexcept { *this = std::move(other); }
  Mapped& operator=(Mapped&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapped() {
    if (data_) munmap(data_, bytes_);
  }

  /// Maps the first `bytes` bytes with rights PROT_READ, PROT_WRITE. False, with errno: mmap()
  /// failed.
  bool open(int fd, std::size_t bytes, int rights) {
    auto* data = mmap(nullptr, bytes, rights, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return false;
    *this = Mapped(data, bytes);
    return true;
  }
  char* data() const { return static_cast<char*>(data_); }  ///< nullptr: nothing is mapped

 private:
  Mapped(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace coretap
