// Whose the rows of an aggregate are, where --by asks (owner_parts in bpf/lib/aggregate.bpf.h).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "coretap/reports.hpp"

namespace coretap {

/// Can its rows be apart for each owner?
bool has_owner(const AggregateReport& report);

/// The owner's fields that the report has not by other means: pid, comm, uid, and those of the
/// cgroup. They exist only where --by names them.
std::vector<Field> owner_fields(const AggregateReport& report);
bool is_owner_field(const Field& field);
/// One of the keys that such fields have.
bool is_owner_key(std::string_view key);

/// enum owner_part: what these fields are read from; 0: from nothing of the owner.
std::uint32_t owner_parts(const std::vector<Field>& fields);

}  // namespace coretap
