// Pressure of cgroups (PSI): the growth of the kernel's own totals, beside the tool's.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace coretap::neighbours {

inline constexpr std::array<std::string_view, 3> kResources = {"cpu", "io", "memory"};

/// Time in which at least one task lacked the resource; none: not known.
using Pressure = std::array<std::optional<std::uint64_t>, kResources.size()>;  // ns

/// The totals in the cgroup's directory.
Pressure read_pressure(const std::string& directory);
/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234": 1234000
std::optional<std::uint64_t> some_total(std::string_view file);

class Pressures {
 public:
  /// Reads all cgroups below the mount point of cgroup v2.
  void begin(const std::string& mount);
  /// The growth since the last call, or since the start. A cgroup without a reading is newer than
  /// that.
  Pressure growth(std::uint64_t cgroup, std::string_view path);

 private:
  void read_below(const std::string& directory);

  std::string mount_;
  std::map<std::uint64_t, Pressure> before_;
  std::size_t read_ = 0;  ///< directories, before tracing
  bool all_ = false;      ///< there was a reading of each cgroup
};

}  // namespace coretap::neighbours
