// Stacks in the fields of records.
#pragma once
#include <vector>

#include "coretap/fields.hpp"

namespace coretap {

struct Session;

bool has_stacks(const std::vector<Field>& fields);

/// Before load: from now on fields get the names of kernel frames (FieldContext::kernel_frames).
void name_kernel_stacks(Session& s);
/// Reads the kernel's symbols, which takes long, before anything is measured.
void read_kernel_symbols(const Session& s);

}  // namespace coretap
