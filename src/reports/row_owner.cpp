#include "reports/row_owner.hpp"

#include <algorithm>
#include <iterator>

#include "coretap/identity.hpp"

namespace coretap {

namespace {

struct OfRow {
  static const task_id* of(const void* row, const FieldContext& context) {
    static constexpr task_id kNone{};  // for documentation, which has no rows
    if (!context.owner_at) return &kNone;
    const auto* owner =
        reinterpret_cast<const task_id*>(static_cast<const char*>(row) + context.owner_at);
    return owner->known ? owner : nullptr;
  }
};

struct Part {
  std::string_view key;
  std::string_view column, word;  ///< titles in tables and above histograms
  owner_part part;
  int width;
};

constexpr Part kParts[] = {
    {"pid", "PID", "pid", OWNER_PID, -7},
    {"comm", "COMM", "comm", OWNER_COMM, -16},
    {"uid", "UID", "uid", OWNER_UID, -6},
    {"cgroup_id", "CGROUP_ID", "cgroup id", OWNER_CGROUP, -20},
    {"cgroup", "CGROUP", "cgroup", OWNER_CGROUP, -32},
    {"container", "CONTAINER", "container", OWNER_CGROUP, -20},
    {"container_id", "CONTAINER_ID", "container id", OWNER_CGROUP, -20},
    {"pod", "POD", "pod", OWNER_CGROUP, -24},
    {"unit", "UNIT", "unit", OWNER_CGROUP, -24},
};

const Part* part_of(std::string_view key) {
  const auto* found = std::ranges::find(kParts, key, &Part::key);
  return found == std::end(kParts) ? nullptr : found;
}

}  // namespace

bool has_owner(const AggregateReport& report) {
  return report.no_owner.empty() && !report.keyless &&
         (report.layout == AggregateReport::histograms || report.layout == AggregateReport::table ||
          report.layout == AggregateReport::lines || report.layout == AggregateReport::screen);
}

std::vector<Field> owner_fields(const AggregateReport& report) {
  auto fields = detail::parts_of<OfRow>(id::pid, id::comm, id::uid, id::cgroup);
  std::erase_if(
      fields, [&](auto& f) { return std::ranges::count(report.fields, f.key, &Field::key) != 0; });
  bool words = report.layout == AggregateReport::histograms;
  for (auto& f : fields) {
    const auto* part = part_of(f.key);
    if (!part) continue;
    f.title = words ? part->word : part->column;
    f.format.width = part->width;
    f.shown_with = f.only_with = kNamedByOnly;
  }
  return fields;
}

bool is_owner_field(const Field& field) { return field.only_with == kNamedByOnly; }

bool is_owner_key(std::string_view key) { return part_of(key) != nullptr; }

std::uint32_t owner_parts(const std::vector<Field>& fields) {
  std::uint32_t parts = 0;
  for (auto& f : fields)
    if (is_owner_field(f)) parts |= part_of(f.key)->part;
  return parts;
}

}  // namespace coretap
