// Rows of a snapshot from what an iterator program has written.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "coretap/reports.hpp"

namespace coretap {

/// Records of one size as they are.
SnapshotReport::Reading records_of(std::string bytes, std::size_t size);

/// One row for all records that begin with the same key, in the order in which the keys come: the
/// key, and behind it, aligned to 8 bytes, how many there are.
SnapshotReport::Reading groups_of(const SnapshotReport::Reading& records, std::size_t key_size);

/// The largest values of this field first; equal ones keep their order.
void sort_by(SnapshotReport::Reading& rows, const Field& field, const FieldContext& context);

}  // namespace coretap
