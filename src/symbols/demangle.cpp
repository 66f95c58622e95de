#include "symbols/demangle.hpp"

#include <libiberty/demangle.h>

#include <csetjmp>
#include <memory>
#include <string>
#include <utility>

namespace coretap::symbols {
namespace {

constexpr std::size_t kMaxMangled = 4096;
// A name of some hundred bytes can stand for gigabytes: back references to types that hold back
// references double the length at each step.
constexpr std::size_t kMaxDemangled = 16 << 10;

struct Bounded {
  std::string text;
  jmp_buf overflow;
};

void collect(const char* text, std::size_t size, void* opaque) {
  auto& out = *static_cast<Bounded*>(opaque);
  // libiberty is C, holds no memory while it prints, and cannot be told to stop otherwise.
  if (out.text.size() + size > kMaxDemangled) ::longjmp(out.overflow, 1);
  out.text.append(text, size);  // within what was reserved: does not throw
}

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

std::string demangled(Demangler demangler, const std::string& name) {
  const auto out = std::make_unique<Bounded>();
  out->text.reserve(kMaxDemangled);
  if (::setjmp(out->overflow) != 0) return {};
  if (!demangler(name.c_str(), DMGL_PARAMS | DMGL_ANSI, collect, out.get())) return {};
  return std::move(out->text);
}

}  // namespace

bool is_mangled(std::string_view name) { return name.starts_with("_Z") || name.starts_with("_R"); }

std::string demangle(std::string_view name) {
  std::string mangled(name);
  if (name.size() > kMaxMangled) return mangled;
  // Rust's older names look like C++: their hash at the end tells. LLVM adds a number to what it
  // makes visible to other modules.
  if (is_mangled(name))
    if (auto rust = demangled(rust_demangle_callback, mangled.substr(0, mangled.find(".llvm.")));
        !rust.empty())
      return rust;
  if (name.starts_with("_Z"))
    if (auto cxx = demangled(cplus_demangle_v3_callback, mangled); !cxx.empty()) return cxx;
  return mangled;
}

std::size_t parameters_at(std::string_view demangled) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)", kCall = "operator()";
  std::size_t depth = 0;  // of template arguments
  for (std::size_t at = 0; at < demangled.size(); at++) {
    auto rest = demangled.substr(at);
    if (rest.starts_with(kUnnamed)) {
      at += kUnnamed.size() - 1;
    } else if (rest.starts_with(kCall)) {
      at += kCall.size() - 1;
    } else if (rest.starts_with("operator") && rest.size() > 9 &&
               (rest[8] == '<' || rest[8] == '>')) {
      at += 8;
      while (at + 1 < demangled.size() &&
             (demangled[at + 1] == '<' || demangled[at + 1] == '>' || demangled[at + 1] == '='))
        at++;
    } else if (rest[0] == '<') {
      depth++;
    } else if (rest[0] == '>' && depth) {
      depth--;
    } else if (rest[0] == '(' && !depth) {
      return at;
    }
  }
  return demangled.size();
}

}  // namespace coretap::symbols
