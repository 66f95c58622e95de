#include <sys/stat.h>

#include <fmt/format.h>

#include "coretap/fields.hpp"
#include "lib/core/shared.h"

namespace coretap {

std::string path_of(std::string_view components, bool cut) {
  std::string path = cut ? "..." : "";
  path.reserve(components.size() + 4);
  while (!components.empty()) {
    components.remove_suffix(1);
    auto before = components.rfind('\0');
    auto from = before == components.npos ? 0 : before + 1;
    path += '/';
    path += components.substr(from);
    components = components.substr(0, from);
  }
  return path.empty() ? "/" : path;
}

std::string file_path(std::string_view text, std::uint32_t kind) {
  return kind == PATH_KIND_NAME ? std::string(text) : path_of(text, kind == PATH_KIND_CUT);
}

std::string file_type(std::uint32_t mode) {
  return S_ISREG(mode) ? "R" : S_ISSOCK(mode) ? "S" : "O";
}

std::string file_name(std::uint32_t mode, std::uint64_t inode, std::string_view path) {
  if (S_ISSOCK(mode)) return fmt::format("socket:[{}]", inode);
  if (S_ISFIFO(mode) && path.empty()) return fmt::format("pipe:[{}]", inode);
  if (path.starts_with('[')) return fmt::format("anon_inode:{}", path);
  return std::string(path);
}

}  // namespace coretap
