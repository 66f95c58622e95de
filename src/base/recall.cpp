#include "base/recall.hpp"

namespace coretap {

void put_varint(std::string& to, std::uint64_t value) {
  while (value >= 0x80) {
    to += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  to += static_cast<char>(value);
}

bool take_varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0, i = 0; shift < 64 && i < bytes.size(); shift += 7, i++) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte & 0x80) continue;
    bytes.remove_prefix(i + 1);
    return true;
  }
  return false;
}

std::string packed(const std::vector<std::string>& texts) {
  std::string bytes;
  for (auto& text : texts) {
    put_varint(bytes, text.size());
    bytes += text;
  }
  return bytes;
}

std::vector<std::string> unpacked(std::string_view bytes) {
  std::vector<std::string> texts;
  for (std::uint64_t size = 0; take_varint(bytes, size) && size <= bytes.size();) {
    texts.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return texts;
}

}  // namespace coretap
