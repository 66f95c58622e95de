#include "coretap/tracepoint_format.hpp"

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/parse.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kMostRecordBytes = 1 << 16;  // maximum size of a record

/// "offset:8;" -> 8
std::uint32_t number_behind(std::string_view line, std::string_view word) {
  auto at = line.find(word);
  if (at == line.npos) return 0;
  line.remove_prefix(at + word.size());
  auto number = parse_unsigned(take_until(line, ';'));
  return number && *number < kMostRecordBytes ? static_cast<std::uint32_t>(*number) : 0;
}

}  // namespace

void each_tracepoint_field(std::string_view text,
                           const std::function<void(const TracepointField&)>& visit) {
  constexpr std::string_view kField = "field:";
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    auto start = line.find(kField);
    if (line.starts_with("print fmt:")) break;
    if (start == line.npos) continue;
    auto rest = line.substr(start + kField.size());
    TracepointField field{take_until(rest, ';')};
    field.at = number_behind(rest, "offset:");
    field.size = number_behind(rest, "size:");
    field.is_signed = number_behind(rest, "signed:") != 0;
    visit(field);
  }
}

TracepointFormat parse_tracepoint_format(std::string_view text) {
  TracepointFormat format;
  each_tracepoint_field(text, [&](const TracepointField& field) {
    auto name = field.declaration.substr(field.declaration.rfind(' ') + 1);
    name = name.substr(0, name.find('['));
    format.emplace(name, TracepointMember{field.at, field.size});
  });
  return format;
}

Result<TracepointFormat> tracepoint_format(std::string_view category, std::string_view name) {
  auto text = tracepoint_file(category, name, "format");
  if (!text) return text.error();
  return parse_tracepoint_format(*text);
}

Result<void> look_up_members(Config& config, std::string_view category, std::string_view what,
                             std::string_view load, std::string_view instead,
                             const std::vector<MemberPlace>& places) {
  for (auto& place : places) {
    auto format = tracepoint_format(category, place.event);
    if (!format)
      return Error{fmt::format("there are no {}s to trace", what),
                   format.error().what + ": " + format.error().why,
                   fmt::format("{}; {}", load, instead), kUnsupported};
    auto found = format->find(place.member);
    if (found != format->end())
      config.set(place.to, found->second.at);
    else if (place.needed)
      return Error{fmt::format("this kernel's {} records have an unknown format", what),
                   fmt::format("{} has no member {}", place.event, place.member),
                   std::string(instead), kUnsupported};
  }
  return {};
}

}  // namespace coretap
