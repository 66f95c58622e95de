// Lines of small files of the kernel, by words. (String streams would bring the C++ library's
// locales into the static executable: 150 kB.)
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coretap::why {

/// Calls `take` with the words of each line that has any; a file that cannot be read has none.
void each_line(const std::string& path,
               const std::function<void(const std::vector<std::string>&)>& take);

/// Without its end of line; empty: the file cannot be read.
std::string first_line_of(const std::string& path);

/// stat_fields() of a process. Nothing: it has ended.
std::vector<std::string> stat_of(std::uint32_t pid);

}  // namespace coretap::why
