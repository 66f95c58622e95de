// Functions of the kernel and its modules that match a pattern, and which of them can be traced.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

struct KernelFunction {
  std::string name, module;   ///< module: empty for the kernel itself
  std::uint64_t address = 0;  ///< 0: unknown, attach by name
  bool operator==(const KernelFunction&) const = default;
};

struct KernelFunctions {
  std::vector<KernelFunction> functions;             ///< sorted by name; names may repeat
  std::map<std::string_view, std::size_t> left_out;  ///< number of functions, by reason
};

/// Files that list the kernel's functions; tests use others. A missing file counts as empty.
struct FunctionLists {
  std::string kallsyms = "/proc/kallsyms";
  std::string addresses;  ///< available_filter_functions_addrs, since 6.5 (83f74441bcb1)
  std::string names;      ///< available_filter_functions
  std::string blacklist = "/sys/kernel/debug/kprobes/blacklist";

  static FunctionLists of_this_kernel();
};

using WantFunction = std::function<bool(const char* name)>;

struct LeftOutFunction {
  std::string name, module;
  std::string_view why;
};

/// `module`: only functions of that module; empty: of the kernel and all modules. `left_out`:
/// receives functions that cannot be traced, in the order of kallsyms.
KernelFunctions kernel_functions(const FunctionLists& lists, std::string_view module,
                                 const WantFunction& wanted,
                                 std::vector<LeftOutFunction>* left_out = nullptr);

/// Upper bound for the end of the code at this address: the next symbol; 0: there is none.
std::uint64_t next_symbol(const FunctionLists& lists, std::uint64_t address);

/// Names of all functions, for suggestions.
std::vector<std::string> function_names(const FunctionLists& lists);

}  // namespace coretap
