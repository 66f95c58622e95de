// Where the members of a tracepoint's record lie, as tracefs says: for tracepoints of modules,
// whose types no program can use.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap {

struct TracepointMember {
  std::uint32_t at = 0, size = 0;
};
/// By name; of those with a length of their own (__data_loc) the place of the 32 bits that tell it.
using TracepointFormat = std::map<std::string, TracepointMember, std::less<>>;

/// A line of such a file.
struct TracepointField {
  std::string_view declaration;  ///< "char disk[32]", "__data_loc unsigned char[] cmnd"
  std::uint32_t at = 0, size = 0;
  bool is_signed = false;
};
void each_tracepoint_field(std::string_view text,
                           const std::function<void(const TracepointField&)>& visit);

TracepointFormat parse_tracepoint_format(std::string_view text);
Result<TracepointFormat> tracepoint_format(std::string_view category, std::string_view name);

}  // namespace coretap
