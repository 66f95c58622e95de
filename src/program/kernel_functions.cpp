#include "program/kernel_functions.hpp"

#include <fcntl.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "coretap/fd.hpp"
#include "kernel/kernel.hpp"
#include "symbols/process_files.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMaxLine = 1024;
constexpr std::uint64_t kMaxBytes = 256 << 20;
constexpr std::size_t kMostNames = 1 << 20;
/// Largest distance in bytes from a function's address to where ftrace patches it, which is after
/// the landing pad for indirect branches.
constexpr std::uint64_t kPatchWithin = 16;

template <class Visit>
bool each_line(const std::string& path, Visit visit) {
  if (path.empty()) return false;
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return false;
  symbols::LineReader reader(fd.get(), kMaxLine, kMaxBytes);
  bool any = false;
  for (std::string_view line; reader.next(line);) {
    any = true;
    if (!reader.truncated()) visit(line);
  }
  return any;
}

/// "name [module]", "name\t[module]"
struct Named {
  std::string_view name, module;
};
Named split_module(std::string_view text) {
  auto end = text.find('\t');
  if (end == text.npos) end = text.find(' ');
  Named n{text.substr(0, end), {}};
  if (end == text.npos) return n;
  auto open = text.find('[', n.name.size()), close = text.rfind(']');
  if (open != text.npos && close != text.npos && close > open)
    n.module = text.substr(open + 1, close - open - 1);
  return n;
}

/// "ffffffff81000000 T name\t[module]"; false if it is not code.
bool parse_symbol(std::string_view line, std::uint64_t& address, Named& named) {
  if (!symbols::take_hex(line, address) || line.size() < 4 || line[0] != ' ' || line[2] != ' ' ||
      std::string_view("tTwW").find(line[1]) == std::string_view::npos)
    return false;
  named = split_module(line.substr(3));
  return !named.name.empty() && named.name.find('\0') == named.name.npos && named.module != "bpf" &&
         !named.module.starts_with("__builtin");
}

/// Lets a NameSet be searched without copying the name.
struct NameHash : std::hash<std::string_view> {
  using is_transparent = void;
};
using NameSet = std::unordered_set<std::string, NameHash, std::equal_to<>>;

/// Padding before a function, or code that was split off: never called.
bool is_no_function(std::string_view name) {
  return name.starts_with("__pfx_") || name.starts_with("__cfi_") || name.ends_with(".cold") ||
         name.find(".cold.") != name.npos;
}

/// The kernel calls these before it runs a program, or where a program must not run.
bool is_unsafe(std::string_view name) {
  return name.starts_with("bpf_dispatcher_") || name.starts_with("__bpf_prog_") ||
         name.starts_with("__ftrace_invalid_address__") || name.starts_with("ftrace_ops_") ||
         name == "arch_cpu_idle" || name == "default_idle" || name.starts_with("rcu_read_") ||
         name.starts_with("__rcu_read_");
}

/// The functions by name; of several names of an address, only the first. There may be 50,000:
/// compares numbers made of the first bytes of their names, in which most names differ.
std::vector<KernelFunction> by_name_once(std::vector<KernelFunction> all) {
  struct Each {
    std::uint64_t begin;
    KernelFunction* function;
  };
  std::vector<Each> order;
  for (auto& f : all) {
    std::uint64_t begin = 0;
    for (std::size_t k = 0; k < sizeof begin; k++)
      begin = begin << 8 | (k < f.name.size() ? static_cast<std::uint8_t>(f.name[k]) : 0);
    order.push_back({begin, &f});
  }
  std::ranges::sort(order, [](auto& a, auto& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    auto &f = *a.function, &g = *b.function;
    return std::tie(f.name, f.module, f.address) < std::tie(g.name, g.module, g.address);
  });
  std::vector<KernelFunction> sorted;
  std::unordered_set<std::uint64_t> seen;
  for (auto& [begin, f] : order) {
    const bool again =
        f->address ? !seen.insert(f->address).second : !sorted.empty() && sorted.back() == *f;
    if (!again) sorted.push_back(std::move(*f));
  }
  return sorted;
}

}  // namespace

FunctionLists FunctionLists::of_this_kernel() {
  FunctionLists lists;
  if (auto directory = tracefs()) {
    lists.addresses = fmt::format("/proc/self/fd/{}/available_filter_functions_addrs", *directory);
    lists.names = fmt::format("/proc/self/fd/{}/available_filter_functions", *directory);
  }
  return lists;
}

KernelFunctions kernel_functions(const FunctionLists& lists, std::string_view module,
                                 const WantFunction& wanted,
                                 std::vector<LeftOutFunction>* left_out) {
  KernelFunctions found;
  std::string buffer;
  auto wants = [&](const Named& n) {
    if (!module.empty() && n.module != module) return false;
    buffer = n.name;
    return wanted(buffer.c_str());
  };
  std::vector<std::uint64_t> patched;
  each_line(lists.addresses, [&](std::string_view line) {
    std::uint64_t address = 0;
    if (symbols::take_hex(line, address) && address) patched.push_back(address);
  });
  std::ranges::sort(patched);
  NameSet traceable;  // "name module"; one name for each address
  bool by_name = false;
  std::string whole_name;
  auto whole = [&](const Named& n) -> const std::string& {
    return whole_name.assign(n.name).append(1, ' ').append(n.module);
  };
  if (patched.empty())
    by_name = each_line(
        lists.names, [&](std::string_view line) { traceable.insert(whole(split_module(line))); });
  NameSet blacklist;
  each_line(lists.blacklist, [&](std::string_view line) {
    auto tab = line.find('\t');
    if (tab != line.npos) blacklist.emplace(split_module(line.substr(tab + 1)).name);
  });

  auto is_patched = [&](std::uint64_t address) {
    auto place = std::ranges::lower_bound(patched, address);
    return place != patched.end() && *place - address <= kPatchWithin;
  };
  constexpr std::string_view kNotBuilt = "notrace, or not built for tracing";
  std::vector<std::pair<KernelFunction, std::string_view>> all;  // and why it cannot be traced
  std::unordered_set<std::uint64_t> listed;                      // by any of an address's names
  each_line(lists.kallsyms, [&](std::string_view line) {
    std::uint64_t address = 0;
    Named n;
    if (!parse_symbol(line, address, n)) return;
    const bool by_own_name = by_name && traceable.contains(whole(n));
    if (by_own_name && address) listed.insert(address);
    if (!wants(n)) return;
    if (is_no_function(n.name)) {
      found.left_out["padding or a cold part of a function"]++;
      return;
    }
    std::string_view why;
    if (blacklist.contains(n.name))
      why = "on the kernel's list of what must not be probed";
    else if (is_unsafe(n.name))
      why = "used by tracing itself";
    else if (address && !patched.empty() ? !is_patched(address)
                                         : by_name && !address && !by_own_name)
      why = kNotBuilt;
    if (!why.empty()) found.left_out[why]++;
    if (why.empty() || left_out)
      all.push_back({{std::string(n.name), std::string(n.module), address}, why});
  });
  for (auto& [f, why] : all) {
    if (why.empty() && by_name && f.address && !listed.contains(f.address)) {
      why = kNotBuilt;
      found.left_out[why]++;
    }
    if (why.empty())
      found.functions.push_back(std::move(f));
    else if (left_out)
      left_out->push_back({std::move(f.name), std::move(f.module), why});
  }
  // A function with several names is traced once, by the first name.
  const auto named = found.functions.size();
  found.functions = by_name_once(std::move(found.functions));
  if (auto others = named - found.functions.size())
    found.left_out["another name of one that is traced"] = others;
  return found;
}

std::uint64_t next_symbol(const FunctionLists& lists, std::uint64_t address) {
  std::uint64_t next = 0;
  each_line(lists.kallsyms, [&](std::string_view line) {
    std::uint64_t other = 0;
    if (symbols::take_hex(line, other) && other > address && (!next || other < next)) next = other;
  });
  return next;
}

std::vector<std::string> function_names(const FunctionLists& lists) {
  std::vector<std::string> names;
  each_line(lists.kallsyms, [&](std::string_view line) {
    std::uint64_t address = 0;
    Named n;
    if (names.size() < kMostNames && parse_symbol(line, address, n) && !is_no_function(n.name))
      names.emplace_back(n.name);
  });
  return names;
}

}  // namespace coretap
