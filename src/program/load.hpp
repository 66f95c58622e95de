// Opens a tool's kernel program and loads it.
#pragma once
#include <linux/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "program/session.hpp"

struct bpf_program;

namespace coretap {

/// The programs and maps of a tool's BPF object; read without privileges.
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

/// Function information (BTF func_info) for copies of a program. Without it the kernel verifies a
/// function at each call site instead of once.
struct FunctionInfo {
  __u32 btf = 0;  ///< descriptor, valid while the object exists
  __u32 record_size = 0;
  std::vector<char> records = {};  ///< empty: the kernel needs none
};
/// For a loaded program on targets (target_attach.hpp).
FunctionInfo functions_of(const bpf_program* program);

/// Loads the programs that the plan has chosen. Then closes the kernel's types.
Result<void> load(Session& s);

}  // namespace coretap
