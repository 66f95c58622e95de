// Writing into array maps of the kernel as into memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coretap::unwind {

/// Copies into the values of an array map made with BPF_F_MMAPABLE. It is mapped only for that
/// long: mapped pages would count as ours. False: it cannot be mapped.
bool write_map(int fd, std::size_t offset, const void* bytes, std::size_t size);
bool read_map(int fd, std::size_t offset, void* bytes, std::size_t size);

}  // namespace coretap::unwind
