#include "docs/mdoc.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "cli/help.hpp"
#include "coretap/date.hpp"
#include "coretap/parse.hpp"
#include "coretap/version.hpp"

namespace coretap {

namespace {

constexpr std::size_t kFill = 78;

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }

std::string escape(std::string_view text) {
  constexpr std::pair<char, std::string_view> kNames[] = {
      {'\\', "\\e"},  {'"', "\\(dq"}, {'\'', "\\(aq"},
      {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"},
  };
  std::string out;
  for (char c : text) {
    auto* known = std::ranges::find_if(kNames, [&](auto& name) { return name.first == c; });
    out += known == std::end(kNames) ? std::string_view(&c, 1) : known->second;
  }
  return out;
}

/// A word on a macro line: escapes words that look like macros.
std::string argument(std::string_view word) {
  bool macro = word.size() >= 2 && word.size() <= 3 && upper(word[0]) && lower(word[1]);
  return (macro ? "\\&" : "") + escape(word);
}

}  // namespace

std::string inline_words(std::string_view text) {
  std::string out;
  for (auto word : words_in(text)) out += (out.empty() ? "" : " ") + argument(word);
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

/// Removes punctuation marks from the end of a word; returns them as words of a macro line.
std::string take_ends(std::string_view& word, std::string_view marks) {
  std::string ends;
  for (; !word.empty() && marks.find(word.back()) != marks.npos; word.remove_suffix(1))
    ends.insert(0, fmt::format(" {}", word.back()));
  return ends;
}

/// "runqlat(8)," as the macro for a reference, or empty.
std::string reference(std::string_view word) {
  auto close = take_ends(word, ".,;:");
  auto paren = word.find('(');
  if (paren == 0 || paren == word.npos || word.size() != paren + 3 || word.back() != ')' ||
      !isdigit(static_cast<unsigned char>(word[paren + 1])) || !lower(word[0]))
    return {};
  return fmt::format(".Xr {} {}{}\n", word.substr(0, paren), word[paren + 1], close);
}

/// The macro line for a special word with its punctuation, or empty.
std::string special(std::string_view word) {
  if (auto line = reference(word); !line.empty()) return line;
  std::string open;
  for (; word.starts_with('('); word.remove_prefix(1)) open += "( ";
  auto close = take_ends(word, ".,;:)");
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

void Page::example(std::string_view meaning, std::string_view command) {
  auto words = sentence(meaning);
  words.back() = ':';
  prose(words);
  macro("Pp");
  example(command);
}

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

void Page::options(const std::vector<Option>& options, std::string_view list) {
  begin(list);
  for (auto& o : options) item(option_item(o), o.doc);
  end();
}

void Page::prose(std::string_view text) {
  auto paragraphs = paragraphs_in(text);
  for (auto& words : paragraphs) {
    if (&words != &paragraphs.front()) macro("Pp");
    paragraph(words);
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
  for (auto word : words_in(text)) {
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

std::string Page::finish(std::initializer_list<std::string_view> see_also) {
  section("SEE ALSO");
  for (auto& page : see_also)
    macro(fmt::format("Xr {}{}", page, &page == see_also.end() - 1 ? "" : " ,"));
  return std::move(out_);
}

}  // namespace coretap
