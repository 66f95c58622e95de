#include "reports/lacking.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "coretap/config.hpp"

namespace coretap {

namespace {

constexpr std::size_t kTexts = 2 << 16;  // where offsets of texts may lead
constexpr int kRecords = 48;

bool same(const Value& one, const Value& other) {
  auto* a = std::get_if<double>(&one);
  auto* b = std::get_if<double>(&other);
  return (a && b && std::isnan(*a) && std::isnan(*b)) || one == other;
}

/// Numbers as they occur: many are small, and many are 0.
void fill(char* to, std::size_t bytes, std::minstd_rand& random) {
  for (std::size_t at = 0; at < bytes; at++)
    to[at] = static_cast<char>(random() % 4 ? 0 : random());
  for (std::size_t at = 0; at < bytes; at += 8)
    if (random() % 2) to[at] = static_cast<char>(random() % 8);
}

Value nothing(const void*, const FieldContext&) { return {}; }
Value no_frames(const void*, const FieldContext&) { return Frames(); }

/// A record of this size, with something where offsets of texts may lead.
std::string record_of(std::size_t size) {
  std::string record(size + kTexts, '\0');
  for (std::size_t i = size; i < record.size(); i++) record[i] = static_cast<char>('a' + i % 26);
  return record;
}

bool depends_on(const Field& field, std::string& record, std::size_t at, std::size_t bytes) {
  const auto size = record.size() - kTexts;
  static const Config config;
  FieldContext context;
  context.config = &config;
  context.seconds = 1;
  std::minstd_rand random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  memset(record.data(), 0, size);
  for (int i = 0; i < kRecords; i++) {
    if (i) fill(record.data(), size, random);
    memset(record.data() + at, 0, bytes);
    const auto without = field.read(record.data(), context);
    if (!same(without, field.read(record.data(), context))) return false;  // it is of the moment
    for (int value = 0; value < 3; value++) {
      if (value == 0) memset(record.data() + at, 0xff, bytes);
      if (value == 1) memset(record.data() + at, '1', bytes);
      if (value == 2) fill(record.data() + at, bytes, random);
      if (!same(without, field.read(record.data(), context))) return true;
    }
  }
  return false;
}

}  // namespace

void leave_empty(std::vector<Field>& fields, std::size_t size, const std::vector<Lacking>& lacking,
                 std::vector<std::string>& said) {
  if (lacking.empty()) return;
  auto record = record_of(size);
  for (auto& field : fields) {
    auto why = std::ranges::find_if(lacking, [&](auto& lack) {
      return lack.at + lack.bytes <= size && depends_on(field, record, lack.at, lack.bytes);
    });
    if (why == lacking.end()) continue;
    field.read = field.is_stack() ? no_frames : nothing;
    field.nullable = true;
    auto line = fmt::format("field {}: {}", field.key, why->why);
    if (std::ranges::find(said, line) == said.end()) said.push_back(std::move(line));
  }
}

}  // namespace coretap
