#include "program/links.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

namespace coretap {

void detach(Links& links) {
  constexpr std::size_t kMostAtOnce = 32;
  const auto at_once = std::min(links.size(), kMostAtOnce);
  auto end_share = [&](std::size_t first) {
    for (auto i = first; i < links.size(); i += at_once) links[i] = Link(nullptr);
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t first = 1; first < at_once; first++) others.emplace_back(end_share, first);
    } catch (const std::system_error&) {
      // No more threads (ulimit -u): what they do not end goes one after another below.
    }
    end_share(0);
  }
  links.clear();
}

}  // namespace coretap
