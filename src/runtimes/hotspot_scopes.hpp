// Methods that HotSpot's compilers inlined, and bytecodes of compiled code, from the tables that
// the virtual machine keeps with the code (code/pcDesc.hpp, scopeDesc.cpp, debugInfo.hpp and
// nmethod.hpp in src/hotspot/share of its sources). Untrusted input.
//
// The tables describe calls and other places at which a thread may stop, exactly: all callers in a
// stack are there. Between two such places a compiler moves instructions as it likes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/stack/runtime.h"
#include "runtimes/hotspot_methods.hpp"
#include "runtimes/hotspot_tables.hpp"

namespace coretap::runtimes {

/// Where the tables are in one build: offsets, in bytes.
struct HotSpotScopes {
  using Integer = HotSpotOffsets::Integer;
  enum class Place {
    with_code,      ///< 11 to 22: in the nmethod
    with_metadata,  ///< 23 and 24: in memory that `immutable` refers to; addresses in the nmethod
    apart,          ///< 25: likewise; addresses in memory that `other` refers to
  } place = Place::with_code;
  std::uint16_t pc = 0, scope = 0, pc_bytes = 0;  ///< of a PcDesc
  Integer pcs, pcs_end;                           ///< from the nmethod, or the immutable memory
  std::uint16_t other = 0;      ///< address of scopes, or of memory with addresses
  std::uint16_t immutable = 0;  ///< an address
  Integer immutable_bytes;
  Integer data, metadata;  ///< with_metadata: offset of the data, and in it; apart: in `other`

  /// Nothing: a build with other fields.
  static std::optional<HotSpotScopes> in(const HotSpotTables& tables);
};

/// The methods of one piece of compiled code.
class InlinedMethods {
 public:
  static constexpr std::size_t kMostPlaces = 1 << 15, kMostScopes = 1 << 20, kMostMethods = 4096,
                               kMostDepth = 128;

  struct Frame {
    const HotSpotMethod* method;
    std::uint32_t line;  ///< 0: not known
  };

  /// Null: it cannot be read, or is not as expected. `may_read`: asked once, with the bytes.
  static std::shared_ptr<const InlinedMethods> read(
      const Memory& memory, const hotspot_layout& layout, const HotSpotScopes& scopes,
      const hotspot_code& code, const std::function<bool(std::size_t)>& may_read);

  /// Innermost first; empty: not known. `place`: bytes from the code's begin. `exact`: of an
  /// instruction, not a return address. Between two known places: what these have in common.
  std::vector<Frame> at(std::uint32_t place, bool exact) const;

  std::size_t bytes() const { return bytes_; }

 private:
  struct Place {
    std::int32_t pc;
    std::uint32_t scope;  // offset of its description; 0: none
  };
  struct Call {
    std::uint32_t method;  // index in metadata
    std::uint32_t bytecode;
    bool operator==(const Call&) const = default;
  };
  /// Innermost first; empty: it is not as expected.
  std::vector<Call> calls(std::uint32_t scope) const;
  std::optional<Frame> frame(const Call& call) const;
  std::uint32_t line(const Call& call) const;

  unsigned version_ = 0;
  std::vector<Place> places_;  // sorted
  std::string scopes_;
  std::unordered_map<std::uint32_t, HotSpotMethod> methods_;  // by index in metadata
  std::size_t bytes_ = 0;
};

}  // namespace coretap::runtimes
