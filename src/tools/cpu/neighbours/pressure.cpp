#include "tools/cpu/neighbours/pressure.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap::neighbours {

namespace {

constexpr std::size_t kMostCgroups = 4096;  // that are read before tracing

/// Nothing: there is no such directory.
std::optional<std::uint64_t> inode_of(const std::string& directory) {
  return parse_unsigned(recalled(Ask::inode, directory, [&] {
    struct stat st {};
    return ::stat(directory.c_str(), &st) == 0 ? std::to_string(st.st_ino) : std::string();
  }));
}

std::vector<std::string> directories_in(const std::string& directory) {
  return unpacked(recalled(Ask::directories, directory, [&] {
    std::vector<std::string> all;
    std::error_code failed;
    for (std::filesystem::directory_iterator it(directory, failed), end; !failed && it != end;
         it.increment(failed)) {
      std::error_code gone;
      if (it->is_directory(gone) && !it->is_symlink(gone))
        all.push_back(it->path().filename().native());
    }
    return packed(all);
  }));
}

}  // namespace

std::optional<std::uint64_t> some_total(std::string_view file) {
  constexpr std::string_view kTotal = " total=";
  if (!file.starts_with("some ")) return {};
  auto line = file.substr(0, file.find('\n'));
  auto at = line.find(kTotal);
  if (at == std::string_view::npos) return {};
  auto us = parse_unsigned(line.substr(at + kTotal.size()));
  if (!us) return {};
  return *us * 1000;
}

Pressure read_pressure(const std::string& directory) {
  Pressure all;
  for (std::size_t i = 0; i < all.size(); i++)
    if (auto text = read_file(fmt::format("{}/{}.pressure", directory, kResources[i])))
      all[i] = some_total(*text);
  return all;
}

void Pressures::begin(const std::string& mount) {
  mount_ = mount;
  all_ = true;
  read_below(mount);
}

void Pressures::read_below(const std::string& directory) {
  const auto inode = inode_of(directory);
  if (!inode) return;
  // A recording may name a directory often, or below itself.
  if (++read_ > kMostCgroups || directory.size() > PATH_MAX) {
    all_ = false;
    return;
  }
  before_[*inode] = read_pressure(directory);
  for (auto& name : directories_in(directory)) read_below(directory + "/" + name);
}

Pressure Pressures::growth(std::uint64_t cgroup, std::string_view path) {
  if (mount_.empty() || !path.starts_with('/')) return {};
  auto directory = mount_ + std::string(path);
  // Another cgroup may have the name by now.
  if (inode_of(directory) != cgroup) return {};
  auto now = read_pressure(directory);
  auto [found, is_new] = before_.try_emplace(cgroup);
  auto before = std::exchange(found->second, now);
  Pressure grown;
  for (std::size_t i = 0; i < now.size(); i++) {
    if (!now[i]) continue;
    if (is_new && !all_) continue;
    auto from = is_new ? 0 : before[i].value_or(*now[i]);
    grown[i] = *now[i] - std::min(*now[i], from);
  }
  return grown;
}

}  // namespace coretap::neighbours
