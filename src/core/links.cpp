#include "core/links.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

namespace coretap {

void detach(Links& links) {
  constexpr std::size_t kMostAtOnce = 32;
  std::vector<Links> shares(std::min(links.size(), kMostAtOnce));
  for (std::size_t i = 0; i < links.size(); i++)
    shares[i % shares.size()].push_back(std::move(links[i]));
  links.clear();
  std::vector<std::jthread> waiting;
  try {
    for (auto& share : shares)
      if (&share != &shares.front()) waiting.emplace_back([&share] { share.clear(); });
  } catch (const std::system_error&) {
    // No more threads (ulimit -u): what is left goes one after another with `shares`.
  }
  if (!shares.empty()) shares.front().clear();
}

}  // namespace coretap
