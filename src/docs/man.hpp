// Manual pages in mdoc, from the tool's table and the kernel program in the executable.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/tool.hpp"
#include "docs/naming.hpp"

namespace coretap {

std::string man_page(const Tool& tool, const Naming& naming = {});
std::string coretap_man_page(const Naming& naming = {});

/// What lies in a tool's kernel program; read without privileges.
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

}  // namespace coretap
