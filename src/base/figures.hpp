// Small computations that several parts of the output share.
#pragma once
#include <cstdint>
#include <ranges>

namespace coretap {

/// A part in per cent; 0 of nothing.
inline double percent(std::uint64_t part, std::uint64_t whole) {
  return whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// FNV-1a: the same number for the same bytes in every run.
inline std::uint32_t fnv1a(const std::ranges::range auto& bytes) {
  std::uint32_t hash = 2166136261U;
  for (auto byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
  return hash;
}

}  // namespace coretap
