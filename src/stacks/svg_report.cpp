#include "stacks/svg_report.hpp"

#include <string>

#include <fmt/format.h>

#include "base/clock.hpp"

namespace coretap {

namespace {

/// "offcputime --min-block-time 1000 -- make ..., 10.0 s, Linux 6.12.3"
std::string title(const Session& s, double seconds) {
  std::string text(s.tool.name);
  for (auto& [name, value] : s.config.given_options()) {
    if (name == "svg") continue;
    text += fmt::format(" --{}{}{}", name, value.empty() ? "" : " ", value);
  }
  // Its arguments may be secret, and pictures travel.
  if (!s.config.command.empty())
    text += fmt::format(" -- {}{}", s.config.command[0], s.config.command.size() > 1 ? " ..." : "");
  return fmt::format("{}, {:.1f} s, Linux {}", text, seconds, kernel_release());
}

}  // namespace

Result<void> SvgReport::open(Session& s) {
  wanted_ = !s.config.svg.empty();
  if (!wanted_ || s.config.svg == "-") return {};
  auto file = NewFile::create(s.config.svg);
  if (!file) return file.error();
  file_ = std::move(*file);
  // It gets its name at the end, in a directory that may be another user's.
  s.retained.add({Capability::dac_override, Capability::fowner});
  return {};
}

void SvgReport::begin(std::uint64_t scale) {
  ended_ns_ = monotonic_ns();
  if (wanted_) graph_.emplace(scale);
}

Result<void> SvgReport::finish(Session& s, std::string_view unit) {
  if (!graph_) return {};
  FlameTitle words{title(s, static_cast<double>(ended_ns_ - s.began_ns) / 1e9), std::string(unit),
                   s.ledger.losses()};
  words.notes.insert(words.notes.end(), s.plan.limits.begin(), s.plan.limits.end());
  auto svg = graph_->svg(words);
  if (file_) return file_->write(svg);
  s.out.write(svg);
  return {};
}

}  // namespace coretap
