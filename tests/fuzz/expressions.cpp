// Arguments with expressions, and formats of tracepoint records.
#include <algorithm>

#include "expression/compile.hpp"
#include "expression/print.hpp"
#include "fuzz.hpp"
#include "lib/targets/expression.h"
#include "tools/general/argdist/specs.hpp"
#include "tools/general/trace/probe.hpp"

using namespace coretap;
using expression::Code;

namespace {

constexpr std::string_view kRecord =
    "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:char name[16];\toffset:12;\tsize:16;\tsigned:0;\n"
    "\tfield:__data_loc char[] path;\toffset:28;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long * list;\toffset:32;\tsize:8;\tsigned:0;\n";

const expression::Types& types() {
  static const expression::Types known;
  return known;
}

const expression::Scope& scope() {
  static const auto all = [] {
    expression::Scope s{&types()};
    add_common_names(s);
    add_arguments(s, {{"count", types().named("int")},
                      {"name", expression::pointer_to(types().named("char"), true)}});
    expression::Type record{expression::Type::record, "record"};
    record.members = expression::format_members(kRecord, types());
    s.names["args"] = {
        expression::pointer_to(std::make_shared<const expression::Type>(std::move(record))),
        static_cast<std::uint32_t>(offsetof(expression_in, context))};
    return s;
  }();
  return all;
}

bool is_type(std::string_view word) { return types().starts_type(word); }

/// An error has a caret below its text.
void check_error(const Error& e) {
  MUST(e.status == kUsage && !e.what.empty());
  MUST(fuzz::is_plain(e.what) && fuzz::is_plain(e.hint));
  MUST(e.why.empty() || (e.why.front() == '\n' && e.why.back() == '^'));
}

/// Jumps lead forward and at most to the end; no instruction ends the program.
void check_code(const Code& code) {
  auto& all = code.instructions();
  for (std::size_t at = 0; at < all.size(); at++) {
    auto& insn = all[at];
    if (insn.code == (BPF_LD | BPF_IMM | BPF_DW)) {
      MUST(at + 1 < all.size());
      at++;
      continue;
    }
    if (BPF_CLASS(insn.code) != BPF_JMP || BPF_OP(insn.code) == BPF_CALL) continue;
    MUST(BPF_OP(insn.code) != BPF_EXIT);
    if (!code.well_formed()) continue;
    MUST(insn.off >= 0 && at + 1 + static_cast<std::size_t>(insn.off) <= all.size());
  }
}

void compile(std::string_view text, const expression::Node* filter,
             const std::vector<expression::NodePtr>& values,
             const std::vector<expression::Conversion>& conversions) {
  Code code;
  expression::Compiler compiler(text, scope(), code);
  if (filter)
    if (auto r = compiler.filter(*filter); !r) return check_error(r.error());
  std::uint32_t next = sizeof(expression_out);
  for (std::size_t i = 0; i < values.size(); i++) {
    auto output = compiler.output(*values[i], conversions[i].wanted(),
                                  static_cast<std::uint32_t>(i), 80, next);
    if (!output) return check_error(output.error());
    MUST(output->form == expression::Output::number ||
         (output->at >= sizeof(expression_out) && output->at + output->room <= next));
    expression::Shown value{0x8000000000000001, "text"};
    if (output->form == expression::Output::bytes) value.text.assign(output->room, '\1');
    show(conversions[i], *output, value, {});
  }
  check_code(code);
}

}  // namespace

/// SPEC (FILTER) "FORMAT", VALUES
FUZZ(trace_probe, bytes) {
  const std::string text(bytes.substr(0, 2048));
  auto probe = tracing::parse_probe(text, is_type);
  if (!probe) return check_error(probe.error());
  MUST(text.starts_with((*probe)->spec) && !(*probe)->spec.empty());
  const std::vector<expression::Conversion> none;
  auto& format = (*probe)->format;
  MUST((format ? format->conversions.size() : 0) == (*probe)->values.size());
  compile(text, (*probe)->filter.get(), (*probe)->values, format ? format->conversions : none);
}

/// KIND:PLACE:FUNCTION(PARAMETERS):TYPES:VALUES:FILTER#LABEL
FUZZ(argdist_spec, bytes) {
  const std::string text(bytes.substr(0, 2048));
  const bool histogram = text.size() % 2;
  auto spec = distribution::parse_spec(text, is_type, histogram);
  if (!spec) return check_error(spec.error());
  auto& s = **spec;
  MUST(s.values.size() == s.names.size() && s.values.size() == s.conversions.size());
  MUST(s.values.size() <= (histogram ? 1 : distribution::kMostValues));
  MUST(text.starts_with(s.place));
  for (auto& p : s.parameters) MUST(expression::parse_declaration(p, types()).type);
  compile(text, s.filter.get(), s.values, s.conversions);
}

/// The "format" file of a tracepoint.
FUZZ(record_format, bytes) {
  auto members = expression::format_members(bytes, types());
  for (auto& name : members->names()) {
    auto member = members->find(name);
    MUST(member && member->type && !name.empty());
    MUST(member->bit < (1U << 16) * 8);
    MUST(member->type->kind != expression::Type::integer || member->type->bytes <= 8);
  }
}
