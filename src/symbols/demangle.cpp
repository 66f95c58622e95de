#include "symbols/demangle.hpp"

#include <cxxabi.h>
#include <setjmp.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

// In the static libstdc++ only: hands out the result piece by piece, so that it can be bounded.
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" [[gnu::weak]] int __gcclibcxx_demangle_callback(
    const char* mangled, void (*)(const char*, std::size_t, void*), void*);

namespace coretap::symbols {
namespace {

constexpr std::size_t kMaxMangled = 4096;
constexpr std::size_t kMaxDemangled = 16 << 10;

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// One path component of legacy Rust: $LT$ and the like, ".." for "::".
std::optional<std::string> rust_component(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kEscapes[] = {
      {"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
      {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','},
  };
  std::string out;
  if (text.starts_with("_$")) text.remove_prefix(1);
  while (!text.empty()) {
    if (text.starts_with("..")) {
      out += "::";
      text.remove_prefix(2);
    } else if (text.front() != '$') {
      out += text.front();
      text.remove_prefix(1);
    } else {
      const std::size_t end = text.find('$', 1);
      if (end == text.npos) return {};
      const std::string_view escape = text.substr(1, end - 1);
      text.remove_prefix(end + 1);
      const auto* known = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                       [&](const auto& pair) { return pair.first == escape; });
      if (known != std::end(kEscapes)) {
        out += known->second;
        continue;
      }
      unsigned code = 0;
      if (escape.size() < 2 || escape.size() > 3 || escape[0] != 'u') return {};
      const char* last = escape.data() + escape.size();
      const auto [ptr, error] = std::from_chars(escape.data() + 1, last, code, 16);
      if (error != std::errc() || ptr != last || code < 0x20 || code > 0x7e) return {};
      out += static_cast<char>(code);
    }
  }
  return out;
}

// _ZN <length><component>... 17h<16 hexadecimal digits> E [.suffix]
std::optional<std::string> demangle_rust(std::string_view name) {
  if (!name.starts_with("_ZN")) return {};
  name.remove_prefix(3);
  std::string out;
  while (!name.empty() && name.front() >= '1' && name.front() <= '9') {
    std::size_t length = 0;
    const auto [ptr, error] = std::from_chars(name.data(), name.data() + name.size(), length);
    if (error != std::errc()) return {};
    name.remove_prefix(static_cast<std::size_t>(ptr - name.data()));
    if (length > name.size()) return {};
    const std::string_view component = name.substr(0, length);
    name.remove_prefix(length);
    const bool last = name == "E" || name.starts_with("E.");
    if (last) {
      if (length != 17 || component.front() != 'h' ||
          !std::all_of(component.begin() + 1, component.end(), is_hex) || out.empty())
        return {};
      return out;
    }
    const auto text = rust_component(component);
    if (!text) return {};
    if (!out.empty()) out += "::";
    out += *text;
  }
  return {};
}

struct Bounded {
  std::string text;
  jmp_buf overflow;
};

void collect(const char* text, std::size_t size, void* opaque) {
  auto& out = *static_cast<Bounded*>(opaque);
  // The demangler is C, holds no memory while it prints, and cannot be told to stop otherwise.
  if (out.text.size() + size > kMaxDemangled) ::longjmp(out.overflow, 1);
  out.text.append(text, size);  // within what was reserved: does not throw
}

std::optional<std::string> demangle_bounded(const char* mangled) {
  const auto out = std::make_unique<Bounded>();
  out->text.reserve(kMaxDemangled);
  if (::setjmp(out->overflow) != 0) return {};
  if (__gcclibcxx_demangle_callback(mangled, collect, out.get()) != 0) return {};
  return std::move(out->text);
}

// A name of some hundred bytes can stand for gigabytes, because back references to types that hold
// back references double the length at each step. Without a bounded demangler only names with too
// few of them to matter are tried: 24 multiply the length by 3^8 at worst.
bool may_explode(std::string_view name) {
  std::size_t references = 0;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    const char next = name[i + 1];
    const bool digit_or_end = next == '_' || (next >= '0' && next <= '9');
    if ((name[i] == 'S' && (digit_or_end || (next >= 'A' && next <= 'Z'))) ||
        (name[i] == 'T' && digit_or_end))
      references += 1;
    else if ((name[i] == 'D' && next == 'p') || (name[i] == 's' && next == 'p'))
      references += 8;  // repeats its pattern for each of a pack
  }
  return references > 24;
}

std::optional<std::string> demangle_cxx(const std::string& name) {
  if (__gcclibcxx_demangle_callback != nullptr) return demangle_bounded(name.c_str());
  if (may_explode(name)) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &::free);
  if (status != 0 || !text || std::char_traits<char>::length(text.get()) > kMaxDemangled) return {};
  return text.get();
}

}  // namespace

std::string demangle(std::string_view name) {
  if (name.size() <= kMaxMangled && name.starts_with("_Z")) {
    if (auto rust = demangle_rust(name)) return *std::move(rust);
    std::string mangled(name);
    if (auto cxx = demangle_cxx(mangled); cxx && !cxx->empty()) return *std::move(cxx);
  }
  return std::string(name);
}

}  // namespace coretap::symbols
