// Conditions on the options that were given.
#pragma once
#include <string_view>

#include "coretap/object_names.hpp"

namespace coretap {

/// A condition for Config::holds(), by long names of options. "a|b": either; "!a|b": neither;
/// "a|!b": a, or without b; "a=word": its value is a list with this word; "task-filter": any of the
/// shared filters, or a command; empty: always true. Other texts do not compile. Tests check that
/// the tool has the options: registry_test in declarations, scripts/picture in code.
class When : public std::string_view {
 public:
  constexpr When() = default;
  CORETAP_CONSTEVAL When(const char* text) : When(made(text)) {
    char before = '|';
    for (char c : *this) {
      const bool may_follow = c == '!' ? before == '|' : is_letter(c) || is_letter(before);
      if (!may_follow || (!is_letter(c) && c != '!' && c != '|' && c != '=' && c != '-'))
        throw "not a condition";
      before = c;
    }
    if (!empty() && !is_letter(before)) throw "not a condition";
  }
  /// For conditions that the library makes of others.
  static constexpr When made(std::string_view text) { return When(text); }

 private:
  constexpr explicit When(std::string_view text) : std::string_view(text) {}
  static constexpr bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  }
};

}  // namespace coretap
