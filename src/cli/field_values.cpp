// Number of values a key can have, derived from the field tables without a declaration per field.
#include <algorithm>

#include "coretap/fields.hpp"

namespace coretap {

namespace {

/// Keys that identify a task or its cgroup: the same in all tools, whatever their format.
constexpr std::string_view kCapped[] = {"comm", "uid",  "cgroup",      "container",  "container_id",
                                        "pod",  "unit", "parent_comm", "target_comm"};

}  // namespace

Values values_of(const Field& f) {
  if (f.values != Values::by_format) return f.values;
  if (std::ranges::count(kCapped, f.key)) return Values::capped;
  switch (f.format.kind) {
    case Format::error:
    case Format::disk:
    case Format::enumerator:
    case Format::block_flags:
    case Format::syscall:
    case Format::rwbs:
    case Format::target:  // as many as targets on the command line
      return Values::bounded;
    case Format::symbol:
      return Values::capped;
    default:
      return Values::unbounded;
  }
}

bool is_key(const Field& f) {
  if (f.role == Role::counter || f.role == Role::gauge) return false;
  return f.role == Role::plain || values_of(f) != Values::unbounded;
}

}  // namespace coretap
