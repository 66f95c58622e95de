// Offsets of members of a tracepoint's record, from tracefs: for tracepoints of modules, whose
// types programs cannot use.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/options.hpp"
#include "coretap/result.hpp"

namespace coretap {

struct TracepointMember {
  std::uint32_t at = 0, size = 0;
};
/// By name; for members of variable length (__data_loc), the location of their 32-bit descriptor.
using TracepointFormat = std::map<std::string, TracepointMember, std::less<>>;

/// A field line of a format file.
struct TracepointField {
  std::string_view declaration;  ///< "char disk[32]", "__data_loc unsigned char[] cmnd"
  std::uint32_t at = 0, size = 0;
  bool is_signed = false;
};
void each_tracepoint_field(std::string_view text,
                           const std::function<void(const TracepointField&)>& visit);

TracepointFormat parse_tracepoint_format(std::string_view text);
Result<TracepointFormat> tracepoint_format(std::string_view category, std::string_view name);

/// A member of a tracepoint's record, and the variable that gets its offset.
struct MemberPlace {
  std::string_view event, member;
  Setting to;
  bool needed = true;
};
/// For Tool::look_up. For errors `what`: "SCSI command", `load`: how to get the tracepoints,
/// `instead`: another tool.
Result<void> look_up_members(Config& config, std::string_view category, std::string_view what,
                             std::string_view load, std::string_view instead,
                             const std::vector<MemberPlace>& places);

}  // namespace coretap
