// Access to array maps of the kernel as to memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coretap::unwind {

/// Copies into the values of an array map created with BPF_F_MMAPABLE. Maps it only for the copy,
/// as mapped pages would count as this process's memory. False: it cannot be mapped.
bool write_map(int fd, std::size_t offset, const void* bytes, std::size_t size);
bool read_map(int fd, std::size_t offset, void* bytes, std::size_t size);

}  // namespace coretap::unwind
