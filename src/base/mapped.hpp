// Files, or array maps of BPF, mapped into memory.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace coretap {

/// Shared with others that have the file mapped.
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

  /// Its first bytes, for PROT_READ, PROT_WRITE. False, with errno: it cannot be mapped.
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
