#include "runtimes/hotspot_scopes.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

namespace coretap::runtimes {

std::optional<HotSpotScopes> HotSpotScopes::in(const HotSpotTables& tables) {
  constexpr std::uint16_t kMostPcBytes = 64;
  HotSpotOffsets fields(tables);
  HotSpotScopes to;
  to.pc = fields.of("PcDesc::_pc_offset");
  to.scope = fields.of("PcDesc::_scope_decode_offset");
  to.pc_bytes = fields.size("PcDesc");
  to.pcs = fields.integer("nmethod::_scopes_pcs_offset");
  if (!tables.field("nmethod::_immutable_data")) {
    to.pcs_end = fields.integer("nmethod::_dependencies_offset");
    to.other = fields.of("CompiledMethod::_scopes_data_begin");
    to.metadata = fields.integer("nmethod::_metadata_offset");
  } else {
    to.immutable = fields.of("nmethod::_immutable_data");
    to.immutable_bytes = fields.integer("nmethod::_immutable_data_size");
    to.pcs_end = fields.integer("nmethod::_scopes_data_offset");
    if (tables.field("CodeBlob::_mutable_data")) {
      to.place = Place::apart;
      to.other = fields.of("CodeBlob::_mutable_data");
      to.metadata = fields.integer("CodeBlob::_relocation_size");
    } else {
      to.place = Place::with_metadata;
      to.data = fields.integer("CodeBlob::_data_offset");
      to.metadata = fields.integer("nmethod::_metadata_offset");
    }
  }
  if (!fields.fits || to.pc_bytes > kMostPcBytes || to.pc + sizeof(std::int32_t) > to.pc_bytes ||
      to.scope + sizeof(std::int32_t) > to.pc_bytes)
    return {};
  return to;
}

namespace {

/// Where an nmethod has its tables: addresses.
struct Tables {
  std::uint64_t places = 0, places_end = 0, scopes = 0, scopes_end = 0, metadata = 0;
};

/// Fields of an nmethod.
class Nmethod {
 public:
  Nmethod(Pages& memory, std::uint64_t address) : memory_(memory), address_(address) {}

  std::uint64_t address(std::uint16_t at) { return number(at, sizeof(std::uint64_t)); }
  std::uint64_t integer(HotSpotOffsets::Integer field) { return number(field.at, field.bytes); }
  std::uint64_t begin() const { return address_; }

  bool readable = true;

 private:
  std::uint64_t number(std::uint16_t at, std::uint16_t bytes) {
    std::uint64_t value = 0;  // little-endian: as x86-64 and arm64 are
    readable &= memory_.read(address_ + at, &value, bytes);
    return value;
  }

  Pages& memory_;
  std::uint64_t address_;
};

std::optional<Tables> tables_of(Pages& memory, const HotSpotScopes& at, std::uint64_t nmethod) {
  Nmethod of(memory, nmethod);
  const auto base =
      at.place == HotSpotScopes::Place::with_code ? nmethod : of.address(at.immutable);
  Tables to;
  to.places = base + of.integer(at.pcs);
  to.places_end = base + of.integer(at.pcs_end);
  switch (at.place) {
    case HotSpotScopes::Place::with_code:
      to.scopes = of.address(at.other);
      to.scopes_end = to.places;
      to.metadata = nmethod + of.integer(at.metadata);
      break;
    case HotSpotScopes::Place::with_metadata:
      to.scopes = to.places_end;
      to.scopes_end = base + of.integer(at.immutable_bytes);
      to.metadata = nmethod + of.integer(at.data) + of.integer(at.metadata);
      break;
    case HotSpotScopes::Place::apart:
      to.scopes = to.places_end;
      to.scopes_end = base + of.integer(at.immutable_bytes);
      to.metadata = of.address(at.other) + of.integer(at.metadata);
      break;
  }
  if (!of.readable || to.places_end < to.places || to.scopes_end < to.scopes) return {};
  return to;
}

}  // namespace

std::shared_ptr<const InlinedMethods> InlinedMethods::read(
    const Memory& memory, const hotspot_layout& layout, const HotSpotScopes& scopes,
    const hotspot_code& code, const std::function<bool(std::size_t)>& may_read) {
  // Code may be freed, and other code take its place, at any time.
  const auto is_there = [&](Pages& pages) {
    std::uint64_t method = 0;
    std::uint32_t id = 0;
    return pages.read(code.nmethod + layout.method, &method, sizeof method) &&
           pages.read(code.nmethod + layout.compile_id, &id, sizeof id) && method == code.method &&
           id == code.compile_id;
  };
  Pages pages(memory);
  if (!is_there(pages)) return nullptr;
  const auto tables = tables_of(pages, scopes, code.nmethod);
  if (!tables) return nullptr;
  const auto count = (tables->places_end - tables->places) / scopes.pc_bytes,
             bytes = tables->scopes_end - tables->scopes;
  if (!count || count > kMostPlaces || bytes > kMostScopes ||
      !may_read(count * scopes.pc_bytes + bytes))
    return nullptr;
  auto made = std::make_shared<InlinedMethods>();
  made->version_ = layout.version;
  std::string places(count * scopes.pc_bytes, '\0');
  made->scopes_.resize(bytes);
  if (!memory(tables->places, places) || !memory(tables->scopes, made->scopes_)) return nullptr;
  made->places_.reserve(count);
  for (std::size_t i = 0; i < count; i++) {
    const char* from = places.data() + i * scopes.pc_bytes;
    Place place{};
    std::memcpy(&place.pc, from + scopes.pc, sizeof place.pc);
    std::memcpy(&place.scope, from + scopes.scope, sizeof place.scope);
    if (i && place.pc <= made->places_.back().pc) return nullptr;
    made->places_.push_back(place);
  }
  std::uint32_t last = 0;
  for (auto& place : made->places_) {
    if (place.scope == last) continue;
    last = place.scope;
    for (auto& call : made->calls(place.scope)) {
      if (made->methods_.contains(call.method)) continue;
      std::uint64_t method = 0;
      if (!call.method || made->methods_.size() == kMostMethods ||
          !pages.read(tables->metadata + (call.method - 1) * sizeof method, &method, sizeof method))
        return nullptr;
      auto names = hotspot_method(pages, layout, method);
      if (!names) return nullptr;
      made->bytes_ += sizeof *names + names->bytes();
      made->methods_.emplace(call.method, std::move(*names));
    }
  }
  made->bytes_ += sizeof *made + made->scopes_.size() + count * sizeof(Place);
  Pages again(memory);
  return is_there(again) ? made : nullptr;
}

std::vector<InlinedMethods::Call> InlinedMethods::calls(std::uint32_t scope) const {
  constexpr std::uint32_t kBeforeFirst = 1;  // a bytecode is stored plus 1: -1 is a call's begin
  std::vector<Call> found;
  while (scope) {
    if (scope >= scopes_.size() || found.size() == kMostDepth) return {};
    HotSpotNumbers in(version_, std::string_view(scopes_).substr(scope));
    const auto caller = in.number(), method = in.number(), bytecode = in.number();
    if (!caller || !method || !bytecode) return {};
    const auto index = *bytecode - kBeforeFirst;
    const bool is_bytecode = index <= std::numeric_limits<std::uint16_t>::max();
    found.push_back({*method, is_bytecode ? index : 0});
    // A description refers to earlier ones only.
    if (*caller >= scope) return {};
    scope = *caller;
  }
  return found;
}

std::uint32_t InlinedMethods::line(const Call& call) const {
  auto at = methods_.find(call.method);
  return at == methods_.end() ? 0 : hotspot_line(version_, at->second.lines, call.bytecode);
}

std::vector<InlinedMethods::Frame> InlinedMethods::at(std::uint32_t place, bool exact) const {
  const auto next = std::ranges::lower_bound(
      places_, static_cast<std::int64_t>(place), {},
      [](const Place& known) { return static_cast<std::int64_t>(known.pc); });
  if (next == places_.end()) return {};
  std::vector<Frame> found;
  const auto add = [&](const Call& call, std::uint32_t line) {
    auto at = methods_.find(call.method);
    if (at != methods_.end()) found.push_back({&at->second, line});
  };
  if (next->pc == static_cast<std::int64_t>(place)) {
    for (auto& call : calls(next->scope)) add(call, line(call));
    return found;
  }
  if (!exact || next == places_.begin()) return {};
  const auto before = calls(std::prev(next)->scope), after = calls(next->scope);
  auto one = before.rbegin(), other = after.rbegin();
  for (; one != before.rend() && other != after.rend(); ++one, ++other) {
    if (one->method != other->method) break;
    const auto first = line(*one), second = line(*other);
    add(*one, first == second ? first : 0);
    // Of two calls in one method, only the method is common.
    if (one->bytecode != other->bytecode) break;
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace coretap::runtimes
