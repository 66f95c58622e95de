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
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>()(name);
  }
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

/// Sorts functions, of which there may be 50,000: compares numbers made of the first bytes of
/// their names, in which most names differ.
class Sorted {
 public:
  explicit Sorted(std::vector<KernelFunction> functions) : all_(std::move(functions)) {
    for (std::size_t i = 0; i < all_.size(); i++) {
      std::uint64_t begin = 0;
      for (std::size_t k = 0; k < sizeof begin; k++)
        begin =
            begin << 8 | (k < all_[i].name.size() ? static_cast<std::uint8_t>(all_[i].name[k]) : 0);
      order_.push_back({all_[i].address, begin, i});
    }
  }

  /// Keeps the first name of each address. Returns the number of names removed.
  std::size_t drop_other_names() {
    std::sort(order_.begin(), order_.end(), [&](auto& a, auto& b) {
      return a.address != b.address ? a.address < b.address : named_before(a, b);
    });
    auto same = [&](auto& a, auto& b) {
      return a.address == b.address && (a.address || all_[a.at] == all_[b.at]);
    };
    const auto before = order_.size();
    order_.erase(std::unique(order_.begin(), order_.end(), same), order_.end());
    return before - order_.size();
  }

  std::vector<KernelFunction> by_name() {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](auto& a, auto& b) { return named_before(a, b); });
    std::vector<KernelFunction> sorted;
    sorted.reserve(order_.size());
    for (auto& each : order_) sorted.push_back(std::move(all_[each.at]));
    return sorted;
  }

 private:
  struct Each {
    std::uint64_t address, begin;
    std::size_t at;
  };

  bool named_before(const Each& a, const Each& b) const {
    if (a.begin != b.begin) return a.begin < b.begin;
    auto &f = all_[a.at], &g = all_[b.at];
    return std::tie(f.name, f.module) < std::tie(g.name, g.module);
  }

  std::vector<KernelFunction> all_;
  std::vector<Each> order_;
};

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
  auto leave_out = [&](const Named& n, std::string_view reason) {
    found.left_out[reason]++;
    if (left_out) left_out->push_back({std::string(n.name), std::string(n.module), reason});
  };

  std::vector<std::uint64_t> patched;
  each_line(lists.addresses, [&](std::string_view line) {
    std::uint64_t address = 0;
    if (symbols::take_hex(line, address) && address) patched.push_back(address);
  });
  std::sort(patched.begin(), patched.end());
  // Has one name for each address: aliases are found by the address.
  NameSet traceable;  // "name module"
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

  auto can_trace = [&](const Named& n, std::uint64_t address) {
    if (!patched.empty() && address) {
      auto place = std::lower_bound(patched.begin(), patched.end(), address);
      return place != patched.end() && *place - address <= kPatchWithin;
    }
    return !by_name || traceable.contains(whole(n));
  };
  constexpr std::string_view kNotBuilt = "notrace, or not built for tracing";
  std::uint64_t here = 0;
  bool listed = false;
  std::vector<KernelFunction> waiting;  // at this address: a later alias may be listed
  auto settle = [&] {
    for (auto& f : waiting) {
      if (listed)
        found.functions.push_back(std::move(f));
      else
        leave_out({f.name, f.module}, kNotBuilt);
    }
    waiting.clear();
  };
  each_line(lists.kallsyms, [&](std::string_view line) {
    std::uint64_t address = 0;
    Named n;
    if (!parse_symbol(line, address, n)) return;
    if (by_name && address) {
      if (address != here) {
        settle();
        listed = false;
      }
      here = address;
      listed = listed || traceable.contains(whole(n));
    }
    if (!wants(n)) return;
    if (is_no_function(n.name))
      found.left_out["padding or a cold part of a function"]++;
    else if (blacklist.contains(n.name))
      leave_out(n, "on the kernel's list of what must not be probed");
    else if (is_unsafe(n.name))
      leave_out(n, "used by tracing itself");
    else if (by_name && address)
      waiting.push_back({std::string(n.name), std::string(n.module), address});
    else if (!can_trace(n, address))
      leave_out(n, kNotBuilt);
    else
      found.functions.push_back({std::string(n.name), std::string(n.module), address});
  });
  settle();

  auto all = Sorted(std::move(found.functions));
  // A function with several names is traced once, by the first name.
  if (auto others = all.drop_other_names())
    found.left_out["another name of one that is traced"] = others;
  found.functions = all.by_name();
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
