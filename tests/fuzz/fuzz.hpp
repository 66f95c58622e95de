// Fuzzers: each gives bytes to a reader of outside data and checks what must hold of the result.
// They run under libFuzzer (main.cpp), and on kept inputs in every build (replay_test.cpp).
#pragma once
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fd.hpp"

namespace coretap::fuzz {

struct Fuzzer {
  std::string_view name;
  void (*run)(std::string_view bytes);
};
/// All that are linked in.
std::vector<Fuzzer>& fuzzers();

inline void PrintTo(const Fuzzer& fuzzer, std::ostream* out) { *out << fuzzer.name; }

struct Registration {
  Registration(std::string_view name, void (*run)(std::string_view)) {
    fuzzers().push_back({name, run});
  }
};

/// FUZZ(maps, bytes) { ... }
#define FUZZ(name, bytes)                                                              \
  static void fuzz_##name(std::string_view bytes);                                     \
  static const ::coretap::fuzz::Registration registration_##name(#name, &fuzz_##name); \
  static void fuzz_##name(std::string_view bytes)

[[noreturn]] void broken(const char* rule, const char* file, int line);

/// What must hold. Throws: one kept input that breaks it is one failed test.
#define MUST(rule) ((rule) ? void() : ::coretap::fuzz::broken(#rule, __FILE__, __LINE__))

/// Values off the front of the bytes; zeros where there are none left.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::string_view text(std::size_t most) {
    const auto part = rest_.substr(0, most);
    rest_.remove_prefix(part.size());
    return part;
  }
  /// Behind a byte that says how long it is.
  std::string_view text() { return text(number<std::uint8_t>()); }
  template <class T>
  T number() {
    T value{};
    const auto part = text(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// For readers that want a file.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  int fd() const { return fd_.get(); }
  std::string path() const;

 private:
  Fd fd_;
};

/// Nothing that moves a terminal's cursor, ends a line or is not UTF-8.
bool is_plain(std::string_view text);
/// One JSON object, by RapidJSON's reader, and nothing behind it.
bool is_json(std::string_view text);

}  // namespace coretap::fuzz
