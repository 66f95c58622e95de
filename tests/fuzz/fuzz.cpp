#include "fuzz.hpp"

#include <rapidjson/document.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

#include <fmt/format.h>

namespace coretap::fuzz {

std::vector<Fuzzer>& fuzzers() {
  static std::vector<Fuzzer> all;
  return all;
}

void broken(const char* rule, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: {}", file, line, rule));
}

MemoryFile::MemoryFile(std::string_view bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
  MUST(fd_.get() >= 0);
  MUST(pwrite(fd_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

bool is_plain(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x20 || lead == 0x7f) return false;
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || at + length > text.size()) return false;
    std::uint32_t code = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t i = 1; i < length; i++) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3f);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    if (code >= 0x80 && code < 0xa0) return false;       // C1 controls
    if (code == 0x2028 || code == 0x2029) return false;  // line and paragraph separators
    if (code >= 0x202a && code <= 0x202e) return false;  // text direction
    if (code >= 0x2066 && code <= 0x2069) return false;
    at += length;
  }
  return true;
}

bool is_json(std::string_view text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  return !document.HasParseError() && document.IsObject();
}

}  // namespace coretap::fuzz
