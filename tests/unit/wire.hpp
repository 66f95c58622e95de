// Messages of protobuf, by their wire format only.
#pragma once
#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace coretap::test {

struct Wire {
  struct Member {
    unsigned number;
    std::uint64_t value = 0;
    std::string bytes = {};
  };
  std::vector<Member> members;

  explicit Wire(std::string_view bytes) {
    for (protozero::pbf_reader reader(bytes.data(), bytes.size()); reader.next();) {
      auto& m = members.emplace_back(Member{reader.tag()});
      if (reader.wire_type() == protozero::pbf_wire_type::varint)
        m.value = reader.get_uint64();
      else if (reader.wire_type() == protozero::pbf_wire_type::fixed64)
        m.value = reader.get_fixed64();
      else
        m.bytes = reader.get_string();
    }
  }
  /// A repeated member: the bytes of each.
  std::vector<std::string> all(unsigned number) const {
    std::vector<std::string> found;
    for (auto& m : members)
      if (m.number == number) found.push_back(m.bytes);
    return found;
  }
  std::vector<Wire> messages(unsigned number) const {
    std::vector<Wire> found;
    for (auto& bytes : all(number)) found.emplace_back(bytes);
    return found;
  }
  bool has(unsigned number) const { return !all(number).empty(); }
  /// An optional member; zeros if absent.
  Member one(unsigned number) const {
    if (all(number).size() > 1) throw std::runtime_error("there twice: " + std::to_string(number));
    for (auto& m : members)
      if (m.number == number) return m;
    return {number};
  }
  std::uint64_t number(unsigned number) const { return one(number).value; }
  std::string text(unsigned number) const { return one(number).bytes; }
  /// A required message.
  Wire in(unsigned number) const {
    if (!has(number)) throw std::runtime_error("not there: " + std::to_string(number));
    return Wire(text(number));
  }
  std::vector<std::uint64_t> packed(unsigned number) const {
    const auto bytes = text(number);
    std::vector<std::uint64_t> found;
    for (auto *at = bytes.data(), *end = at + bytes.size(); at != end;)
      found.push_back(protozero::decode_varint(&at, end));
    return found;
  }
};

}  // namespace coretap::test
