#include "docs/mdoc.hpp"

#include <algorithm>
#include <cctype>

#include "coretap/options.hpp"
#include "coretap/parse.hpp"
#include "coretap/version.hpp"

namespace coretap {

namespace {

// Date of the last change of the pages' form; build dates would make builds differ.
constexpr char kDate[] = "November 22, 2026";
constexpr std::size_t kFill = 78;

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// A word on a macro line: escapes words that look like macros.
std::string argument(std::string_view word) {
  bool macro = word.size() >= 2 && word.size() <= 3 && upper(word[0]) && lower(word[1]);
  return (macro ? "\\&" : "") + escape(word);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    auto word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

}  // namespace

std::string inline_words(std::string_view text) {
  std::string out;
  for (auto word : split(text)) out += (out.empty() ? "" : " ") + argument(word);
  return out;
}

std::string sentence(std::string_view fragment) {
  std::string text(fragment);
  if (text.empty()) return text;
  auto first = fragment.substr(0, fragment.find_first_of(" ,:;"));
  if (std::all_of(first.begin(), first.end(),
                  [](unsigned char c) { return isalpha(c) || c == '-' || c == '\''; }))
    text[0] = static_cast<char>(toupper(text[0]));
  if (!text.ends_with('.')) text += '.';
  return text;
}

namespace {

// Escapes hyphens in text to be typed, so that they stay hyphens.
std::string dashes(std::string text) {
  for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

/// "runqlat(8)," as the macro for a reference, or empty.
std::string reference(std::string_view word) {
  std::string close;
  while (!word.empty() && std::string_view(".,;:").find(word.back()) != std::string_view::npos) {
    close.insert(0, fmt::format(" {}", word.back()));
    word.remove_suffix(1);
  }
  auto paren = word.find('(');
  if (paren == 0 || paren == word.npos || word.size() != paren + 3 || word.back() != ')' ||
      !isdigit(static_cast<unsigned char>(word[paren + 1])) || !lower(word[0]))
    return {};
  return fmt::format(".Xr {} {}{}\n", word.substr(0, paren), word[paren + 1], close);
}

/// The macro line for a special word with its punctuation, or empty.
std::string special(std::string_view word) {
  if (auto line = reference(word); !line.empty()) return line;
  std::string open, close;
  while (!word.empty() && word.front() == '(') {
    open += "( ";
    word.remove_prefix(1);
  }
  while (!word.empty() && std::string_view(".,;:)").find(word.back()) != std::string_view::npos) {
    close.insert(0, fmt::format(" {}", word.back()));
    word.remove_suffix(1);
  }
  std::string_view macro;
  if (word == "--" || (word.size() > 2 && word.starts_with("--") && lower(word[2]))) {
    macro = "Fl";
    word.remove_prefix(1);
  } else if (word.size() > 1 && word[0] == '/' && isalpha(static_cast<unsigned char>(word[1]))) {
    macro = "Pa";
  } else if (word == "COMMAND") {
    macro = "Ar";
  } else {
    return {};
  }
  return fmt::format(".{} {}{}{}\n", macro, open, escape(word), close);
}

}  // namespace

Page::Page(std::string_view name, int section_number, std::string_view summary) {
  std::string title(name);
  std::transform(title.begin(), title.end(), title.begin(), toupper);
  macro(fmt::format("Dd {}", kDate));
  // groff before 1.23 puts BSD before the name of the volume.
  macro("ds doc-volume-operating-system Linux");
  macro(fmt::format("Dt {} {}", title, section_number));
  macro(fmt::format("Os coretap {}", kVersion));
  section("NAME");
  macro(fmt::format("Nm {}", name));
  macro(fmt::format("Nd {}", inline_words(summary)));
}

void Page::example(std::string_view command) { macro("Dl " + dashes(inline_words(command))); }

void Page::literal(std::string_view text) {
  macro("Bd -literal");
  while (!text.empty()) {
    auto line = escape(take_until(text, '\n'));
    if (line.starts_with('.') || line.starts_with('\'')) out_ += "\\&";
    out_ += line + '\n';
  }
  macro("Ed");
}

std::string option_item(const Option& o) {
  auto value = o.metavar.empty() ? "" : fmt::format(" Ar {}", inline_words(o.metavar));
  return o.letter ? fmt::format("Fl {}{} , Fl -{}{}", o.letter, value, o.name, value)
                  : fmt::format("Fl -{}{}", o.name, value);
}

void Page::prose(std::string_view text) {
  while (true) {
    auto end = text.find("\n\n");
    paragraph(text.substr(0, end));
    if (end == std::string_view::npos) return;
    macro("Pp");
    text.remove_prefix(end + 2);
  }
}

void Page::paragraph(std::string_view text) {
  std::string line;
  auto flush = [&] {
    if (line.empty()) return;
    if (line[0] == '.' || line[0] == '\'') out_ += "\\&";
    out_ += line + '\n';
    line.clear();
  };
  for (auto word : split(text)) {
    if (auto lines = special(word); !lines.empty()) {
      flush();
      out_ += lines;
      continue;
    }
    auto safe = escape(word);
    if (!line.empty() && line.size() + 1 + safe.size() > kFill) flush();
    line += (line.empty() ? "" : " ") + safe;
    if (word.ends_with('.') || word.ends_with(".)")) flush();
  }
  flush();
}

}  // namespace coretap
