// Options and messages that both commands share.
#pragma once
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/sanitize.hpp"
#include "text/errors.hpp"

namespace coretap {

struct Verbosity {
  int level = 0;        ///< number of -v options
  std::string library;  ///< for tplist: a path or name
};

/// -v, -vv
inline Option verbosity(std::string_view doc) {
  return Option{'v',
                "verbose",
                {},
                doc,
                [](Config& c, std::string_view) -> Result<void> {
                  c.own<Verbosity>().level++;
                  return {};
                }}
      .also("verbosity");
}

inline void list_note(std::string_view command, std::string_view words) {
  fmt::print(stderr, "coretap: {}: note: {}\n", command, printable(words));
}

/// Returns the exit status.
inline int list_failed(std::string_view command, Error error) {
  error.what = fmt::format("{}: {}", command, error.what);
  print_error("coretap", error);
  return error.status;
}

}  // namespace coretap
