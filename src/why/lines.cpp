#include "why/lines.hpp"

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

}  // namespace coretap::why
