// Rows of a snapshot from the output of an iterator program.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "coretap/reports.hpp"

namespace coretap {

/// Splits the bytes into records of this size.
SnapshotReport::Reading records_of(std::string bytes, std::size_t size);

/// One row for all records that start with the same key, in the order in which the keys appear: the
/// key, then, aligned to 8 bytes, the number of records.
SnapshotReport::Reading groups_of(const SnapshotReport::Reading& records, std::size_t key_size);

/// Sorts by this field, the largest value first; equal ones keep their order.
void sort_by(SnapshotReport::Reading& rows, const Field& field, const FieldContext& context);

}  // namespace coretap
