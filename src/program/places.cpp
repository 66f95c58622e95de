#include "program/places.hpp"

#include <asm/ptrace.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/hooks.hpp"
#include "coretap/sanitize.hpp"
#include "expression/dwarf.hpp"
#include "kernel/kernel.hpp"
#include "lib/targets/expression.h"
#include "program/section.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "symbols/usdt.hpp"

namespace coretap {

namespace {

using expression::Code;
using expression::Scope;
using Places = std::vector<const TargetPoint*>;
using Parameters = std::vector<expression::Parameter>;

constexpr std::string_view kAtReturn =
    "arguments are known where a function is entered; of a system call at its return, too";
constexpr std::string_view kWithin = "arguments are known at the entry: leave out the offset";
constexpr std::string_view kAtEntry = "a result is known at returns: r:LIBRARY:FUNCTION";
constexpr std::uint32_t kArguments = offsetof(expression_in, arguments);
constexpr std::uint32_t kResult = offsetof(expression_in, result);

bool is_argument(const expression::Variable& variable) {
  return variable.at >= kArguments && variable.at < kArguments + sizeof(expression_in::arguments);
}

std::string argument_name(std::size_t number) { return fmt::format("arg{}", number); }

void no_arguments(Scope& scope, std::string_view why) {
  for (std::size_t i = 1; i <= 6; i++) scope.missing[argument_name(i)] = why;
}

/// After the entry, a parameter's register may hold anything: removes them from the scope.
void forget_arguments(Scope& scope, const Parameters* signature) {
  for (auto& [name, variable] : scope.names)
    if (is_argument(variable)) scope.missing[name] = kWithin;
  for (auto& [name, why] : scope.missing) scope.names.erase(name);
  if (signature)
    for (auto& p : *signature) scope.missing[p.name] = kWithin;
}

/// Why the result register cannot hold a value of this type; empty: it can.
std::string no_result(const expression::TypePtr& type) {
  using expression::Type;
  if (!type || type->kind == Type::integer || type->kind == Type::pointer) return {};
  if (type->name == "void") return "the function returns nothing (void)";
  return fmt::format("the function returns no integer and no pointer ({})", type->name);
}

void add_result(Scope& scope, expression::TypePtr type) {
  if (auto why = no_result(type); !why.empty()) {
    scope.missing["retval"] = std::move(why);
    return;
  }
  if (!type) type = expression::untyped_register(true);
  scope.names["retval"] = scope.names["$retval"] = {std::move(type), kResult, false, 0};
}

/// Adds a tracepoint's record, by its name in bcc.
Result<void> add_record(Scope& scope, std::string_view category, std::string_view name,
                        const expression::Types& types, bool inputs) {
  auto format = tracepoint_file(category, name, "format");
  if (!format) {
    if (inputs) return {};  // the arguments are there by number
    return format.error();
  }
  expression::Type record{expression::Type::record, fmt::format("t:{}:{}", category, name)};
  record.members =
      expression::format_members(*format, types, inputs ? std::optional(kArguments) : std::nullopt);
  if (inputs)
    for (auto& word : record.members->names())
      if (auto member = record.members->find(word);
          member && member->place == expression::Member::input)
        scope.names[word] = {member->type, member->bit, false, EXPRESSION_USES_ARGUMENTS};
  scope.names["args"] = {
      expression::pointer_to(std::make_shared<const expression::Type>(std::move(record))),
      static_cast<std::uint32_t>(offsetof(expression_in, context)), false, EXPRESSION_USES_CONTEXT};
  return {};
}

/// Offset of a register of the process within the saved registers; none: its location is
/// unknown.
std::optional<std::size_t> place_of_register(std::string_view name) {
#if defined(__x86_64__)
  struct Register {
    std::array<std::string_view, 4> names;
    std::size_t at;
  };
  static constexpr Register kRegisters[] = {
      {{"rip", "eip", "", ""}, offsetof(pt_regs, rip)},
      {{"rax", "eax", "ax", "al"}, offsetof(pt_regs, rax)},
      {{"rbx", "ebx", "bx", "bl"}, offsetof(pt_regs, rbx)},
      {{"rcx", "ecx", "cx", "cl"}, offsetof(pt_regs, rcx)},
      {{"rdx", "edx", "dx", "dl"}, offsetof(pt_regs, rdx)},
      {{"rsi", "esi", "si", "sil"}, offsetof(pt_regs, rsi)},
      {{"rdi", "edi", "di", "dil"}, offsetof(pt_regs, rdi)},
      {{"rbp", "ebp", "bp", "bpl"}, offsetof(pt_regs, rbp)},
      {{"rsp", "esp", "sp", "spl"}, offsetof(pt_regs, rsp)},
      {{"r8", "r8d", "r8w", "r8b"}, offsetof(pt_regs, r8)},
      {{"r9", "r9d", "r9w", "r9b"}, offsetof(pt_regs, r9)},
      {{"r10", "r10d", "r10w", "r10b"}, offsetof(pt_regs, r10)},
      {{"r11", "r11d", "r11w", "r11b"}, offsetof(pt_regs, r11)},
      {{"r12", "r12d", "r12w", "r12b"}, offsetof(pt_regs, r12)},
      {{"r13", "r13d", "r13w", "r13b"}, offsetof(pt_regs, r13)},
      {{"r14", "r14d", "r14w", "r14b"}, offsetof(pt_regs, r14)},
      {{"r15", "r15d", "r15w", "r15b"}, offsetof(pt_regs, r15)},
  };
  for (auto& r : kRegisters)
    for (auto word : r.names)
      if (!word.empty() && word == name) return r.at;
  return {};
#else
  if (name == "sp") return offsetof(user_pt_regs, sp);
  if (name.size() < 2 || (name[0] != 'x' && name[0] != 'w')) return {};
  std::size_t number = 0;
  for (char c : name.substr(1)) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  if (number > 30) return {};
  return offsetof(user_pt_regs, regs) + 8 * number;
#endif
}

constexpr int kReadAt = -8, kSumAt = -16;

/// Loads what r3 points to into r0, by a helper that reads memory.
void read_memory(Code& code, std::int32_t size, std::int32_t helper) {
  code.call_to_read(helper, BPF_REG_10, kReadAt, size);
  code.load(8, BPF_REG_0, BPF_REG_10, kReadAt);
}

/// Loads a register of the process into r0.
bool read_register(Code& code, std::string_view name) {
  auto at = place_of_register(name);
  if (!at) return false;
  code.load(8, BPF_REG_3, BPF_REG_6, offsetof(expression_in, context));
  code.calculate_by(BPF_ADD, BPF_REG_3, static_cast<std::int32_t>(*at));
  read_memory(code, 8, BPF_FUNC_probe_read_kernel);
  return true;
}

bool read_argument(Code& code, const symbols::UsdtArgument& a) {
  using symbols::UsdtArgument;
  if (a.floating) return false;
  if (a.where == UsdtArgument::constant) {
    code.set(BPF_REG_0, a.value);
  } else if (a.where == UsdtArgument::in_register) {
    if (!read_register(code, a.base)) return false;
  } else {
    code.set(BPF_REG_0, 0);
    if (!a.index.empty()) {
      if (!read_register(code, a.index)) return false;
      code.calculate_by(BPF_MUL, BPF_REG_0, a.scale);
    }
    code.store(BPF_REG_10, kSumAt, BPF_REG_0);
    if (a.base.empty())
      code.set(BPF_REG_0, 0);
    else if (!read_register(code, a.base))
      return false;
    code.load(8, BPF_REG_3, BPF_REG_10, kSumAt);
    code.calculate(BPF_ADD, BPF_REG_3, BPF_REG_0);
    code.set(BPF_REG_0, a.value);
    code.calculate(BPF_ADD, BPF_REG_3, BPF_REG_0);
    code.store_zero(BPF_REG_10, kReadAt);
    read_memory(code, a.size, BPF_FUNC_probe_read_user);
  }
  if (const int rest = 64 - 8 * a.size; rest > 0 && rest < 64) {
    code.calculate_by(BPF_LSH, BPF_REG_0, rest);
    code.calculate_by(a.is_signed ? BPF_ARSH : BPF_RSH, BPF_REG_0, rest);
  }
  return true;
}

/// Stores the arguments of a USDT probe where expressions read them.
Code usdt_arguments(const TargetPoint& place) {
  Code code;
  auto arguments = symbols::parse_usdt_arguments(place.arguments);
  if (!arguments) return code;
  for (std::size_t i = 0; i < arguments->size() && i < 6; i++)
    if (read_argument(code, (*arguments)[i]))
      code.store(BPF_REG_6, static_cast<int>(kArguments + 8 * i), BPF_REG_0);
  return code;
}

/// Why expressions have no types of the modules that define these functions.
std::string no_types_of(const Places& places) {
  auto& module = places.front()->module;
  if (std::ranges::all_of(places, [&](auto* p) { return p->module == module; }))
    return fmt::format("the kernel has no type information of module {} (/sys/kernel/btf/{})",
                       printable(module), printable(module));
  return "types of a module are known where all functions of a pattern are in that one";
}

/// The function as declared in debug information; none if that is missing or the places differ.
std::optional<expression::UserFunction> declared(Scope& scope, const Places& places) {
  auto& first = *places.front();
  const bool same = std::ranges::all_of(
      places, [&](auto* p) { return p->symbol == first.symbol && p->file == first.file; });
  if (!same || !first.file) {
    scope.no_program = "several functions or files have no names in common";
    return {};
  }
  auto function = expression::user_function(first.file->get(), first.offset);
  if (!function) {
    scope.no_program = function.error().what;
    return {};
  }
  scope.program = function->types;
  return std::move(*function);
}

/// Checks all overloads, but only the first functions of a pattern: each takes time.
std::string no_result_of_all(const Places& places) {
  constexpr std::size_t kMost = 8;
  for (auto* place : std::span(places).first(std::min(places.size(), kMost))) {
    if (!place->file) break;
    auto function = expression::user_function(place->file->get(), place->offset);
    if (!function) continue;
    if (auto why = no_result(function->result); !why.empty())
      return fmt::format("{}: {}", printable(place->symbol), why);
  }
  return {};
}

void user_scope(Scope& scope, const Places& places, bool at_return, const Parameters* signature) {
  scope.user = true;
  Parameters parameters;
  auto function = declared(scope, places);
  if (signature)
    parameters = *signature;
  else if (function)
    parameters = function->parameters;
  for (auto& p : parameters) p.type = in_user_memory(p.type);
  if (at_return) {
    add_result(scope, function ? in_user_memory(function->result) : nullptr);
    if (auto why = function ? std::string() : no_result_of_all(places); !why.empty()) {
      scope.names.erase("retval");
      scope.names.erase("$retval");
      scope.missing["retval"] = std::move(why);
    }
    no_arguments(scope, kAtReturn);
    for (auto& p : parameters)
      if (!p.name.empty()) scope.missing[p.name] = kAtReturn;
    return;
  }
  add_arguments(scope, parameters);
  scope.missing["retval"] = kAtEntry;
  if (function && !signature)
    for (auto& [name, why] : function->elsewhere) scope.missing[name] = why;
}

Result<void> usdt_scope(Scope& scope, const Places& places) {
  Parameters parameters(6);
  std::size_t most = 0;
  for (auto& p : parameters) p.type = expression::integer_type(8, false);
  for (auto* place : places) {
    auto arguments = symbols::parse_usdt_arguments(place->arguments);
    if (!arguments)
      return Error{fmt::format("cannot read the arguments of {}", printable(place->symbol)),
                   fmt::format("its note has '{}'", printable(place->arguments)),
                   "leave out its arguments, or name its function (LIBRARY:FUNCTION)",
                   kUnsupported};
    most = std::max(most, arguments->size());
    for (std::size_t i = 0; i < arguments->size() && i < 6; i++)
      if ((*arguments)[i].is_signed) parameters[i].type = expression::integer_type(8, true);
  }
  add_arguments(scope, parameters);
  for (std::size_t i = most + 1; i <= 6; i++) {
    auto name = argument_name(i);
    scope.names.erase(name);
    scope.missing[name] = fmt::format("the probe has {} argument{}", most, most == 1 ? "" : "s");
  }
  for (auto& [name, variable] : scope.names)
    if (name.starts_with("arg")) variable.uses |= EXPRESSION_USES_CONTEXT;
  return {};
}

}  // namespace

std::vector<bool> words_that_ask_for_entries(const Config& config) {
  std::vector<bool> all;
  for (auto& word : config.probes.targets)
    all.push_back(word.starts_with("r:") &&
                  (word.find("$latency") != word.npos || word.find("$entry") != word.npos));
  return all;
}

EntryReads reads_of_expressions(const Config& config, std::size_t word) {
  std::string_view rest = config.probes.targets.at(word);
  rest.remove_prefix(std::min(rest.size(), rest.find_first_of(" (\"")));
  constexpr unsigned kAll = EntryReads().arguments;
  unsigned most = rest.find('\\') == rest.npos ? 0 : kAll;
  const auto is_part = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  while (!rest.empty() && most < kAll) {
    if (rest.front() == '"') rest.remove_prefix(std::min(rest.size() - 1, rest.find('"', 1)));
    const auto end =
        static_cast<std::size_t>(std::ranges::find_if_not(rest, is_part) - rest.begin());
    const auto name = rest.substr(0, end);
    if (name.size() == 4 && name.starts_with("arg") && name[3] > '0' && name[3] <= '6')
      most = std::max(most, static_cast<unsigned>(name[3] - '0'));
    else if (!name.empty() && !(name[0] >= '0' && name[0] <= '9'))
      most = kAll;
    rest.remove_prefix(std::max<std::size_t>(end, 1));
  }
  return {most, true};
}

expression::IsType names_of_types() {
  struct Known {
    Btf btf;
    expression::Types types{&btf};  // without the kernel's types only those of C are known
    bool tried = false;
  };
  return [known = std::make_shared<Known>()](std::string_view word) {
    if (known->types.starts_type(word)) return true;
    if (std::exchange(known->tried, true)) return false;
    return known->btf.open() && known->types.starts_type(word);
  };
}

Result<void> WordsCode::add_filter(std::size_t word, std::string_view text,
                                   const expression::Scope& scope, const expression::Node* filter) {
  if (!filter) return {};
  Code code;
  expression::Compiler compiler(text, scope, code);
  if (auto r = compiler.filter(*filter); !r) return r;
  uses |= compiler.uses();
  filters.add(word, std::move(code));
  return {};
}

Result<void> WordsCode::put(Session& s) const {
  if (auto r = filters.put(s.pads.filter, EXPRESSION_YES); !r) return r;
  if (auto r = outputs.put(s.pads.output, 0); !r) return r;
  set_variable(s, "expression_uses", uses);
  set_variable(s, "expression_filters", !filters.empty());
  set_variable(s, "expression_short", s.pads.filter_is_short());
  return {};
}

const expression::Types& WordTypes::of(std::size_t word) {
  const TargetPoint* first = nullptr;
  bool same = true;
  for (auto& p : targets_.points)
    if (targets_.words.at(p.id) == word) {
      same = same && (!first || first->module == p.module);
      first = first ? first : &p;
    }
  auto* btf = &kernel_.all_types();
  if (first && same && !first->module.empty())
    if (auto& own = kernel_.types_of(first->module); own.is_open()) btf = &own;
  return known_.try_emplace(btf, btf).first->second;
}

Result<Scope> scope_at(const Places& places, const expression::Types& types,
                       const Parameters* signature) {
  Scope scope{&types};
  add_common_names(scope);
  auto& first = *places.front();
  const bool one = std::ranges::all_of(places, [&](auto* p) {
    return p->kind == first.kind && p->symbol == first.symbol && p->module == first.module;
  });
  if (!first.module.empty() && types.btf() && !types.btf()->base())
    scope.no_module = no_types_of(places);
  Parameters parameters;
  if (signature) parameters = *signature;
  auto known = [&]() -> std::optional<expression::Prototype> {
    if (!one) return {};
    return types.function(first.symbol);
  };
  switch (first.kind) {
    case TargetPoint::kernel:
      if (auto prototype = known(); prototype && !signature) parameters = prototype->parameters;
      add_arguments(scope, parameters);
      scope.missing["retval"] = kAtEntry;
      break;
    case TargetPoint::kernel_return: {
      auto prototype = known();
      add_result(scope, prototype ? prototype->result : nullptr);
      no_arguments(scope, kAtReturn);
      if (prototype)
        for (auto& p : prototype->parameters) scope.missing[p.name] = kAtReturn;
      break;
    }
    case TargetPoint::user:
    case TargetPoint::user_return:
      user_scope(scope, places, first.kind == TargetPoint::user_return, signature);
      break;
    case TargetPoint::usdt:
      scope.user = true;
      if (auto r = usdt_scope(scope, places); !r) return r.error();
      break;
    case TargetPoint::tracepoint:
    case TargetPoint::event: {
      auto [category, name] = split_section(first.symbol);
      if (one) {
        if (auto r = add_record(scope, category, name, types, false); !r) return r.error();
      } else {
        scope.missing["args"] = "the pattern names tracepoints with several records";
      }
      break;
    }
    case TargetPoint::call_entry:
    case TargetPoint::call_end:
    case TargetPoint::kinds: {
      scope.user = true;
      add_arguments(scope, parameters);
      if (one && !signature)
        if (auto r = add_record(scope, "syscalls", "sys_enter_" + first.symbol, types, true); !r)
          return r.error();
      if (first.kind == TargetPoint::call_end) {
        add_result(scope, nullptr);
        scope.names["ret"] = scope.names["retval"];
        expression::Type record{expression::Type::record, "t:syscalls:sys_exit_" + first.symbol};
        record.members = expression::format_members(
            "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n", types, kResult);
        scope.names["args"] = {
            expression::pointer_to(std::make_shared<const expression::Type>(std::move(record)))};
      } else {
        scope.missing["retval"] = kAtEntry;
      }
      break;
    }
  }
  if (std::ranges::any_of(places, &TargetPoint::within)) forget_arguments(scope, signature);
  if (auto why = scope.missing.find("retval"); why != scope.missing.end())
    scope.missing["$retval"] = why->second;
  return scope;
}

Result<Scope> scope_of_word(const Targets& targets, std::size_t word,
                            const expression::Types& types, const Parameters* signature) {
  constexpr std::string_view kCalls =
      "times of calls are known at their returns: r:LIBRARY:FUNCTION";
  Places places, entries;
  bool paired = false;
  for (auto& p : targets.points) {
    if (targets.words.at(p.id) != word) continue;
    paired = paired || targets.paired.at(p.id);
    const bool entry = p.kind == TargetPoint::kernel || p.kind == TargetPoint::user ||
                       p.kind == TargetPoint::call_entry;
    (entry ? entries : places).push_back(&p);
  }
  if (places.empty()) {
    std::swap(places, entries);
    paired = false;
  }
  auto scope = scope_at(places, types, signature);
  if (!scope) return scope;
  // The kernel refuses a program if it may load more bytes than the record has.
  scope->record_at_hand =
      targets.points.size() == 1 && targets.points.front().kind == TargetPoint::event;
  if (!paired || entries.empty()) {
    scope->missing["$latency"] = kCalls;
    return scope;
  }
  scope->names["$latency"] = {expression::integer_type(8, false),
                              static_cast<std::uint32_t>(offsetof(expression_in, latency))};
  auto before = scope_at(entries, types, signature);
  if (!before) return before;
  for (auto& [name, variable] : before->names) {
    if (!is_argument(variable)) continue;
    scope->entries[name] = variable;
    scope->entries[name].at += offsetof(expression_in, entry) - kArguments;
  }
  return scope;
}

Result<void> PadCode::put(std::vector<bpf_insn>& pad, std::int32_t otherwise) const {
  pad.clear();
  if (codes_.empty()) return {};
  std::map<std::uint32_t, const TargetPoint*> probes;  // of USDT: their arguments differ by place
  for (auto& p : targets_.points)
    if (p.kind == TargetPoint::usdt) probes[p.id] = &p;
  Code all;
  std::vector<Code::Label> ends;
  all.set(BPF_REG_0, otherwise);
  for (std::uint32_t id = 0; id < targets_.names.size();) {
    auto word = targets_.words[id];
    auto code = std::ranges::find(codes_, word, &decltype(codes_)::value_type::first);
    auto last = id;
    if (!probes.contains(id))
      while (last + 1 < targets_.names.size() && targets_.words[last + 1] == word) last++;
    if (code != codes_.end()) {
      // The code goes by ascending target ids; smaller ids jumped away before.
      auto other = all.jump_if_value(BPF_JGT, BPF_REG_9, static_cast<std::int32_t>(last));
      auto below = all.jump_if_value(BPF_JLT, BPF_REG_9, static_cast<std::int32_t>(id));
      if (auto probe = probes.find(id); probe != probes.end())
        all.append(usdt_arguments(*probe->second));
      all.append(code->second);
      ends.push_back(all.jump());
      all.here(other);
      all.here(below);
    }
    id = last + 1;
  }
  for (auto label : ends) all.here(label);
  if (!all.well_formed())
    return Error{"the expressions are too long", {}, "name fewer probes", kUsage};
  pad = all.instructions();
  return {};
}

}  // namespace coretap
