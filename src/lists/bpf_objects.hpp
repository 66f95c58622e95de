// BPF programs, maps and links, and the processes that hold descriptors of them.
#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

enum class BpfKind { link, map, prog };
inline constexpr std::array<std::string_view, 3> kBpfKinds = {"link", "map", "prog"};

struct BpfId {
  BpfKind kind = BpfKind::prog;
  std::uint32_t id = 0;
  auto operator<=>(const BpfId&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct BpfHolder {
  std::uint32_t pid = 0;
  std::string comm;
  std::set<BpfId> objects;                 ///< each once, regardless of the number of descriptors
  std::vector<std::uint32_t> perf_events;  ///< descriptors that programs may be attached to
};

struct BpfHolders {
  std::vector<BpfHolder> holders;  ///< ordered by process
  std::size_t unreadable = 0;      ///< number of processes
};
BpfHolders bpf_holders(const std::string& proc = "/proc");

}  // namespace coretap
