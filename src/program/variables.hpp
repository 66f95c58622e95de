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

/// Sets a constant by name; false: the program has no such constant.
bool set_variable(Session& session, std::string_view name, std::uint64_t value);
bool set_variable(Session& session, std::string_view name, const void* bytes, std::size_t size);
/// Writes bytes at an offset of the constants.
void edit_rodata(const Session& session, std::size_t offset, const void* bytes, std::size_t size);

/// Name, offset and size of each constant.
using VisitVariable = std::function<void(std::string_view, std::uint32_t, std::uint32_t)>;
void each_constant(const Session& session, const VisitVariable& visit);

/// After load: maps .bss for set_live().
Result<void> open_live(Session& session);
/// Sets a variable of the running programs; does nothing if there is none with that name and
/// size.
void set_live(Session& session, std::string_view variable, const void* bytes, std::uint32_t size);

}  // namespace coretap
