// Opens a tool's kernel program and loads it.
#pragma once
#include "core/session.hpp"

namespace coretap {

Result<void> open_object(Session& s);

/// Loads what the plan has chosen. Afterwards the kernel's types are closed.
Result<void> load(Session& s);

}  // namespace coretap
