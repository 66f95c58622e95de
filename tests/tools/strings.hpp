// Words of a command line, and lines of a text.
#pragma once
#include <sstream>
#include <string>
#include <vector>

namespace coretap::tooltest {

/// `Strings("-p 7")` has two words, `Strings{"-p 7"}` one.
class Strings : public std::vector<std::string> {
 public:
  using std::vector<std::string>::vector;
  Strings(std::vector<std::string> all) : vector(std::move(all)) {}
  Strings(const char* words) : Strings(std::string(words)) {}
  Strings(const std::string& words) {
    std::istringstream text(words);
    for (std::string word; text >> word;) push_back(word);
  }
  friend Strings operator+(Strings a, const Strings& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

}  // namespace coretap::tooltest
