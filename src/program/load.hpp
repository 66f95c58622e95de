// Opens a tool's kernel program and loads it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "program/session.hpp"

namespace coretap {

/// What is in a tool's kernel program; read without privileges.
struct KernelParts {
  struct Program {
    std::string name, section;
  };
  std::vector<Program> programs;
  std::vector<std::string> maps;

  /// Empty if there is no such program.
  std::string section(std::string_view program) const;
};
KernelParts kernel_parts(const Tool& tool);

Result<void> open_object(Session& s);

/// Loads what the plan has chosen. Afterwards the kernel's types are closed.
Result<void> load(Session& s);

}  // namespace coretap
