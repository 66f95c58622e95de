// Variables of a kernel program: constants (.rodata) before it is loaded, others (.bss) while it
// runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap {

struct Session;

/// Sets a constant by its name; false: the program has none of that name.
bool set_variable(Session& session, std::string_view name, std::uint64_t value);
bool set_variable(Session& session, std::string_view name, const void* bytes, std::size_t size);
/// Bytes at an offset of the constants.
void edit_rodata(const Session& session, std::size_t offset, const void* bytes, std::size_t size);

/// Name, offset and size of each constant.
using VisitVariable = std::function<void(std::string_view, std::uint32_t, std::uint32_t)>;
void each_constant(const Session& session, const VisitVariable& visit);

/// After load: for set_live().
Result<void> open_live(Session& session);
/// Sets a variable of the running programs; where there is none of that name and size, nothing
/// happens.
void set_live(Session& session, std::string_view variable, const void* bytes, std::uint32_t size);

}  // namespace coretap
