// The files that a command maps when it starts: known before it runs.
#pragma once
#include <string>
#include <vector>

#include "cfi/elf_code.hpp"

namespace coretap::unwind {

/// The path of the dynamic linker that the file names (PT_INTERP); empty: it needs none, or it is
/// no 64-bit ELF file.
std::string interpreter_of(const Image& image);
/// The interpreter that a script names behind "#!"; empty: it is none.
std::string interpreter_of_script(const Image& image);
/// Paths in the output of the dynamic linker's --list: "libc.so.6 => /lib/libc.so.6 (0x...)".
std::vector<std::string> listed_libraries(const std::string& output);

/// The program that execvp() would find, its interpreters, and the libraries that its dynamic
/// linker lists. That is run for it: the program itself is not.
std::vector<std::string> files_of_command(const std::string& name);

}  // namespace coretap::unwind
