#include "program/picture.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

PictureTitle picture_title(const Session& s, std::uint64_t lasted_ns, std::string_view unit) {
  std::string text(s.tool.name);
  for (auto& [name, value] : s.config.given_options()) {
    if (name == "svg" || name == "pprof" || name == "heatmap" || name == "diff") continue;
    text += fmt::format(" --{}{}{}", name, value.empty() ? "" : " ", value);
  }
  // The command's arguments may be secret, and pictures are shared.
  if (!s.config.command.empty())
    text += fmt::format(" -- {}{}", s.config.command[0], s.config.command.size() > 1 ? " ..." : "");
  auto seconds = static_cast<double>(lasted_ns) / 1e9;
  PictureTitle words{fmt::format("{}, {:.1f} s, Linux {}", text, seconds, kernel_release()),
                     std::string(unit), s.ledger.losses()};
  words.notes.insert(words.notes.end(), s.plan.limits.begin(), s.plan.limits.end());
  return words;
}

void put_code(std::string& out, std::string_view code) {
  while (!code.empty()) {
    auto line = take_until(code, '\n');
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty() || line.starts_with("//")) continue;
    out += line;
    out += '\n';
  }
}

std::string grouped(std::uint64_t value) {
  auto digits = std::to_string(value);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

}  // namespace coretap
