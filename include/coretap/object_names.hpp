// Names of the programs and maps of kernel objects.
#pragma once
#include <string_view>

// clang 14 crashes on consteval constructors; other compilers check the names.
#if defined(__clang__) && __clang_major__ < 17
#define CORETAP_CONSTEVAL constexpr
#else
#define CORETAP_CONSTEVAL consteval
#endif

namespace coretap {

/// A name that its kernel object has: the header that scripts/skeleton makes of an object has a
/// constant for each program (progs::on_exit) and map (maps::counts). Texts do not convert to it,
/// so a wrong name does not compile.
template <class Kind>
class ObjectName {
 public:
  constexpr ObjectName() = default;  ///< none
  /// For the generated headers. The library, which serves all objects, names what it has defined
  /// in bpf/lib; scripts/picture compares these names, and rejects others in loaders.
  explicit CORETAP_CONSTEVAL ObjectName(const char* name) : name_(name) {}

  constexpr const char* c_str() const { return name_; }
  constexpr operator std::string_view() const { return name_; }
  constexpr bool empty() const { return !*name_; }

  friend constexpr bool operator==(ObjectName one, ObjectName other) {
    return std::string_view(one) == std::string_view(other);
  }
  friend constexpr bool operator==(ObjectName one, std::string_view other) {
    return std::string_view(one) == other;
  }

 private:
  const char* name_ = "";
};

using ProgramName = ObjectName<struct OfProgram>;
using MapName = ObjectName<struct OfMap>;

}  // namespace coretap
