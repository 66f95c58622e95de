// Opens a tool's kernel program and loads it.
#pragma once
#include <linux/types.h>

#include <map>
#include <optional>
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

/// Facts for the load of one program, and for copies of it.
struct LoadedProgram {
  /// Tracing programs need the BTF id of their target, for which libbpf reads all BTF types. Here
  /// the plan knows the id. Until just before its load such a program is declared as a type that
  /// needs no id.
  __u32 target = 0;
  int module_object = 0;  ///< descriptor of a module's BTF, for one of its functions
  /// Function information (BTF func_info) for copies of the program. Without it the kernel verifies
  /// a function at each call site instead of once.
  __u32 btf = 0;  ///< descriptor, valid while the object exists
  __u32 record_size = 0;
  std::vector<char> records = {};  ///< empty: the kernel needs none
};

/// State of one object for libbpf's callbacks, which take no argument of the caller: they use the
/// last one made.
struct Loader {
  explicit Loader(Session& session);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  Session& s;
  /// Messages of libbpf; kept until the programs are loaded, and shown with --verbose if that
  /// fails.
  std::optional<std::string> words = std::string();
  std::map<const bpf_program*, LoadedProgram> programs = {};
  bool no_exchange = false;
  std::uint32_t cast = 0;  ///< result of tell_types()
  Kernel::Preemption preemption = {};
};

/// Loads the programs that the plan has chosen. Then closes the kernel's types.
Result<void> load(Session& s);

}  // namespace coretap
