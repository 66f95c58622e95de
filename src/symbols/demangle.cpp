#include "symbols/demangle.hpp"

#include <libiberty/demangle.h>

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

namespace coretap::symbols {
namespace {

constexpr std::size_t kMaxMangled = 4096;
// A name of a few hundred bytes can expand to gigabytes: back references to types that contain back
// references double the length at each step.
constexpr std::size_t kMaxDemangled = 16 << 10;

struct Bounded {
  std::string text;
  jmp_buf overflow;
};

void collect(const char* text, std::size_t size, void* opaque) {
  auto& out = *static_cast<Bounded*>(opaque);
  // libiberty is C, allocates nothing while printing, and offers no other way to stop it.
  if (out.text.size() + size > kMaxDemangled) ::longjmp(out.overflow, 1);
  out.text.append(text, size);  // within the reserved size: does not throw
}

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

std::string demangled(Demangler demangler, const std::string& name, int options) {
  const auto out = std::make_unique<Bounded>();
  out->text.reserve(kMaxDemangled);
  if (::setjmp(out->overflow) != 0) return {};
  if (!demangler(name.c_str(), DMGL_PARAMS | DMGL_ANSI | options, collect, out.get())) return {};
  return std::move(out->text);
}

std::string demangle(std::string_view name, int options) {
  std::string mangled(name);
  if (name.size() > kMaxMangled) return mangled;
  // Legacy Rust names look like C++ but end with a hash. LLVM adds a number to names that it makes
  // visible to other modules.
  if (is_mangled(name))
    if (auto rust =
            demangled(rust_demangle_callback, mangled.substr(0, mangled.find(".llvm.")), options);
        !rust.empty())
      return rust;
  if (name.starts_with("_Z"))
    if (auto cxx = demangled(cplus_demangle_v3_callback, mangled, options); !cxx.empty())
      return cxx;
  return mangled;
}

constexpr std::string_view kUnnamed = "(anonymous namespace)", kTag = "[abi:";

bool opens(char c) { return c == '(' || c == '<' || c == '{' || c == '['; }

/// Offset after the bracket that matches the one at `at`. In parentheses < may be a comparison.
std::size_t behind_bracket(std::string_view text, std::size_t at) {
  const char open = text[at];
  const char close = open == '(' ? ')' : open == '<' ? '>' : open == '{' ? '}' : ']';
  for (at++; at < text.size() && text[at] != close;) {
    if (text.substr(at).starts_with("->"))
      at += 2;
    else
      at = opens(text[at]) && (open == '<' || text[at] != '<') ? behind_bracket(text, at) : at + 1;
  }
  return std::min(at + 1, text.size());
}

/// Length of an operator's name that contains brackets, longer names first; 0: there is none.
std::size_t operator_at(std::string_view name, std::size_t at) {
  constexpr std::string_view kWord = "operator";
  constexpr std::string_view kNames[] = {"()", "[]", "<=>", "<<=", ">>=", "->*", "<<",
                                         ">>", "<=", ">=",  "->",  "<",   ">"};
  const bool begins =
      at == 0 || (!std::isalnum(static_cast<unsigned char>(name[at - 1])) && name[at - 1] != '_');
  if (!begins || !name.substr(at).starts_with(kWord)) return 0;
  for (auto text : kNames)
    if (name.substr(at + kWord.size()).starts_with(text)) return kWord.size() + text.size();
  return 0;
}

/// Visits the parts of a demangled name: a bracketed part, an operator's name, or a character.
template <class Visit>
void each_part(std::string_view name, Visit visit) {
  for (std::size_t at = 0, end = 0; at < name.size(); at = end) {
    end = at + std::max<std::size_t>(operator_at(name, at), 1);
    if (opens(name[at])) end = behind_bracket(name, at);
    visit(name.substr(at, end - at), at);
  }
}

/// Standard library types as in source code: without default template arguments and library version
/// namespaces.
std::string shortened(std::string text) {
  for (std::string_view left_out : {", std::allocator<", ", std::char_traits<", ", std::less<",
                                    ", std::hash<", ", std::equal_to<", ", std::default_delete<"})
    for (std::size_t at; (at = text.find(left_out)) != text.npos;)
      text.erase(at, behind_bracket(text, at + left_out.size() - 1) - at);
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {" >", ">"},
      {"std::__cxx11::", "std::"},
      {"std::__1::", "std::"},
      {"std::basic_string<char>", "std::string"},
      {"std::basic_string_view<char>", "std::string_view"}};
  for (auto& [from, to] : kShort)
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

/// Removes all template arguments, those of names before the last, or none. Removes parts that
/// source code has no names for: unnamed namespaces, ABI tags.
enum class Arguments { all, not_last, none };
std::string simplified(std::string_view name, Arguments arguments) {
  std::string text;
  each_part(name, [&](std::string_view part, std::size_t at) {
    const bool last = at + part.size() == name.size();
    if (part == kUnnamed || part.starts_with(kTag)) return;
    if (part == ":" && text.ends_with("::")) return;  // after an unnamed namespace
    if (part[0] == ':' && text.empty()) return;
    if (part[0] != '<' || arguments == Arguments::all ||
        (arguments == Arguments::not_last && !last)) {
      if (part[0] != '(' || arguments != Arguments::none) text += part;
      return;
    }
    if (text.empty()) {  // Rust: <TYPE>::name, <TYPE as TRAIT>::name
      auto type = part.substr(1, part.size() - 2);
      text = simplified(type.substr(0, type.find(" as ")), arguments);
    } else if (text.ends_with("::")) {  // Rust: name::<TYPE>
      text.resize(text.size() - 2);
    } else if (text.ends_with(' ')) {  // operator< <TYPE>
      text.pop_back();
    }
  });
  return text;
}

}  // namespace

bool is_mangled(std::string_view name) { return name.starts_with("_Z") || name.starts_with("_R"); }

std::string demangle(std::string_view name) { return demangle(name, 0); }

std::size_t parameters_at(std::string_view demangled) {
  auto found = demangled.size();
  each_part(demangled, [&](std::string_view part, std::size_t at) {
    if (part[0] == '(' && part != kUnnamed) found = at;
  });
  return found;
}

std::string_view part_in_symbol(std::string_view written) {
  const auto path = written.substr(0, written.find_first_of("(<[*"));
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  const bool plain = std::ranges::all_of(path, [&](char c) { return is_letter(c) || c == ':'; });
  // A blank may follow the result type.
  if (!plain || written.find(' ') != written.npos || written.starts_with("std") ||
      path.find("operator") != path.npos)
    return {};
  const auto end = std::find_if(path.rbegin(), path.rend(), is_letter).base();
  return {std::find_if_not(std::make_reverse_iterator(end), path.rend(), is_letter).base(), end};
}

std::vector<std::string> names_in_source(std::string_view mangled) {
  std::vector<std::string> names{demangle(mangled, DMGL_RET_DROP)};
  const auto whole = names.front();
  const auto add = [&](const std::string& all) {
    const auto name = all.substr(0, parameters_at(all));
    names.push_back(name);
    names.push_back(simplified(all, Arguments::all));
    for (auto arguments : {Arguments::all, Arguments::not_last, Arguments::none})
      names.push_back(simplified(name, arguments));
    return name.size();
  };
  const auto name_size = add(whole);
  if (whole.find('>') == whole.npos) return names;
  if (auto brief = shortened(whole); brief != whole) {
    names.push_back(brief);
    add(brief);
  }
  // Symbols of templates include the result type.
  if (auto with_result = demangle(mangled); with_result.ends_with(whole)) {
    names.push_back(with_result.substr(0, with_result.size() - whole.size() + name_size));
    names.push_back(std::move(with_result));
  }
  return names;
}

}  // namespace coretap::symbols
