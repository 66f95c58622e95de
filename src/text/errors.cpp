#include "text/errors.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/colour.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"

namespace coretap {

namespace {

/// Messages repeat paths and names from the command line: cleans line by line, so that only our own
/// newlines remain.
std::string safe(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    all += printable(take_until(text, '\n'));
    all += '\n';
  }
  return all;
}

}  // namespace

int print_error(std::string_view program, const Error& error) {
  auto what = fmt::format("{}: {}", program, error.what);
  // The position in the command line is printed on separate lines.
  if (!error.why.empty()) what += (error.why.starts_with('\n') ? "" : ": ") + error.why;
  auto text = painted(STDERR_FILENO, Paint::error, safe(what));
  if (!error.hint.empty()) text += safe(fmt::format("{}: hint: {}", program, error.hint));
  fputs(text.c_str(), stderr);
  return error.status;
}

int end_of(Sink& out) {
  out.flush();
  if (!out.failed()) return kOk;
  print_error("coretap", out.error());
  return kFailed;
}

int print_text(std::string_view text) {
  Sink out;
  out.write(text);
  return end_of(out);
}

}  // namespace coretap
