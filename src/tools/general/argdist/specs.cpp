#include "tools/general/argdist/specs.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "argdist.skel.h"
#include "base/recall.hpp"
#include "coretap/config.hpp"
#include "expression/kept.hpp"
#include "expression/types.hpp"
#include "kernel/kernel.hpp"
#include "program/places.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap::distribution {

namespace {

using expression::Code;
using expression::Conversion;
using expression::Node;

/// A part of a specification, and its offset in the whole.
struct Part {
  std::string_view text;
  std::size_t at = 0;

  Part trimmed() const {
    Part p = *this;
    while (!p.text.empty() && p.text.front() == ' ') p.text.remove_prefix(1), p.at++;
    while (!p.text.empty() && p.text.back() == ' ') p.text.remove_suffix(1);
    return p;
  }
};

/// Splits at this character outside parentheses, brackets and quotes; at most `most` parts.
std::vector<Part> split(const Part& whole, char at, std::size_t most = SIZE_MAX) {
  std::vector<Part> parts(1, {whole.text, whole.at});
  int depth = 0;
  char quote = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < whole.text.size(); i++) {
    const char c = whole.text[i];
    if (quote) {
      if (c == '\\') i++;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      depth++;
    } else if (c == ')' || c == ']') {
      depth--;
    } else if (c == at && depth == 0 && parts.size() < most) {
      parts.back().text = whole.text.substr(start, i - start);
      start = i + 1;
      parts.push_back({whole.text.substr(start), whole.at + start});
    }
  }
  return parts;
}

/// "char *" is text; for other types the value is cast to an integer.
bool is_text(std::string_view type) {
  std::string words;
  for (char c : type)
    if (c != ' ') words += c;
  return words == "char*" || words == "constchar*";
}

struct Reading {
  Spec& spec;
  const expression::IsType& is_type;
  bool histogram;

  Error wrong(const Part& part, std::string_view what, std::string_view hint = {}) const {
    return expression::error_at(spec.text, part.at, what, hint);
  }

  Result<expression::NodePtr> expression(const Part& part) const {
    auto trimmed = part.trimmed();
    // The parser stops at the end of the part; its positions refer to the whole.
    expression::Parser parser(
        std::string_view(spec.text).substr(0, trimmed.at + trimmed.text.size()), trimmed.at,
        is_type);
    auto node = parser.expression();
    if (!node) return node;
    if (parser.peek())
      return wrong({{}, parser.at()}, "this is not expected here",
                   "values are separated by commas, a filter follows a colon");
    return node;
  }

  Result<void> value(const Part& type, const Part& what) const {
    auto node = expression(what);
    if (!node) return node.error();
    auto of = type.trimmed();
    Conversion conversion;
    if (is_text(of.text)) {
      if (histogram) return wrong(of, "a histogram needs numbers, this is a text", "use -C");
      conversion.kind = 's';
    } else {
      conversion.kind = 'd';
    }
    auto cast = std::make_unique<Node>(Node{Node::cast, of.at});
    for (char c : of.text)
      if (c == '*')
        cast->stars++;
      else
        cast->text += c;
    while (cast->text.ends_with(' ')) cast->text.pop_back();
    if (cast->text.starts_with("const ")) cast->text.erase(0, 6);
    cast->operands.push_back(std::move(*node));
    spec.names.emplace_back(what.trimmed().text);
    spec.values.push_back(std::move(cast));
    spec.conversions.push_back(conversion);
    return {};
  }

  Result<void> values(const Part& types, const Part& all) const {
    auto type_parts = split(types, ','), value_parts = split(all, ',');
    if (type_parts.size() != value_parts.size())
      return wrong(all.trimmed(),
                   fmt::format("{} type{} and {} value{}", type_parts.size(),
                               type_parts.size() == 1 ? "" : "s", value_parts.size(),
                               value_parts.size() == 1 ? "" : "s"),
                   "name a type for each value");
    if (histogram && value_parts.size() > 1)
      return wrong(value_parts[1], "a histogram has only one value",
                   "use -C, or -H for each value");
    if (value_parts.size() > kMostValues)
      return wrong(value_parts[kMostValues], fmt::format("no more than {} values", kMostValues));
    for (std::size_t i = 0; i < value_parts.size(); i++)
      if (auto r = value(type_parts[i], value_parts[i]); !r) return r;
    return {};
  }
};

/// A specification without values: counts calls, or return values.
Result<void> without_values(Spec& spec, const Reading& reading) {
  if (spec.place.starts_with("r:")) {
    Conversion number;
    auto cast = std::make_unique<Node>(Node{Node::cast, 0, "int"});
    cast->operands.push_back(std::make_unique<Node>(Node{Node::name, 0, "$retval"}));
    spec.names.emplace_back("$retval");
    spec.values.push_back(std::move(cast));
    spec.conversions.push_back(number);
    return {};
  }
  if (reading.histogram)
    return reading.wrong({{}, spec.text.size()}, "a histogram needs a type and a value here",
                         "p::vfs_read(struct file *f, char *b, u64 n):u64:n");
  return {};
}

}  // namespace

Result<std::shared_ptr<Spec>> parse_spec(std::string_view word, const expression::IsType& is_type,
                                         bool histogram) {
  auto spec = std::make_shared<Spec>();
  spec->text = word;
  Part whole{spec->text, 0};
  Reading reading{*spec, is_type, histogram};
  auto labelled = split(whole, '#', 2);
  if (labelled.size() == 2) {
    spec->label = labelled[1].trimmed().text;
    whole = labelled[0];
  }
  const auto open = whole.text.find('(');
  const std::string_view kinds = "prtu";
  if (whole.text.size() < 2 || whole.text[1] != ':' || kinds.find(whole.text[0]) == kinds.npos)
    return reading.wrong(whole, "expected p:, r:, t: or u: here",
                         "such as p::vfs_read() or t:sched:sched_switch()");
  if (open == whole.text.npos)
    return reading.wrong({{}, whole.text.size()}, "expected '(' after the name",
                         "write () where there are no parameters");
  spec->place = whole.text.substr(0, open);
  std::size_t close = open;
  int depth = 0;
  for (; close < whole.text.size(); close++) {
    depth += whole.text[close] == '(' ? 1 : whole.text[close] == ')' ? -1 : 0;
    if (!depth) break;
  }
  if (depth) return reading.wrong({{}, open}, "this parenthesis is not closed");
  for (auto& p : split({whole.text.substr(open + 1, close - open - 1), open + 1}, ','))
    if (auto text = p.trimmed().text; !text.empty()) spec->parameters.emplace_back(text);
  Part rest{whole.text.substr(close + 1), close + 1};
  rest = rest.trimmed();
  if (rest.text.empty()) {
    if (auto r = without_values(*spec, reading); !r) return r.error();
    return spec;
  }
  if (rest.text.front() != ':')
    return reading.wrong(rest, "expected ':' and types here, or the end");
  auto parts = split({rest.text.substr(1), rest.at + 1}, ':', 3);
  if (parts.size() < 2)
    return reading.wrong({{}, whole.text.size()}, "expected ':' and values after the types");
  if (parts[0].trimmed().text.empty() && parts[1].trimmed().text.empty()) {
    if (auto r = without_values(*spec, reading); !r) return r.error();
  } else if (auto r = reading.values(parts[0], parts[1]); !r) {
    return r.error();
  }
  if (parts.size() == 3) {
    auto filter = reading.expression(parts[2]);
    if (!filter) return filter.error();
    spec->filter = std::move(*filter);
  }
  return spec;
}

std::vector<std::string> places(const Config& config) {
  std::vector<std::string> all;
  for (auto& word : config.probes.targets) all.emplace_back(word.substr(0, word.find('(')));
  return all;
}

Result<void> parse_specs(Config& config) {
  auto& specs = *config.own<Held>().specs;
  auto is_type = names_of_types();
  specs.text_bytes = static_cast<std::uint32_t>(config.number("string-size", 80));
  specs.all.clear();
  for (auto& word : config.probes.targets) {
    auto spec = parse_spec(word, is_type, config.given("histogram-of"));
    if (!spec) return spec.error();
    specs.all.push_back(std::move(*spec));
  }
  constexpr std::size_t kMostWords = 64;
  if (specs.all.size() <= kMostWords) return {};
  return usage("too many specifications", fmt::format("name {} at most", kMostWords));
}

namespace {

std::string structs() {
  return fmt::format("{} {}", expression::value_structs(), sizeof(argdist_key));
}

struct Made {
  WordsCode code;
  std::uint64_t signed_words = 0;
  std::uint32_t text_at = 0, bytes = 0;
};

Result<void> compile(Spec& spec, std::size_t word, const expression::Scope& scope,
                     std::uint32_t text_bytes, Made& made) {
  if (auto r = made.code.add_filter(word, spec.text, scope, spec.filter.get()); !r) return r;
  Code code;
  code.set(BPF_REG_0, static_cast<std::int64_t>(word));
  code.store(BPF_REG_7, offsetof(expression_out, word), BPF_REG_0);
  expression::Compiler compiler(spec.text, scope, code);
  auto next = made.text_at;
  spec.outputs.clear();
  for (std::size_t i = 0; i < spec.values.size(); i++) {
    auto output = compiler.output(*spec.values[i], spec.conversions[i].wanted(),
                                  static_cast<std::uint32_t>(i), text_bytes, next);
    if (!output) return output.error();
    if (next > sizeof(argdist_key))
      return expression::error_at(spec.text, spec.values[i]->at, "too much text for one key",
                                  "give a smaller --string-size");
    auto& type = *output->type;
    if (!type.is_signed && type.kind == expression::Type::integer) spec.conversions[i].kind = 'u';
    if (type.kind == expression::Type::pointer && spec.conversions[i].kind == 'd')
      spec.conversions[i].kind = 'p';
    if (i == 0 && type.is_signed) made.signed_words |= std::uint64_t{1} << word;
    spec.outputs.push_back(*output);
  }
  made.code.uses |= compiler.uses();
  made.bytes = std::max(made.bytes, next);
  made.code.outputs.add(word, std::move(code));
  return {};
}

}  // namespace

std::string Specs::packed() const {
  std::string numbers;
  put_varint(numbers, text_bytes);
  std::vector<std::string> parts{structs(), numbers};
  for (auto& spec : all) {
    std::vector<std::string> values{spec->title()};
    for (std::size_t i = 0; i < spec->outputs.size(); i++) {
      values.push_back(spec->names[i]);
      values.push_back(expression::packed(spec->conversions[i]));
      values.push_back(expression::packed(spec->outputs[i]));
    }
    parts.push_back(coretap::packed(values));
  }
  return coretap::packed(parts);
}

bool Specs::take(std::string_view bytes) {
  const auto parts = unpacked(bytes);
  std::uint64_t most = 0;
  if (parts.size() < 2 || parts[0] != structs()) return false;
  std::string_view numbers = parts[1];
  if (!take_varint(numbers, most)) return false;
  text_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, ARGDIST_TEXT));
  all.clear();
  for (std::size_t i = 2; i < parts.size(); i++) {
    auto& spec = *all.emplace_back(std::make_shared<Spec>());
    const auto values = unpacked(parts[i]);
    if (values.empty()) return false;
    spec.label = values[0];
    constexpr std::size_t kTexts = 3;
    for (std::size_t at = 1; at + kTexts <= values.size(); at += kTexts) {
      auto conversion = expression::conversion_from(values[at + 1]);
      auto output = expression::output_from(values[at + 2]);
      if (!conversion || !output || spec.outputs.size() >= kMostValues) return false;
      spec.names.push_back(values[at]);
      spec.conversions.push_back(std::move(*conversion));
      spec.outputs.push_back(std::move(*output));
    }
  }
  return true;
}

Result<void> compile_specs(Session& s) {
  auto& specs = *s.config.own<Held>().specs;
  if (replaying())
    return expression::take_recorded("specs", [&](auto bytes) { return specs.take(bytes); });
  WordTypes kernel_types(s.plan.targets, s.kernel);
  Made made{WordsCode(s.plan.targets)};
  std::size_t most = 0;
  for (auto& spec : specs.all) most = std::max(most, spec->values.size());
  made.text_at = made.bytes =
      static_cast<std::uint32_t>(offsetof(expression_out, values) + 8 * most);
  for (std::size_t word = 0; word < specs.all.size(); word++) {
    auto& spec = *specs.all[word];
    auto& types = kernel_types.of(word);
    std::vector<expression::Parameter> parameters;
    for (auto& declaration : spec.parameters)
      parameters.push_back(expression::parse_declaration(declaration, types));
    auto scope =
        scope_of_word(s.plan.targets, word, types, parameters.empty() ? nullptr : &parameters);
    if (!scope) return scope.error();
    for (auto [theirs, ours] : {std::pair("$PID", "$tgid"), std::pair("$COMM", "$comm")})
      scope->names[theirs] = scope->names[ours];
    if (auto r = compile(spec, word, *scope, specs.text_bytes, made); !r) return r;
  }
  if (auto r = made.code.put(s); !r) return r;
  set_variable(s, "signed_words", made.signed_words);
  if (auto* counts = s.map(maps::counts)) bpf_map__set_key_size(counts, (made.bytes + 7) / 8 * 8);
  recalled(Ask::report, "specs", [&] { return specs.packed(); });
  return {};
}

std::vector<std::string> Specs::values(const argdist_key& key) const {
  std::vector<std::string> words;
  auto* spec = of(key.values.word);
  for (std::size_t i = 0; spec && i < spec->outputs.size(); i++) {
    auto value = value_of(key.values, i, spec->outputs[i], text_bytes, sizeof key);
    words.push_back(fmt::format(
        "{} = {}", spec->names[i],
        expression::show(spec->conversions[i], spec->outputs[i], value, expression::Namers())));
  }
  return words;
}

}  // namespace coretap::distribution
