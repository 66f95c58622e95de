#include "why/lines.hpp"

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap::why {

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<std::string> words;
  while (true) {
    auto begin = text.find_first_not_of(kBlanks);
    if (begin == text.npos) return words;
    text.remove_prefix(begin);
    words.emplace_back(text.substr(0, text.find_first_of(kBlanks)));
    text.remove_prefix(words.back().size());
  }
}

void each_line(const std::string& path,
               const std::function<void(const std::vector<std::string>&)>& take) {
  constexpr std::size_t kMost = 4 << 20;
  auto text = read_file(path, kMost);
  if (!text) return;
  for (std::string_view rest = *text; !rest.empty();)
    if (auto words = words_of(take_until(rest, '\n')); !words.empty()) take(words);
}

}  // namespace coretap::why
