#include "text/errors.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "text/sanitize.hpp"

namespace coretap {

void print_error(std::string_view program, const Error& error) {
  auto text = fmt::format("{}: {}", program, error.what);
  if (!error.why.empty()) text += ": " + error.why;
  text += '\n';
  if (!error.hint.empty()) text += fmt::format("{}: hint: {}\n", program, error.hint);
  // Paths and names from the command line are echoed.
  std::string safe;
  std::string_view rest = text;
  while (!rest.empty()) {
    auto line = rest.substr(0, rest.find('\n'));
    safe += printable(line) + '\n';
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  fputs(safe.c_str(), stderr);
}

int end_of(Sink& out) {
  out.flush();
  if (!out.failed()) return kOk;
  print_error("coretap", out.error());
  return kFailed;
}

}  // namespace coretap
