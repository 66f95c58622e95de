// Sequential reader of DWARF numbers; reads past the end yield 0 and set an error.
#pragma once
#include <string.h>

#include <cstdint>
#include <optional>
#include <span>

namespace coretap {

class Bytes {
 public:
  /// `address`: of the first byte, for numbers that are relative to their own address.
  explicit Bytes(std::span<const std::uint8_t> bytes, std::uint64_t address = 0)
      : at_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        end_address_(address + bytes.size()) {}

  bool ok() const { return ok_; }  ///< false: a read went past the end, or a number was invalid
  bool at_end() const { return at_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  const std::uint8_t* position() const { return at_; }
  std::uint64_t address() const { return end_address_ - left(); }

  template <typename T>
  T number() {
    T value{};
    if (left() < sizeof value) {
      fail();
      return value;
    }
    ::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint8_t u8() { return number<std::uint8_t>(); }

  /// A number of 8 bytes, or of 4 with any other size.
  std::uint64_t word(unsigned size) {
    return size == 8 ? number<std::uint64_t>() : number<std::uint32_t>();
  }
  /// The length that a unit begins with; sets the size of its offsets.
  std::uint64_t initial_length(std::uint8_t& offset_size) {
    constexpr std::uint32_t kLong = 0xffffffff;
    const std::uint64_t length = number<std::uint32_t>();
    offset_size = length == kLong ? 8 : 4;
    return length == kLong ? number<std::uint64_t>() : length;
  }

  std::uint64_t uleb() { return leb(false); }
  std::int64_t sleb() { return static_cast<std::int64_t>(leb(true)); }

  /// The next `count` bytes as a separate reader.
  Bytes take(std::uint64_t count) {
    if (count > left()) {
      fail();
      return Bytes({});
    }
    const Bytes part({at_, static_cast<std::size_t>(count)}, address());
    at_ += count;
    return part;
  }
  void fail() {
    ok_ = false;
    at_ = end_;
  }

  /// A number in a DW_EH_PE_ encoding; `ok` indicates whether it was read. nullopt if it is present
  /// but unusable: stored in memory (indirect), or relative to an unknown base.
  std::optional<std::uint64_t> encoded(std::uint8_t encoding,
                                       std::optional<std::uint64_t> data_base = {}) {
    const auto place = address();
    std::uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = number<std::uint64_t>();
        break;
      case 0x01:
        value = uleb();
        break;
      case 0x02:
        value = number<std::uint16_t>();
        break;
      case 0x03:
        value = number<std::uint32_t>();
        break;
      case 0x09:
        value = static_cast<std::uint64_t>(sleb());
        break;
      case 0x0a:
        value = static_cast<std::uint64_t>(std::int64_t{number<std::int16_t>()});
        break;
      case 0x0b:
        value = static_cast<std::uint64_t>(std::int64_t{number<std::int32_t>()});
        break;
      default:
        fail();
    }
    if (!ok_ || (encoding & 0x80) != 0) return {};
    switch (encoding & 0x70) {
      case 0x00:
        return value;
      case 0x10:
        return place + value;
      case 0x30:
        return data_base ? std::optional(*data_base + value) : std::nullopt;
      case 0x50:
        fail();
        return {};  // aligned: its original position is not known
      default:
        return {};
    }
  }

 private:
  std::uint64_t leb(bool is_signed) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) break;
      const std::uint8_t byte = *at_++;
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) != 0) continue;
      if (is_signed && (byte & 0x40) != 0 && shift + 7 < 64) value |= ~0ULL << (shift + 7);
      return value;
    }
    fail();
    return 0;
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::uint64_t end_address_;
  bool ok_ = true;
};

}  // namespace coretap
