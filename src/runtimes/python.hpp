// CPython in an ELF file: which version it is, and where its structures have their fields.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/stack/runtime.h"

namespace coretap::runtimes {

constexpr std::string_view kPythonMark = "_PyRuntime";

/// Nothing if the file does not contain the interpreter (the program, or libpython). `base`: the
/// unwind table's, from which the kernel program counts addresses. A version whose structures are
/// not known has PYTHON_NOT_KNOWN. Sources of offsets: from 3.13 on the file's own table
/// (_Py_DebugOffsets, Include/internal/pycore_debug_offsets.h), before that a table of ours for
/// each minor version, in which they never change.
std::optional<runtime_file> python_in(int fd, std::uint64_t base);

}  // namespace coretap::runtimes
