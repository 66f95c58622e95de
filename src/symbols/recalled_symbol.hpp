// Symbols in recordings (base/recall.hpp).
#pragma once
#include <functional>

#include "base/recall.hpp"
#include "coretap/symbols.hpp"

namespace coretap::symbols {

/// The answer of `live`, or the recorded one; only while a run is recorded or shown. `what`:
/// Ask::kernel_symbol or Ask::user_symbol.
Symbol recalled(Ask what, const std::vector<std::uint64_t>& question,
                const std::function<Symbol()>& live);

}  // namespace coretap::symbols
