#include "runtimes/hotspot_tables.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace coretap::runtimes {

bool Pages::read(std::uint64_t address, void* to, std::size_t bytes) {
  auto* out = static_cast<char*>(to);
  while (bytes) {
    const auto* page = page_of(address);
    if (!page) return false;
    const auto at = address % kPage;
    const auto part = std::min(bytes, kPage - at);
    std::memcpy(out, page->data() + at, part);
    out += part;
    address += part;
    bytes -= part;
  }
  return true;
}

std::optional<std::string> Pages::text(std::uint64_t address) {
  std::string text;
  for (; text.size() < kMostText; address++) {
    const auto* page = page_of(address);
    if (!page) return {};
    const char c = (*page)[address % kPage];
    if (!c) return text;
    text += c;
  }
  return {};
}

const std::string* Pages::page_of(std::uint64_t address) {
  const auto start = address - address % kPage;
  auto [at, is_new] = pages_.try_emplace(start);
  if (is_new) {
    if (pages_.size() > kMostPages) return nullptr;
    at->second.resize(kPage);
    if (!memory_(start, at->second)) at->second.clear();
  }
  return at->second.empty() ? nullptr : &at->second;
}

namespace {

/// Entries of the tables, whose form no version has changed.
struct StructEntry {
  std::uint64_t type, field, type_string;
  std::int32_t is_static, pad;
  std::uint64_t offset, address;
};
struct TypeEntry {
  std::uint64_t type, superclass;
  std::int32_t flags[3], pad;
  std::uint64_t size;
};

}  // namespace

std::optional<HotSpotTables> HotSpotTables::read(const Memory& memory, std::uint64_t structs,
                                                 std::uint64_t types) {
  Pages pages(memory);
  HotSpotTables tables;
  std::uint64_t at = 0;
  if (!pages.read(structs, &at, sizeof at) || !at) return {};
  for (std::size_t i = 0;; i++, at += sizeof(StructEntry)) {
    StructEntry entry{};
    if (i == kMostFields || !pages.read(at, &entry, sizeof entry)) return {};
    if (!entry.type) break;
    auto type = pages.text(entry.type), field = pages.text(entry.field);
    if (!type || !field) return {};
    Field made;
    made.is_static = entry.is_static != 0;
    made.at = made.is_static ? entry.address : entry.offset;
    if (entry.type_string) made.type = pages.text(entry.type_string).value_or("");
    tables.fields_.emplace(*type + "::" + *field, std::move(made));
  }
  if (!pages.read(types, &at, sizeof at) || !at) return {};
  for (std::size_t i = 0;; i++, at += sizeof(TypeEntry)) {
    TypeEntry entry{};
    if (i == kMostTypes || !pages.read(at, &entry, sizeof entry)) return {};
    if (!entry.type) break;
    auto type = pages.text(entry.type);
    if (!type) return {};
    tables.types_.emplace(std::move(*type), entry.size);
  }
  return tables;
}

const HotSpotTables::Field* HotSpotTables::field(std::string_view name) const {
  auto at = fields_.find(name);
  return at == fields_.end() ? nullptr : &at->second;
}

std::optional<std::uint64_t> HotSpotTables::offset(std::string_view name) const {
  const auto* known = field(name);
  if (!known || known->is_static || known->at >= kMostFieldOffset) return {};
  return known->at;
}

std::optional<std::uint64_t> HotSpotTables::address(std::string_view name) const {
  const auto* known = field(name);
  if (!known || !known->is_static) return {};
  return known->at;
}

std::optional<std::uint64_t> HotSpotTables::size_of(std::string_view type) const {
  auto at = types_.find(type);
  if (at == types_.end()) return {};
  return at->second;
}

std::uint16_t HotSpotOffsets::of(std::string_view name) {
  const auto offset = tables_.offset(name);
  fits &= offset.has_value();
  return static_cast<std::uint16_t>(offset.value_or(0));
}

HotSpotOffsets::Integer HotSpotOffsets::integer(std::string_view name) {
  const auto* known = tables_.field(name);
  const auto type = known ? std::string_view(known->type) : std::string_view();
  std::uint16_t bytes = 0;
  if (type == "int") bytes = 4;
  if (type == "u2" || type == "uint16_t" || type == "int16_t") bytes = 2;
  fits &= bytes != 0;
  return {of(name), bytes};
}

std::uint16_t HotSpotOffsets::size(std::string_view type) {
  const auto size = tables_.size_of(type).value_or(0);
  fits &= size && size < HotSpotTables::kMostFieldOffset;
  return static_cast<std::uint16_t>(size);
}

}  // namespace coretap::runtimes
