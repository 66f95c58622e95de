// How values are shown, for a recording: the types, formats and layouts that were found when the
// run was recorded. Reading them back needs no type information. A recording may be anyone's: what
// is read back is safe to show values with, whatever the bytes are.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "coretap/result.hpp"
#include "expression/compile.hpp"
#include "expression/print.hpp"
#include "expression/typed.hpp"

namespace coretap::expression {

/// Of the type only what showing a value needs.
std::string packed(const Output& output);
/// Nothing: damaged.
std::optional<Output> output_from(std::string_view bytes);

std::string packed(const Conversion& conversion);
std::optional<Conversion> conversion_from(std::string_view bytes);

std::string packed(const Layout& layout);
/// Null: damaged.
std::shared_ptr<const Layout> layout_from(std::string_view bytes);

/// Sizes of the structs that values are in.
std::string value_structs();
/// While a recording is shown: passes what it has by this name (Ask::report) to `take`, which
/// returns false if the recording has other structs, or is damaged.
Result<void> take_recorded(std::string_view name,
                           const std::function<bool(std::string_view)>& take);

}  // namespace coretap::expression
