#include "tools/general/trace/probes.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/recall.hpp"
#include "coretap/config.hpp"
#include "expression/kept.hpp"
#include "expression/types.hpp"
#include "kernel/kernel.hpp"
#include "program/places.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "text/names.hpp"

namespace coretap::tracing {

namespace {

using expression::Code;

struct Made {
  WordsCode code;
  std::uint32_t bytes = sizeof(expression_out);  ///< of the values in the largest record
  bool names_kernel = false, names_user = false;
};

Result<void> compile(Probe& probe, std::size_t word, const expression::Scope& scope,
                     std::uint32_t text_bytes, Made& made) {
  if (auto r = made.code.add_filter(word, probe.text, scope, probe.filter.get()); !r) return r;
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
  made.code.uses |= compiler.uses();
  made.bytes = std::max(made.bytes, next);
  if (!probe.values.empty()) made.code.outputs.add(word, std::move(code));
  return {};
}

}  // namespace

/// Where a record has its values: after the stack.
std::size_t offset_of_values(const Config& config) {
  return sizeof(trace_event) + (config.given("kernel-stack") ? sizeof(stack) : 0);
}

std::vector<std::string> specs(const Config& config) {
  std::vector<std::string> all;
  for (auto& word : config.probes.targets) all.emplace_back(spec_of(word));
  return all;
}

Result<void> parse_probes(Config& config) {
  auto& probes = *config.own<Held>().probes;
  auto is_type = names_of_types();
  probes.text_bytes = static_cast<std::uint32_t>(config.number("string-size", 80));
  probes.all.clear();
  for (auto& word : config.probes.targets) {
    auto probe = parse_probe(word, is_type);
    if (!probe) return probe.error();
    probes.all.push_back(std::move(*probe));
  }
  return {};
}

std::string Probes::packed() const {
  std::string numbers;
  for (auto number : {std::uint64_t{text_bytes}, std::uint64_t{names_kernel}})
    put_varint(numbers, number);
  for (auto word : words) put_varint(numbers, word);
  std::vector<std::string> parts{expression::value_structs(), numbers};
  for (auto& probe : all) {
    std::vector<std::string> values;
    if (probe->format) {
      values.push_back(probe->format->rest);
      for (std::size_t i = 0; i < probe->outputs.size(); i++) {
        values.push_back(expression::packed(probe->format->conversions[i]));
        values.push_back(expression::packed(probe->outputs[i]));
      }
    }
    parts.push_back(coretap::packed(values));
  }
  return coretap::packed(parts);
}

bool Probes::take(std::string_view bytes) {
  const auto parts = unpacked(bytes);
  if (parts.size() < 2 || parts[0] != expression::value_structs()) return false;
  std::string_view numbers = parts[1];
  std::uint64_t most = 0, kernel = 0;
  if (!take_varint(numbers, most) || !take_varint(numbers, kernel)) return false;
  text_bytes = static_cast<std::uint32_t>(std::min(most, kMostText));
  names_kernel = kernel != 0;
  words.clear();
  for (std::uint64_t word = 0; take_varint(numbers, word);) words.push_back(word);
  all.clear();
  for (std::size_t i = 2; i < parts.size(); i++) {
    auto& probe = *all.emplace_back(std::make_shared<Probe>());
    const auto values = unpacked(parts[i]);
    if (values.empty()) continue;
    auto& format = probe.format.emplace();
    format.rest = values[0];
    for (std::size_t at = 1; at + 1 < values.size(); at += 2) {
      auto conversion = expression::conversion_from(values[at]);
      auto output = expression::output_from(values[at + 1]);
      if (!conversion || !output || probe.outputs.size() >= EXPRESSION_VALUES) return false;
      format.conversions.push_back(std::move(*conversion));
      probe.outputs.push_back(std::move(*output));
    }
  }
  return true;
}

Result<void> compile_probes(Session& s) {
  auto& probes = *s.config.own<Held>().probes;
  probes.names = &s.names;
  probes.values_at = offset_of_values(s.config);
  if (replaying()) {
    auto taken =
        expression::take_recorded("probes", [&](auto bytes) { return probes.take(bytes); });
    if (!taken) return taken;
    if (probes.names_kernel) s.names.learn(as::symbol, s.kernel);
    return {};
  }
  WordTypes kernel_types(s.plan.targets, s.kernel);
  Made made{WordsCode(s.plan.targets)};
  for (std::size_t word = 0; word < probes.all.size(); word++) {
    auto& probe = *probes.all[word];
    auto& types = kernel_types.of(word);
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
  probes.names_kernel = made.names_kernel;
  if (made.names_kernel) s.names.learn(as::symbol, s.kernel);
  if (auto r = made.code.put(s); !r) return r;
  set_variable(s, "names_code", made.names_user);
  set_variable(s, "values_at", probes.values_at);
  set_variable(s, "record_bytes", probes.values_at + made.bytes);
  recalled(Ask::report, "probes", [&] { return probes.packed(); });
  return {};
}

Probes::Shown Probes::shown(const trace_event& e, const FieldContext& context) const {
  Shown all;
  if (e.target >= words.size() || words[e.target] >= this->all.size()) return all;
  all.probe = this->all[words[e.target]].get();
  auto& out =
      *reinterpret_cast<const expression_out*>(reinterpret_cast<const char*>(&e) + values_at);
  const auto room = record_bytes - std::min(record_bytes, values_at);
  for (std::size_t i = 0; i < all.probe->outputs.size(); i++)
    all.values.push_back(value_of(out, i, all.probe->outputs[i], text_bytes, room));
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
