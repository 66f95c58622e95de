#include "tools/general/trace/probes.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cli/config.hpp"
#include "expression/types.hpp"
#include "kernel/kernel.hpp"
#include "program/places.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "text/names.hpp"

namespace coretap::tracing {

namespace {

using expression::Code;
using expression::Output;

struct Made {
  PadCode filter, output;
  std::uint64_t uses = 0;
  std::uint32_t bytes = sizeof(expression_out);  ///< of the largest record's values
  bool names_kernel = false, names_user = false;
};

Result<void> compile(Probe& probe, std::size_t word, const expression::Scope& scope,
                     std::uint32_t text_bytes, Made& made) {
  if (probe.filter) {
    Code code;
    expression::Compiler compiler(probe.text, scope, code);
    if (auto r = compiler.filter(*probe.filter); !r) return r;
    made.uses |= compiler.uses();
    made.filter.add(word, std::move(code));
  }
  Code code;
  expression::Compiler compiler(probe.text, scope, code);
  std::uint32_t next = sizeof(expression_out);
  probe.outputs.clear();
  for (std::size_t i = 0; i < probe.values.size(); i++) {
    auto& conversion = probe.format->conversions[i];
    made.names_kernel = made.names_kernel || conversion.kind == 'K';
    made.names_user = made.names_user || conversion.kind == 'U';
    auto output = compiler.output(*probe.values[i], conversion.wanted(),
                                  static_cast<std::uint32_t>(i), text_bytes, next);
    if (!output) return output.error();
    probe.outputs.push_back(*output);
  }
  made.uses |= compiler.uses();
  made.bytes = std::max(made.bytes, next);
  if (!probe.values.empty()) made.output.add(word, std::move(code));
  return {};
}

}  // namespace

std::vector<std::string> specs(const Config& config) {
  std::vector<std::string> all;
  for (auto& word : config.targets) all.emplace_back(spec_of(word));
  return all;
}

std::vector<bool> ask_for_entries(const Config& config) {
  std::vector<bool> all;
  for (auto& word : config.targets) all.push_back(asks_for_entry(word));
  return all;
}

Result<void> parse_probes(Config& config) {
  auto& probes = *config.own<Held>().probes;
  Btf btf;
  btf.open();  // without it only C's own types are known
  const expression::Types types(&btf);
  probes.text_bytes = static_cast<std::uint32_t>(config.number("string-size", 80));
  probes.all.clear();
  for (auto& word : config.targets) {
    auto probe = parse_probe(word, [&](std::string_view w) { return types.starts_type(w); });
    if (!probe) return probe.error();
    probes.all.push_back(std::move(*probe));
  }
  return {};
}

Result<void> compile_probes(Session& s) {
  auto& probes = *s.config.own<Held>().probes;
  const expression::Types types(&s.kernel.all_types());
  Made made{PadCode(s.plan.targets), PadCode(s.plan.targets)};
  for (std::size_t word = 0; word < probes.all.size(); word++) {
    auto& probe = *probes.all[word];
    std::vector<expression::Parameter> parameters;
    if (probe.parameters)
      for (auto& declaration : *probe.parameters)
        parameters.push_back(expression::parse_declaration(declaration, types));
    auto scope =
        scope_of_word(s.plan.targets, word, types, probe.parameters ? &parameters : nullptr);
    if (!scope) return scope.error();
    if (auto r = compile(probe, word, *scope, probes.text_bytes, made); !r) return r;
  }
  probes.words = s.plan.targets.words;
  probes.names = &s.names;
  if (made.names_kernel) s.names.learn(as::symbol, s.kernel);
  if (auto r = made.filter.put(s.pads.filter, EXPRESSION_YES); !r) return r;
  if (auto r = made.output.put(s.pads.output, 0); !r) return r;
  const auto values_at = sizeof(trace_event) + (s.config.given("kernel-stack") ? sizeof(stack) : 0);
  set_variable(s, "expression_uses", made.uses);
  set_variable(s, "expression_filters", !made.filter.empty());
  set_variable(s, "names_code", made.names_user);
  set_variable(s, "values_at", values_at);
  set_variable(s, "record_bytes", values_at + made.bytes);
  return {};
}

Probes::Shown Probes::shown(const trace_event& e, const FieldContext& context) const {
  Shown all;
  if (e.target >= words.size() || words[e.target] >= this->all.size()) return all;
  all.probe = this->all[words[e.target]].get();
  auto* record = reinterpret_cast<const char*>(&e);
  expression_out out{};
  memcpy(&out, record + e.values_at, sizeof out);
  for (std::size_t i = 0; i < all.probe->outputs.size(); i++) {
    auto& output = all.probe->outputs[i];
    auto* text = record + e.values_at + output.at;
    expression::Shown value{out.values[i]};
    value.fault = out.faults >> i & 1;
    if (output.form == Output::text) {
      value.cut = out.cut >> i & 1;
      value.text.assign(text, strnlen(text, std::min(output.room - 2, text_bytes)));
    } else if (output.form == Output::bytes) {
      value.text.assign(text, output.room);
    }
    all.values.push_back(std::move(value));
  }
  all.namers.kernel = [this](std::uint64_t address) {
    return names ? coretap::show(as::wide(as::symbol, 0), Value(address), *names) : std::string();
  };
  if (context.user_function)
    all.namers.user = [&e, &context](std::uint64_t address) {
      auto code = e.code;
      code.address = address;
      return address ? context.user_function(code) : std::string("0");
    };
  return all;
}

std::string Probes::message(const trace_event& e, const FieldContext& context) const {
  auto found = shown(e, context);
  if (!found.probe || !found.probe->format) return {};
  return render(*found.probe->format, found.probe->outputs, found.values, found.namers);
}

std::vector<std::string> Probes::values(const trace_event& e, const FieldContext& context) const {
  auto found = shown(e, context);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < found.values.size(); i++) {
    auto conversion = found.probe->format->conversions[i];
    conversion.width = 0;
    words.push_back(
        expression::show(conversion, found.probe->outputs[i], found.values[i], found.namers));
  }
  return words;
}

}  // namespace coretap::tracing
