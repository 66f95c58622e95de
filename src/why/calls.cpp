#include "why/calls.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "why/members.hpp"

namespace coretap::why {

void Calls::take(std::string_view text, bool failed) {
  rapidjson::Document line;
  if (!read_object(line, text) || text_of(line, "type") != "row") return;
  counts_[failed][text_of(line, "syscall")] += number_of(line, "count");
}

void Calls::add_to(Facts& facts, double seconds) const {
  if (seconds <= 0) return;
  for (bool failed : {false, true}) {
    const std::string name = failed ? "calls.failed" : "calls";
    std::uint64_t all = 0;
    for (auto& [call, count] : counts_[failed]) all += count;
    if (!all) continue;
    facts.counters[failed ? name : name + ".all"] =
        static_cast<double>(all) * facts.seconds / seconds;
    auto most = std::ranges::max_element(counts_[failed], {}, [](auto& one) { return one.second; });
    facts.texts[name + ".most"] = fmt::format("{} ({:.0f} a second)", most->first,
                                              static_cast<double>(most->second) / seconds);
  }
}

}  // namespace coretap::why
