#include "base/recall.hpp"

#include <protozero/buffer_string.hpp>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "coretap/clock.hpp"

namespace coretap {

Recalling::~Recalling() {
  recall = nullptr;
  release_clock();
}

void put_varint(std::string& to, std::uint64_t value) {
  protozero::add_varint_to_buffer(&to, value);
}

bool take_varint(std::string_view& bytes, std::uint64_t& value) {
  const char* at = bytes.data();
  try {
    value = protozero::decode_varint(&at, bytes.data() + bytes.size());
  } catch (const protozero::exception&) {
    return false;
  }
  bytes.remove_prefix(static_cast<std::size_t>(at - bytes.data()));
  return true;
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
