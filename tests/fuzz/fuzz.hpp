// Fuzzers: each passes bytes to a parser of outside data and checks properties of the result. They
// run under libFuzzer (main.cpp), and on stored inputs in every build (replay_test.cpp).
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
/// All fuzzers that are linked in.
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

/// A property of the result. Throws: one stored input that violates it is one failed test.
#define MUST(rule) ((rule) ? void() : ::coretap::fuzz::broken(#rule, __FILE__, __LINE__))

/// Takes values off the front of the bytes; zeros after the end.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::string_view text(std::size_t most) {
    const auto part = rest_.substr(0, most);
    rest_.remove_prefix(part.size());
    return part;
  }
  /// A length in one byte, then the text.
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

/// For parsers that need a file.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  int fd() const { return fd_.get(); }
  std::string path() const;

 private:
  Fd fd_;
};

/// No characters that move a terminal's cursor or end a line, and only valid UTF-8.
bool is_plain(std::string_view text);
/// One JSON object by RapidJSON's parser, with nothing after it.
bool is_json(std::string_view text);

}  // namespace coretap::fuzz
