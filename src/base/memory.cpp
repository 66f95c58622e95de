#include "base/memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace coretap {

void give_memory_back() {
  malloc_trim(0);
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        auto page = static_cast<std::uintptr_t>(getpagesize());
        for (int i = 0; i < info->dlpi_phnum; i++) {
          auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || segment.p_flags & PF_W) continue;
          auto begin = (info->dlpi_addr + segment.p_vaddr) & ~(page - 1);
          auto end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
          madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
        }
        return 0;
      },
      nullptr);
}

}  // namespace coretap
