#include "tools/general/ksnoop/calls.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/config.hpp"
#include "coretap/fields.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "expression/kept.hpp"
#include "general/call_values.h"
#include "kernel/kernel.hpp"
#include "ksnoop.skel.h"
#include "lists/prototype.hpp"
#include "program/places.hpp"
#include "program/session.hpp"
#include "program/target.hpp"
#include "program/variables.hpp"

namespace coretap::calls {

namespace {

using expression::Node;
using expression::NodePtr;

constexpr std::size_t kMostCalls = CALL_VALUES_TARGETS / 2;
constexpr std::string_view kReturn = "return";

bool compares(const Node& node) {
  return node.kind == Node::binary && node.text != "<<" && node.text != ">>" &&
         std::string_view("=!<>").find(node.text.front()) != std::string_view::npos;
}

bool names_result(const Node& node) {
  return (node.kind == Node::name && node.text == kReturn) ||
         std::any_of(node.operands.begin(), node.operands.end(),
                     [](auto& operand) { return names_result(*operand); });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

Result<void> add(Call& call, std::string_view text, NodePtr node) {
  const bool result = names_result(*node), comparison = compares(*node);
  if (result && call.is_event)
    return expression::error_at(call.text, node->at, "a tracepoint has no return");
  if (call.shown.size() >= EXPRESSION_VALUES)
    return expression::error_at(call.text, node->at,
                                fmt::format("no more than {} values", EXPRESSION_VALUES));
  call.has_return = call.has_return || result;
  call.shown.push_back(
      {std::string(trimmed(text)), comparison ? node->operands.front().get() : node.get(), result});
  auto& filter = call.filters[result];
  if (!comparison) {
    call.held.push_back(std::move(node));
  } else if (filter) {
    auto both = std::make_unique<Node>(Node{Node::binary, node->at, "&&"});
    both->operands.push_back(std::move(filter));
    both->operands.push_back(std::move(node));
    filter = std::move(both);
  } else {
    filter = std::move(node);
  }
  return {};
}

/// Refuses targets that are not calls of the kernel.
Result<void> check_spec(Call& call) {
  auto target = parse_target(call.spec);
  if (!target) return target.error();
  auto wrong = [&](std::string_view what, std::string_view hint) {
    return expression::error_at(call.text, 0, what, hint);
  };
  auto& place = target->place;
  call.is_event = target->kind == TargetWord::tracepoint;
  if (target->at_return)
    return wrong("the entry and the return are traced together",
                 "leave out the r before the colon");
  if (target->is_place())
    return wrong("a place within a function has no arguments and no return",
                 "name the function, or use trace(8)");
  if (call.spec.find('*') != call.spec.npos)
    return wrong("a pattern has no values of its own", "name each function");
  if (target->kind == TargetWord::usdt ||
      (!call.is_event && !place.empty() &&
       (place.find('/') != place.npos ||
        !read_file(fmt::format("/sys/module/{}/coresize", place), 64))))
    return wrong("this is no function of the kernel, nor of a module that is loaded",
                 "trace(8) and funcslower(8) trace functions of programs");
  return {};
}

Result<void> parse_call(Call& call, const std::string& word, const expression::IsType& is_type) {
  call.text = word;
  call.spec = trimmed(std::string_view(word).substr(0, word.find('(')));
  if (call.spec.empty())
    return expression::error_at(word, 0, "expected the name of a function here");
  if (auto r = check_spec(call); !r) return r;
  expression::Parser parser(word, std::min(word.find('('), word.size()), is_type);
  call.listed = parser.take('(');
  if (!call.listed) call.has_return = !call.is_event;
  if (!call.listed || parser.take(')')) return {};
  do {
    parser.peek();
    const auto start = parser.at();
    auto node = parser.expression();
    if (!node) return node.error();
    const auto end = compares(**node) ? (*node)->at : parser.at();
    auto text = std::string_view(word).substr(start, end - start);
    if (auto r = add(call, text, std::move(*node)); !r) return r;
  } while (parser.take(','));
  if (!parser.take(')')) return parser.wrong(parser.at(), "expected ')' or ',' here");
  if (parser.peek()) return parser.wrong(parser.at(), "expected the end here");
  return {};
}

NodePtr name_node(std::string_view name) {
  return std::make_unique<Node>(Node{Node::name, 0, std::string(name)});
}

/// Adds all fields of a tracepoint's record, or all arguments by name, or the result.
Result<void> add_all(Call& call, const expression::Scope& scope, bool at_return) {
  auto has_room = [&] { return call.shown.size() < EXPRESSION_VALUES; };
  if (at_return)
    return scope.names.contains(kReturn) ? add(call, kReturn, name_node(kReturn)) : Result<void>();
  if (auto record = scope.names.find("args"); call.is_event && record != scope.names.end()) {
    for (auto& field : record->second.type->to->members->names()) {
      if (field.starts_with("common_") || field == "__syscall_nr" || !has_room()) continue;
      auto node = std::make_unique<Node>(Node{Node::member, 0, field});
      node->through = true;
      node->operands.push_back(name_node("args"));
      if (auto r = add(call, field, std::move(node)); !r) return r;
    }
    return {};
  }
  for (std::uint32_t i = 0; i < std::size(expression_in{}.arguments); i++)
    for (auto& [name, variable] : scope.names)
      if (variable.at == offsetof(expression_in, arguments) + 8 * i &&
          name != fmt::format("arg{}", i + 1) && has_room())
        if (auto r = add(call, name, name_node(name)); !r) return r;
  return {};
}

/// Adds the name of the result, if there is one. Fails if all values of a function are requested
/// and the function has no type information.
Result<void> name_result(expression::Scope& scope, const Call& call, const Targets& targets,
                         std::size_t word, const expression::Types& types) {
  auto place = std::find_if(targets.points.begin(), targets.points.end(),
                            [&](auto& p) { return targets.words.at(p.id) == word; });
  if (place == targets.points.end()) return {};
  std::optional<expression::Prototype> prototype;
  if (place->kind == TargetPoint::kernel || place->kind == TargetPoint::kernel_return) {
    prototype = types.function(place->symbol);
    if (!prototype && !call.listed) {
      auto error = expression::error_at(
          call.text, 0, "the kernel's type information does not have this function",
          fmt::format("name registers and types: {}((struct sock *)arg1, return)", call.spec));
      if (!scope.no_module.empty()) {
        error.hint =
            fmt::format("{}; name registers: {}(arg1, return)", scope.no_module, call.spec);
        error.status = kUnsupported;
      }
      return error;
    }
  }
  if (prototype && prototype->result->name == "void")
    scope.missing[std::string(kReturn)] = "the function returns nothing (void)";
  else if (auto result = scope.names.find("retval"); result != scope.names.end())
    scope.names[std::string(kReturn)] = result->second;
  return {};
}

std::string structs() {
  return fmt::format("{} {}", expression::value_structs(), offsetof(ksnoop_event, out));
}

/// The declaration in C; empty: the kernel's type information does not have it.
std::string declaration_of(std::string_view spec, Kernel& kernel) {
  auto target = parse_target(spec);
  if (!target) return {};
  const bool is_event = target->kind == TargetWord::tracepoint;
  auto declared = [&](const Btf& btf) {
    const Prototypes prototypes(btf);
    return is_event ? prototypes.tracepoint(target->name) : prototypes.function(target->name);
  };
  const bool in_module = !is_event && !target->place.empty();
  auto found = in_module ? std::string() : declared(kernel.all_types());
  auto modules = in_module ? std::vector{target->place} : modules_with_types();
  for (auto m = modules.begin(); found.empty() && m != modules.end(); ++m)
    found = declared(kernel.types_of(*m));
  return found;
}

}  // namespace

std::vector<std::string> specs(const Config& config) {
  std::vector<std::string> all;
  for (auto& call : config.own<Held>().calls->all) {
    all.push_back(call->spec);
    if (!call->has_return) continue;
    auto spec = call->spec.starts_with("p:") ? call->spec.substr(1) : ":" + call->spec;
    // "r::FUNCTION", "r:MODULE:FUNCTION"
    all.push_back("r" + (spec.rfind(':') == 0 ? ":" + spec : spec));
  }
  return all;
}

Result<void> parse_calls(Config& config) {
  auto& calls = *config.own<Held>().calls;
  auto is_type = names_of_types();
  calls.all.clear();
  calls.of_word.clear();
  for (auto& word : config.probes.targets) {
    auto& call = *calls.all.emplace_back(std::make_unique<Call>());
    if (auto r = parse_call(call, word, is_type); !r) return r;
    calls.of_word.insert(calls.of_word.end(), call.has_return ? 2 : 1, &call);
  }
  if (calls.all.size() > kMostCalls)
    return Error{fmt::format("{} functions are named", calls.all.size()),
                 fmt::format("there is room for {}", kMostCalls), "name fewer", kUsage};
  return {};
}

std::string Calls::packed() const {
  std::vector<std::string> parts{structs()};
  // By target.
  for (auto word : words) {
    std::vector<std::string> values;
    for (auto& shown : of_word.at(word)->shown) {
      values.push_back(shown.name);
      values.push_back(expression::packed(shown.output));
      values.push_back(expression::packed(*shown.layout));
    }
    parts.push_back(coretap::packed(values));
  }
  return coretap::packed(parts);
}

bool Calls::take(std::string_view bytes) {
  const auto parts = unpacked(bytes);
  if (parts.empty() || parts[0] != structs()) return false;
  all.clear();
  of_word.clear();
  words.clear();
  for (std::size_t i = 1; i < parts.size(); i++) {
    auto& call = *all.emplace_back(std::make_unique<Call>());
    words.push_back(of_word.size());
    of_word.push_back(&call);
    const auto values = unpacked(parts[i]);
    constexpr std::size_t kTexts = 3;
    for (std::size_t at = 0; at + kTexts <= values.size(); at += kTexts) {
      auto output = expression::output_from(values[at + 1]);
      auto layout = expression::layout_from(values[at + 2]);
      if (!output || !layout || call.shown.size() >= EXPRESSION_VALUES) return false;
      call.shown.push_back({.name = printable(values[at]), .output = *output, .layout = layout});
    }
  }
  return true;
}

Result<void> compile_calls(Session& s) {
  auto& calls = *s.config.own<Held>().calls;
  if (replaying())
    return expression::take_recorded("calls", [&](auto bytes) { return calls.take(bytes); });
  WordTypes kernel_types(s.plan.targets, s.kernel);
  const auto most = static_cast<std::uint32_t>(s.config.number("value-size", kMostBytes));
  WordsCode made(s.plan.targets);
  std::uint32_t bytes = 0;
  std::size_t word = 0;
  for (auto& call : calls.all) {
    std::uint32_t next = sizeof(expression_out);
    if (!call->listed) call->shown.clear();
    for (bool at_return : {false, true}) {
      if (at_return && !call->has_return) break;
      auto& types = kernel_types.of(word);
      auto scope = scope_of_word(s.plan.targets, word, types, nullptr);
      if (!scope) return scope.error();
      if (auto r = name_result(*scope, *call, s.plan.targets, word, types); !r) return r;
      if (!call->listed)
        if (auto r = add_all(*call, *scope, at_return); !r) return r;
      auto* filter = call->filters[at_return].get();
      if (auto r = made.add_filter(word, call->text, *scope, filter); !r) return r;
      expression::Code code;
      expression::Compiler compiler(call->text, *scope, code);
      for (std::uint32_t i = 0; i < call->shown.size(); i++) {
        auto& shown = call->shown[i];
        if (shown.at_return != at_return) continue;
        auto output = compiler.output(*shown.value, expression::Wanted::whole, i, most, next);
        if (!output) return output.error();
        shown.output = *output;
        shown.layout = layout_of(*types.btf(), *output, most);
      }
      made.uses |= compiler.uses();
      made.outputs.add(word++, std::move(code));
    }
    bytes = std::max(bytes, next);
  }
  bytes += offsetof(ksnoop_event, out);
  if (bytes > CALL_VALUES_MOST)
    return Error{"the values of a call are too long",
                 fmt::format("they take {} bytes, there is room for {}", bytes, CALL_VALUES_MOST),
                 "name fewer, or give a smaller --value-size", kUsage};
  calls.words = s.plan.targets.words;
  // Each word is one target: the return follows its entry, with the next id.
  std::array<std::uint8_t, CALL_VALUES_TARGETS> has_return{};
  for (std::size_t id = 0; id + 1 < calls.words.size() && id < has_return.size(); id++)
    has_return.at(id) = calls.of_word.at(calls.words[id]) == calls.of_word.at(calls.words[id + 1]);
  if (auto r = made.put(s); !r) return r;
  set_variable(s, "call_has_return", has_return.data(), has_return.size());
  set_variable(s, "record_bytes", bytes);
  if (auto* map = s.map(maps::call_values)) bpf_map__set_value_size(map, bytes);
  recalled(Ask::report, "calls", [&] { return calls.packed(); });
  return {};
}

std::vector<std::string> Calls::values(const ksnoop_event& e, bool one_line) const {
  std::vector<std::string> all;
  if (e.target >= words.size()) return all;
  auto& call = *of_word.at(words[e.target]);
  const auto room = record_bytes - std::min(record_bytes, offsetof(ksnoop_event, out));
  for (std::size_t i = 0; i < call.shown.size(); i++) {
    auto& shown = call.shown[i];
    auto& output = shown.output;
    auto value = value_of(e.out, i, output, output.room > 2 ? output.room - 2 : 0, room);
    all.push_back(shown.name + " = " + typed(*shown.layout, output, value, one_line));
  }
  return all;
}

std::string declarations(const Config& config) {
  Kernel kernel;
  std::string text;
  if (!kernel.has_btf() || config.probes.targets.empty()) return "no known function\n";
  for (auto& word : config.probes.targets) {
    auto found = declaration_of(trimmed(std::string_view(word).substr(0, word.find('('))), kernel);
    text += found.empty() ? word + " is not in the kernel's type information\n" : found + ";\n";
  }
  return text;
}

}  // namespace coretap::calls
