// Owners of an aggregate's rows, if --by requests them (owner_parts in
// bpf/lib/aggregate/aggregate.bpf.h).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "coretap/reports.hpp"

namespace coretap {

/// True if there can be separate rows for each owner.
bool has_owner(const AggregateReport& report);

/// The owner's fields that the report does not have already: pid, comm, uid, and those of the
/// cgroup. They exist only if --by names them.
std::vector<Field> owner_fields(const AggregateReport& report);
bool is_owner_field(const Field& field);
/// True for a key of these fields.
bool is_owner_key(std::string_view key);

/// enum owner_part: the parts of the owner that these fields read; 0: none.
std::uint32_t owner_parts(const std::vector<Field>& fields);

}  // namespace coretap
