#include "base/colour.hpp"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace coretap {

namespace {

ColourMode chosen = ColourMode::automatic;

bool takes_colours(int fd) {
  if (chosen != ColourMode::automatic) return chosen == ColourMode::always;
  auto set = [](const char* variable) {
    const char* value = getenv(variable);
    return std::string_view(value ? value : "");
  };
  return set("NO_COLOR").empty() && !set("TERM").empty() && set("TERM") != "dumb" && isatty(fd);
}

/// Parameters of SGR, Select Graphic Rendition (ECMA-48), by Paint. None assumes a certain
/// background.
constexpr std::string_view kCodes[] = {"1;31" /* bold red */, "1" /* bold */, "33" /* yellow */};

}  // namespace

void set_colour_mode(ColourMode mode) { chosen = mode; }

std::string painted(int fd, Paint paint, std::string_view text) {
  std::string_view end = text.ends_with('\n') ? "\n" : "";
  text.remove_suffix(end.size());
  if (text.empty() || !takes_colours(fd)) return fmt::format("{}{}", text, end);
  return fmt::format("\x1b[{}m{}\x1b[0m{}", kCodes[static_cast<int>(paint)], text, end);
}

}  // namespace coretap
