// Methods in the memory of HotSpot (the Java virtual machine): names, and lines of bytecodes.
// Untrusted input.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/stack/runtime.h"
#include "runtimes/hotspot_tables.hpp"

namespace coretap::runtimes {

/// Numbers of one to five bytes (UNSIGNED5 in HotSpot's sources): all but the last byte of one are
/// 192 or more.
class HotSpotNumbers {
 public:
  HotSpotNumbers(unsigned version, std::string_view bytes)
      : least_(version >= kWithoutZero ? 1 : 0), bytes_(bytes) {}

  std::optional<std::uint8_t> byte();
  std::optional<std::uint32_t> number();
  /// The sign is the lowest bit.
  std::optional<std::int32_t> signed_number();

 private:
  static constexpr unsigned kWithoutZero = 20;  // from this version on no byte is 0

  std::uint32_t least_;
  std::string_view bytes_;
};

/// The line of a bytecode, from a ConstMethod's table (CompressedLineNumberReadStream in HotSpot's
/// sources) of this version; 0: not known.
std::uint32_t hotspot_line(unsigned version, std::string_view table, std::uint32_t bytecode);

/// "java/lang/Object" as the language has it; without what distinguishes a class made at run time.
std::string class_name(std::string_view internal);

/// A method's name with its class; `internal`: as for class_name(), empty: unknown.
std::string method_name(std::string_view internal, std::string_view name);

struct HotSpotMethod {
  std::string function;  ///< with its class
  std::string file;      ///< empty: not known
  std::string lines;     ///< the table; empty: none

  std::size_t bytes() const { return function.size() + file.size() + lines.size(); }
};

/// The Method at an address; nothing: it is none.
std::optional<HotSpotMethod> hotspot_method(Pages& memory, const hotspot_layout& layout,
                                            std::uint64_t method);

}  // namespace coretap::runtimes
