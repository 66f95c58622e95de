#include "why/lines.hpp"

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap::why {

void each_line(const std::string& path,
               const std::function<void(const std::vector<std::string>&)>& take) {
  constexpr std::size_t kMost = 4 << 20;
  auto text = read_file(path, kMost);
  if (!text) return;
  for (std::string_view rest = *text; !rest.empty();)
    if (auto words = words_in(take_until(rest, '\n')); !words.empty())
      take({words.begin(), words.end()});
}

std::string first_line_of(const std::string& path) {
  auto text = read_file(path, 4096).value_or("");
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> stat_of(std::uint32_t pid) {
  auto text = read_file(fmt::format("/proc/{}/stat", pid), 4096).value_or("");
  auto fields = stat_fields(text);
  return {fields.begin(), fields.end()};
}

}  // namespace coretap::why
