// Opens a tool's kernel program and loads it.
#pragma once
#include <linux/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "program/session.hpp"

struct bpf_program;

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

/// What libbpf tells the kernel of a program's functions, for copies of it. Without it the kernel
/// verifies a function with each of its calls, not once.
struct FunctionInfo {
  __u32 btf = 0;  ///< descriptor, as long as the object is there
  __u32 record_size = 0;
  std::vector<char> records = {};  ///< empty: the kernel wants none
};
/// Of a program at targets (target_attach.hpp) that is loaded.
FunctionInfo functions_of(const bpf_program* program);

/// Loads what the plan has chosen. Afterwards the kernel's types are closed.
Result<void> load(Session& s);

}  // namespace coretap
