// Stacks as fields of records.
#pragma once
#include <vector>

#include "coretap/fields.hpp"

namespace coretap {

struct Session;

bool has_stacks(const std::vector<Field>& fields);

/// Before load: makes names of kernel frames available to fields (FieldContext::kernel_frames).
void name_kernel_stacks(Session& s);
/// Reads the kernel's symbols, which is slow, before anything is measured.
void read_kernel_symbols(const Session& s);

}  // namespace coretap
