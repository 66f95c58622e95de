// The files that a command maps when it starts, determined before it runs.
#pragma once
#include <string>
#include <vector>

#include "cfi/elf_code.hpp"

namespace coretap::unwind {

/// The interpreter that a script names after "#!"; empty: not a script.
std::string interpreter_of_script(const Image& image);
/// The paths in the output of the dynamic linker's --list: "libc.so.6 => /lib/libc.so.6 (0x...)".
std::vector<std::string> listed_libraries(const std::string& output);

/// The program that execvp() would find, its interpreters, and the libraries that its dynamic
/// linker lists. Runs only the dynamic linker, not the program.
std::vector<std::string> files_of_command(const std::string& name);

}  // namespace coretap::unwind
