// Parses an HTTP response to a request that asked to close the connection.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coretap::serve {

struct HttpAnswer {
  int status = 0;
  std::optional<std::uint64_t> retry_after;  ///< seconds
  std::string body;
};

/// None: it is incomplete, or invalid. `ended`: no more bytes will come.
std::optional<HttpAnswer> parse_answer(std::string_view bytes, bool ended);

}  // namespace coretap::serve
