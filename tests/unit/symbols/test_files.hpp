// Sample files for the symbol tests.
#pragma once
#include <link.h>

#include "expect.hpp"
#include "symbols/process_files.hpp"

namespace coretap::symbols::test {

inline std::string sample(const std::string& name) {
  return places::test_data() + "/symbols/" + name;
}
inline Fd open_file(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

/// Empty: this program is statically linked.
inline std::string path_of_libc() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        std::string name = info->dlpi_name;
        if (name.find("/libc.") != name.npos || name.find("/libc-") != name.npos)
          *static_cast<std::string*>(to) = name;
        return 0;
      },
      &path);
  return path;
}

}  // namespace coretap::symbols::test
