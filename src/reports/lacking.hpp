// Fields of which a recording of another version of coretap does not have the data.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/lacking.hpp"

namespace coretap {

/// Fields that depend on lacking bytes become empty; each is said once: "field uid: not in this
/// recording". `lacking` has places in the record of `size` bytes that the fields read. Whether a
/// field depends on them is found out by reading records that differ only there.
void leave_empty(std::vector<Field>& fields, std::size_t size, const std::vector<Lacking>& lacking,
                 std::vector<std::string>& said);

}  // namespace coretap
