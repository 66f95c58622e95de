#include "expression/compile.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "coretap/nearest.hpp"
#include "lib/targets/expression.h"

namespace coretap::expression {

namespace {

// Stack layout of the pad: memory just read, spilled values, text to compare.
constexpr int kReadAt = -8;
constexpr int kSpills = 16;
constexpr int kSpillsAt = kReadAt - 8 * kSpills;
constexpr int kMostText = 64;
constexpr std::uint32_t kWholeText = 80;  // maximum bytes of a text with Wanted::whole
constexpr int kTextAt = kSpillsAt - kMostText - 8;

enum Helper {
  kReadUser = BPF_FUNC_probe_read_user,
  kReadKernel = BPF_FUNC_probe_read_kernel,
  kReadUserText = BPF_FUNC_probe_read_user_str,
  kReadKernelText = BPF_FUNC_probe_read_kernel_str,
};

constexpr std::int32_t in(std::size_t member) { return static_cast<std::int32_t>(member); }

TypePtr int_type() {
  static const auto type = std::make_shared<const Type>(Type{Type::integer, "int", 4, true});
  return type;
}
TypePtr long_type(bool is_signed) {
  static const auto has_sign = std::make_shared<const Type>(Type{Type::integer, "long", 8, true});
  static const auto none =
      std::make_shared<const Type>(Type{Type::integer, "unsigned long", 8, false});
  return is_signed ? has_sign : none;
}

/// C's integer promotion of types shorter than int.
TypePtr promoted(const TypePtr& type) {
  return type->kind == Type::integer && type->bytes < 4 ? int_type() : type;
}

/// The common type of two integers in C arithmetic.
TypePtr common(const TypePtr& left, const TypePtr& right) {
  auto l = promoted(left), r = promoted(right);
  if (l->bytes != r->bytes) return l->bytes > r->bytes ? l : r;
  return l->is_signed ? r : l;
}

bool is_pointer(const Type& type) { return type.kind == Type::pointer || type.kind == Type::array; }

/// "did you mean ...?"
std::string near(std::string_view word, const std::vector<std::string>& known) {
  return did_you_mean(word, {known.begin(), known.end()});
}

std::string noun(const Type& type) {
  switch (type.kind) {
    case Type::record:
      return "a struct or union";
    case Type::nothing:
      return type.name.empty() || type.name == "void"
                 ? "no value (void or a type that is not known)"
                 : "of type " + type.name;
    case Type::pointer:
      return "a pointer";
    case Type::array:
      return "an array";
    case Type::integer:
      break;
  }
  return "an integer";
}

std::optional<std::int64_t> enumerator_of(const Scope& scope, std::string_view name) {
  if (scope.program)
    if (auto own = scope.program->enumerator(name)) return own;
  return scope.types ? scope.types->enumerator(name) : std::nullopt;
}

std::vector<std::string> records_of(const Scope& scope) {
  auto all = scope.types ? scope.types->records() : std::vector<std::string>();
  if (scope.program)
    for (auto& name : scope.program->records()) all.push_back(name);
  return all;
}

}  // namespace

void Compiler::set_fault() { code_.set(BPF_REG_8, 1); }

int Compiler::spill() { return kReadAt - 8 * ++depth_; }

void Compiler::normalise(int reg, const Type& type) {
  if (type.kind != Type::integer || type.bytes >= 8) return;
  if (type.truth) {
    auto zero = code_.jump_if_value(BPF_JEQ, reg, 0);
    code_.set(reg, 1);
    code_.here(zero);
    return;
  }
  const auto rest = static_cast<std::int32_t>(64 - 8 * type.bytes);
  if (!type.is_signed && type.bytes == 4) {
    code_.cut_to_32_bits(reg);
    return;
  }
  code_.calculate_by(BPF_LSH, reg, rest);
  code_.calculate_by(type.is_signed ? BPF_ARSH : BPF_RSH, reg, rest);
}

void Compiler::fetch(std::uint32_t bytes, bool user) {
  code_.move(BPF_REG_3, BPF_REG_0);
  code_.call_to_read(user ? kReadUser : kReadKernel, BPF_REG_10, kReadAt, bytes);
  auto fine = code_.jump_if_value(BPF_JEQ, BPF_REG_0, 0);
  set_fault();
  code_.here(fine);
}

void Compiler::read(std::uint32_t bytes, bool user) {
  fetch(bytes, user);
  code_.load(bytes, BPF_REG_0, BPF_REG_10, kReadAt);
}

std::string Compiler::record_like(const std::string& name) const {
  // The kernel's names of structs that programs share with it: "struct __kernel_timespec".
  auto shared = fmt::format("struct __kernel_{}", name.substr(name.find(' ') + 1));
  if (scope_.types && scope_.types->named(shared)) return fmt::format("did you mean '{}'?", shared);
  return near(name, records_of(scope_));
}

Error Compiler::unknown(const Node& node, std::string_view what, std::string_view hint) const {
  if (scope_.no_module.empty()) return wrong(node, what, hint);
  auto error = wrong(
      node, what, hint.empty() ? scope_.no_module : fmt::format("{}; {}", hint, scope_.no_module));
  error.status = kUnsupported;
  return error;
}

// ---- places ----

Result<Compiler::Place> Compiler::name(const Node& node) {
  if (auto found = scope_.names.find(node.text); found != scope_.names.end()) {
    uses_ |= found->second.uses;
    Place place{found->second.type, true, found->second.at};
    place.in_place = found->second.in_place;
    if (node.user) place.type = in_user_memory(place.type);
    return place;
  }
  if (auto why = scope_.missing.find(node.text); why != scope_.missing.end())
    return wrong(node, fmt::format("{} is not known here", node.text), why->second);
  std::vector<std::string> known;
  for (auto& [word, variable] : scope_.names) known.push_back(word);
  auto hint = near(node.text, known);
  if (hint.empty()) {
    for (auto& word : known) hint += (hint.empty() ? "known here: " : ", ") + word;
    if (!scope_.no_program.empty()) hint += "; " + scope_.no_program;
  }
  return unknown(node,
                 fmt::format("{} is neither a value here nor an enumerator of the {}", node.text,
                             scope_.program ? "program or the kernel" : "kernel"),
                 hint);
}

Result<Compiler::Place> Compiler::member_at(const Node& node, const Type& record, bool user) {
  if (record.kind == Type::nothing && record.name.starts_with("struct "))
    return unknown(node, fmt::format("{} is not a type of this kernel", record.name),
                   record_like(record.name));
  if (record.kind != Type::record || !record.members)
    return unknown(node,
                   fmt::format("{} has no members that are known",
                               record.name.empty() ? noun(record) : record.name),
                   {});
  auto found = record.members->find(node.text);
  if (!found)
    return wrong(node, fmt::format("{} has no member {}", record.name, node.text),
                 near(node.text, record.members->names()));
  Place place{found->type};
  place.user = user;
  if (found->place == Member::input) {
    place.input = true;
    place.at = found->bit;
    uses_ |= EXPRESSION_USES_ARGUMENTS;
    return place;
  }
  const auto byte = static_cast<std::int32_t>(found->bit / 8);
  if (found->place == Member::memory) {
    if (byte) code_.calculate_by(BPF_ADD, BPF_REG_0, byte);
    place.bit = found->bit % 8;
    place.bits = found->bits;
    return place;
  }
  // The 32 bits: offset (low 16 bits), length (high 16 bits).
  if (depth_ >= kSpills) return wrong(node, "this expression is nested too deeply");
  auto base = spill();
  if (found->place == Member::beyond) {
    code_.calculate_by(BPF_ADD, BPF_REG_0, byte);
    code_.move(BPF_REG_1, BPF_REG_0);
    code_.calculate_by(BPF_ADD, BPF_REG_1, 4);
    code_.store(BPF_REG_10, base, BPF_REG_1);
  } else {
    code_.store(BPF_REG_10, base, BPF_REG_0);
    code_.calculate_by(BPF_ADD, BPF_REG_0, byte);
  }
  read(4, false);
  code_.calculate_by(BPF_AND, BPF_REG_0, 0xffff);
  code_.load(8, BPF_REG_1, BPF_REG_10, base);
  code_.calculate(BPF_ADD, BPF_REG_0, BPF_REG_1);
  unspill();
  return place;
}

Result<Compiler::Place> Compiler::member(const Node& node) {
  auto& base = *node.operands.front();
  // Members of a system call tracepoint's args are input values.
  if (base.kind == Node::name)
    if (auto found = scope_.names.find(base.text); found != scope_.names.end()) {
      auto& type = *found->second.type;
      if (type.kind == Type::pointer && type.to->kind == Type::record && type.to->members)
        if (auto m = type.to->members->find(node.text); m && m->place == Member::input)
          return member_at(node, *type.to, false);
    }
  if (node.through) {
    auto type = value(base);
    if (!type) return type.error();
    if (!is_pointer(**type))
      return wrong(node, fmt::format("-> follows a pointer, this is {}", noun(**type)),
                   (*type)->kind == Type::record ? "use a dot" : "cast it: ((struct NAME *)VALUE)");
    return member_at(node, *(*type)->to, (*type)->user || base.user);
  }
  auto outer = place(base);
  if (!outer) return outer;
  if (outer->type->kind == Type::pointer)
    return wrong(node, "a dot follows a struct or union, this is a pointer", "use ->");
  if (outer->input) return wrong(node, fmt::format("this is {}", noun(*outer->type)));
  return member_at(node, *outer->type, outer->user);
}

TypePtr Compiler::field_at_hand(const Node& node) {
  if (!scope_.record_at_hand || node.kind != Node::member || !node.through) return nullptr;
  auto& base = *node.operands.front();
  if (base.kind != Node::name) return nullptr;
  auto found = scope_.names.find(base.text);
  if (found == scope_.names.end() || found->second.at != offsetof(expression_in, context))
    return nullptr;
  auto& record = *found->second.type->to;
  auto field = record.members ? record.members->find(node.text) : std::nullopt;
  if (!field || field->place != Member::memory || field->bits) return nullptr;
  auto& type = field->type;
  const std::uint32_t bytes = type->kind == Type::pointer   ? 8
                              : type->kind == Type::integer ? type->bytes
                                                            : 0;
  // The kernel reserves the first 8 bytes, and the verifier rejects unaligned loads.
  if (bytes == 0 || bytes > 8 || !std::has_single_bit(bytes) || field->bit < 64 ||
      field->bit % (8 * bytes))
    return nullptr;
  uses_ |= EXPRESSION_USES_RECORD;
  code_.load(8, BPF_REG_0, BPF_REG_6, in(offsetof(expression_in, record)));
  code_.load(bytes, BPF_REG_0, BPF_REG_0, static_cast<int>(field->bit / 8));
  if (type->is_signed || type->truth) normalise(BPF_REG_0, *type);
  return type;
}

Result<Compiler::Place> Compiler::element(const Node& node) {
  auto type = value(*node.operands[0]);
  if (!type) return type.error();
  if (!is_pointer(**type) || !(*type)->to)
    return wrong(node, fmt::format("[] follows an array or a pointer, this is {}", noun(**type)));
  auto to = (*type)->to;
  if (to->kind == Type::nothing)
    return wrong(node, "it is not known what is in this array", "cast it: ((TYPE *)VALUE)[N]");
  const bool user = (*type)->user;
  auto& index = *node.operands[1];
  if (index.kind == Node::number) {
    auto offset = index.value * to->bytes;
    if ((*type)->count && index.value >= (*type)->count)
      return wrong(index, fmt::format("the array has {} elements", (*type)->count));
    if (offset > std::numeric_limits<std::int32_t>::max())
      return wrong(index, "this is too far away");
    if (offset) code_.calculate_by(BPF_ADD, BPF_REG_0, static_cast<std::int32_t>(offset));
  } else {
    if (depth_ >= kSpills) return wrong(node, "this expression is nested too deeply");
    auto base = spill();
    code_.store(BPF_REG_10, base, BPF_REG_0);
    auto index_type = value(index);
    if (!index_type) return index_type.error();
    if ((*index_type)->kind != Type::integer) return wrong(index, "an index is an integer");
    code_.calculate_by(BPF_MUL, BPF_REG_0, static_cast<std::int32_t>(to->bytes));
    code_.load(8, BPF_REG_1, BPF_REG_10, base);
    code_.calculate(BPF_ADD, BPF_REG_0, BPF_REG_1);
    unspill();
  }
  Place place{to};
  place.user = user;
  return place;
}

Result<Compiler::Place> Compiler::place(const Node& node) {
  switch (node.kind) {
    case Node::name:
      return name(node);
    case Node::member:
      return member(node);
    case Node::element:
      return element(node);
    case Node::unary:
      if (node.text == "*") {
        auto type = value(*node.operands.front());
        if (!type) return type.error();
        if (!is_pointer(**type) || !(*type)->to || (*type)->to->kind == Type::nothing)
          return wrong(
              node, fmt::format("* takes a pointer whose type is known, this is {}", noun(**type)),
              "cast it: *(TYPE *)VALUE");
        Place place{(*type)->to};
        place.user = (*type)->user || node.operands.front()->user;
        return place;
      }
      break;
    default:
      break;
  }
  return wrong(node, "this has no place in memory");
}

/// Loads the value at a place; for an array or a record its address.
Result<TypePtr> Compiler::take(const Node& node, const Place& place) {
  auto type = place.type;
  if (place.input) {
    if (place.in_place) {
      code_.move(BPF_REG_0, BPF_REG_6);
      code_.calculate_by(BPF_ADD, BPF_REG_0, static_cast<std::int32_t>(place.at));
      return type;
    }
    code_.load(8, BPF_REG_0, BPF_REG_6, static_cast<int>(place.at));
    // In a register that holds a bool, only the low byte is defined.
    if (type->kind == Type::integer && type->truth && type->bytes < 8)
      code_.calculate_by(BPF_AND, BPF_REG_0, (1 << 8 * std::min(type->bytes, 3U)) - 1);
    normalise(BPF_REG_0, *type);
    return type;
  }
  switch (type->kind) {
    case Type::nothing:
      return wrong(node, fmt::format("this is {}", noun(*type)), "cast it");
    case Type::record:
      return place.user ? pointer_to(type, true) : type;
    case Type::array: {
      auto copy = *type;
      copy.user = place.user;
      return std::make_shared<const Type>(std::move(copy));
    }
    case Type::pointer:
      read(8, place.user);
      return place.user ? in_user_memory(type) : type;
    case Type::integer:
      break;
  }
  if (place.bits == 0) {
    read(type->bytes, place.user);
    if (type->is_signed || type->truth) normalise(BPF_REG_0, *type);
    return type;
  }
  const auto bytes = (place.bit + place.bits + 7) / 8;
  if (bytes > 8) return wrong(node, "this bit field lies across more than 8 bytes");
  code_.store_zero(BPF_REG_10, kReadAt);
  fetch(bytes, place.user);
  code_.load(8, BPF_REG_0, BPF_REG_10, kReadAt);
  const auto left = static_cast<std::int32_t>(64 - place.bit - place.bits);
  if (left) code_.calculate_by(BPF_LSH, BPF_REG_0, left);
  code_.calculate_by(type->is_signed ? BPF_ARSH : BPF_RSH, BPF_REG_0,
                     static_cast<std::int32_t>(64 - place.bits));
  return type;
}

// ---- values ----

/// Evaluates any expression; a record yields its address.
Result<TypePtr> Compiler::any(const Node& node) {
  switch (node.kind) {
    case Node::number:
      code_.set(BPF_REG_0, static_cast<std::int64_t>(node.value));
      if (node.is_long) return long_type(!node.is_unsigned);
      if (node.is_unsigned)
        return std::make_shared<const Type>(Type{Type::integer, "unsigned int", 4, false});
      return int_type();
    case Node::literal:
      return wrong(node, "a text can only be compared, by == or STRCMP");
    case Node::name:
      if (!scope_.names.contains(node.text) && !scope_.missing.contains(node.text))
        if (auto enumerator = enumerator_of(scope_, node.text)) {
          code_.set(BPF_REG_0, *enumerator);
          return long_type(true);
        }
      [[fallthrough]];
    case Node::member:
    case Node::element: {
      if (auto type = field_at_hand(node)) return type;
      auto found = place(node);
      if (!found) return found.error();
      return take(node, *found);
    }
    case Node::unary:
      return unary(node);
    case Node::binary:
      return node.text == "&&" || node.text == "||" ? both(node) : binary(node);
    case Node::conditional:
      return choice(node);
    case Node::cast:
      return cast(node);
    case Node::size_of:
      return size_of(node);
    case Node::call:
      break;
  }
  return call(node);
}

Result<TypePtr> Compiler::value(const Node& node) {
  auto type = any(node);
  if (!type) return type;
  if ((*type)->kind == Type::record || (*type)->kind == Type::nothing)
    return wrong(node, fmt::format("this is {}", noun(**type)),
                 (*type)->kind == Type::record ? "name one of its members" : "cast it");
  if (node.user) return in_user_memory(*type);
  return type;
}

Result<TypePtr> Compiler::unary(const Node& node) {
  auto& operand = *node.operands.front();
  const char c = node.text.front();
  if (c == '*') {
    auto found = place(node);
    if (!found) return found.error();
    return take(node, *found);
  }
  if (c == '&') {
    auto found = place(operand);
    if (!found) return found.error();
    if (found->input || found->bits)
      return wrong(node, found->bits ? "a bit field has no address" : "this value has no address");
    return pointer_to(found->type, found->user);
  }
  auto type = value(operand);
  if (!type) return type;
  if (c == '!') {
    auto zero = code_.jump_if_value(BPF_JEQ, BPF_REG_0, 0);
    code_.set(BPF_REG_0, 0);
    auto end = code_.jump();
    code_.here(zero);
    code_.set(BPF_REG_0, 1);
    code_.here(end);
    return int_type();
  }
  if ((*type)->kind != Type::integer)
    return wrong(node, fmt::format("{} takes an integer, this is {}", c, noun(**type)));
  auto result = promoted(*type);
  if (c == '-') code_.negate(BPF_REG_0);
  if (c == '~') code_.calculate_by(BPF_XOR, BPF_REG_0, -1);
  normalise(BPF_REG_0, *result);
  return result;
}

/// && and ||: the right side is evaluated only if needed.
Result<TypePtr> Compiler::both(const Node& node) {
  const bool all = node.text == "&&";
  auto left = value(*node.operands[0]);
  if (!left) return left;
  auto decided = code_.jump_if_value(all ? BPF_JEQ : BPF_JNE, BPF_REG_0, 0);
  auto right = value(*node.operands[1]);
  if (!right) return right;
  code_.here(decided);
  auto zero = code_.jump_if_value(BPF_JEQ, BPF_REG_0, 0);
  code_.set(BPF_REG_0, 1);
  code_.here(zero);
  return int_type();
}

Result<TypePtr> Compiler::type_of(const Node& node) {
  Code unused;
  Compiler dry(text_, scope_, unused);
  return dry.any(node);
}

Result<TypePtr> Compiler::choice(const Node& node) {
  auto yes = type_of(*node.operands[1]), no = type_of(*node.operands[2]);
  if (!yes) return yes;
  if (!no) return no;
  const bool integers = (*yes)->kind == Type::integer && (*no)->kind == Type::integer;
  if (!integers && !(is_pointer(**yes) && (is_pointer(**no) || (*no)->kind == Type::integer)) &&
      !(is_pointer(**no) && (*yes)->kind == Type::integer))
    return wrong(node, "both values have to be integers or pointers");
  auto type = integers ? common(*yes, *no) : is_pointer(**yes) ? *yes : *no;
  auto condition = value(*node.operands[0]);
  if (!condition) return condition;
  auto otherwise = code_.jump_if_value(BPF_JEQ, BPF_REG_0, 0);
  if (auto r = value(*node.operands[1]); !r) return r;
  normalise(BPF_REG_0, *type);
  auto end = code_.jump();
  code_.here(otherwise);
  if (auto r = value(*node.operands[2]); !r) return r;
  normalise(BPF_REG_0, *type);
  code_.here(end);
  return type;
}

Result<TypePtr> Compiler::named_type(const Node& node) const {
  auto type = scope_.program ? scope_.program->named(node.text) : nullptr;
  if (!type && scope_.types) type = scope_.types->named(node.text);
  if (!type) {
    const bool record = node.text.starts_with("struct ") || node.text.starts_with("union ");
    return unknown(node, fmt::format("{} is no type that is known here", node.text),
                   record ? record_like(node.text) : "");
  }
  for (int i = 0; i < node.stars; i++) type = pointer_to(type, scope_.user);
  return type;
}

Result<TypePtr> Compiler::cast(const Node& node) {
  auto to = named_type(node);
  if (!to) return to;
  auto from = value(*node.operands.front());
  if (!from) return from;
  if ((*to)->kind == Type::record || (*to)->kind == Type::nothing)
    return wrong(node, fmt::format("nothing can be cast to {}", (*to)->name));
  normalise(BPF_REG_0, **to);
  if ((*to)->kind != Type::pointer) return to;
  // A pointer keeps its address space; a number gets the place's default one.
  const bool user =
      node.operands.front()->user || (is_pointer(**from) ? (*from)->user : scope_.user);
  auto copy = **to;
  copy.user = user;
  return TypePtr(std::make_shared<const Type>(std::move(copy)));
}

Result<TypePtr> Compiler::size_of(const Node& node) {
  auto type = node.operands.empty() ? named_type(node) : type_of(*node.operands.front());
  if (!type && scope_.program && node.operands.front()->kind == Node::name)
    if (auto own = scope_.program->named(node.operands.front()->text)) type = own;
  if (!type) return type;
  code_.set(BPF_REG_0, (*type)->kind == Type::pointer ? 8 : (*type)->bytes);
  return long_type(false);
}

void Compiler::divide(bool is_signed, bool rest) {
  auto possible = code_.jump_if_value(BPF_JNE, BPF_REG_1, 0);
  set_fault();
  code_.set(BPF_REG_1, 1);
  code_.here(possible);
  const int operation = rest ? BPF_MOD : BPF_DIV;
  if (!is_signed) {
    code_.calculate(operation, BPF_REG_0, BPF_REG_1);
    return;
  }
  // BPF has signed division since 6.6 only (ec0e2da95f72).
  code_.move(BPF_REG_2, BPF_REG_0);
  if (!rest) code_.calculate(BPF_XOR, BPF_REG_2, BPF_REG_1);
  for (int reg : {BPF_REG_0, BPF_REG_1}) {
    auto positive = code_.jump_if_value(BPF_JSGE, reg, 0);
    code_.negate(reg);
    code_.here(positive);
  }
  code_.calculate(operation, BPF_REG_0, BPF_REG_1);
  auto positive = code_.jump_if_value(BPF_JSGE, BPF_REG_2, 0);
  code_.negate(BPF_REG_0);
  code_.here(positive);
}

void Compiler::compare(const std::string& word, bool is_signed) {
  int comparison = word == "=="   ? BPF_JEQ
                   : word == "!=" ? BPF_JNE
                   : word == "<"  ? (is_signed ? BPF_JSLT : BPF_JLT)
                   : word == "<=" ? (is_signed ? BPF_JSLE : BPF_JLE)
                   : word == ">"  ? (is_signed ? BPF_JSGT : BPF_JGT)
                                  : (is_signed ? BPF_JSGE : BPF_JGE);
  auto holds = code_.jump_if(comparison, BPF_REG_0, BPF_REG_1);
  code_.set(BPF_REG_0, 0);
  auto end = code_.jump();
  code_.here(holds);
  code_.set(BPF_REG_0, 1);
  code_.here(end);
}

/// r0 and r1 hold the left and right operands.
Result<TypePtr> Compiler::arithmetic(const Node& node, const TypePtr& left, const TypePtr& right) {
  auto& word = node.text;
  const bool shift = word == "<<" || word == ">>";
  auto type = shift ? promoted(left) : common(left, right);
  normalise(BPF_REG_0, *type);
  if (!shift) normalise(BPF_REG_1, *type);
  if (word == "==" || word == "!=" || word.front() == '<' || word.front() == '>')
    if (!shift) {
      compare(word, type->is_signed);
      return int_type();
    }
  if (shift) {
    code_.calculate_by(BPF_AND, BPF_REG_1, static_cast<std::int32_t>(type->bytes * 8 - 1));
    code_.calculate(word == "<<" ? BPF_LSH : (type->is_signed ? BPF_ARSH : BPF_RSH), BPF_REG_0,
                    BPF_REG_1);
  } else if (word == "/" || word == "%") {
    divide(type->is_signed, word == "%");
  } else {
    const int operation = word == "+"   ? BPF_ADD
                          : word == "-" ? BPF_SUB
                          : word == "*" ? BPF_MUL
                          : word == "&" ? BPF_AND
                          : word == "|" ? BPF_OR
                                        : BPF_XOR;
    code_.calculate(operation, BPF_REG_0, BPF_REG_1);
  }
  normalise(BPF_REG_0, *type);
  return type;
}

Result<TypePtr> Compiler::pointers(const Node& node, const TypePtr& left, const TypePtr& right) {
  auto& word = node.text;
  const bool comparison =
      word == "==" || word == "!=" || word == "<" || word == ">" || word == "<=" || word == ">=";
  if (comparison) {
    compare(word, false);
    return int_type();
  }
  auto element = [](const TypePtr& type) {
    return static_cast<std::int32_t>(type->to && type->to->kind == Type::pointer ? 8
                                     : type->to                                  ? type->to->bytes
                                                                                 : 1);
  };
  if (word == "-" && is_pointer(*left) && is_pointer(*right)) {
    code_.calculate(BPF_SUB, BPF_REG_0, BPF_REG_1);
    code_.set(BPF_REG_1, std::max(1, element(left)));
    divide(true, false);
    return long_type(true);
  }
  if ((word == "+" || word == "-") && is_pointer(*left) && !is_pointer(*right)) {
    code_.calculate_by(BPF_MUL, BPF_REG_1, element(left));
    code_.calculate(word == "+" ? BPF_ADD : BPF_SUB, BPF_REG_0, BPF_REG_1);
    return left->kind == Type::array ? pointer_to(left->to, left->user) : left;
  }
  if (word == "+" && is_pointer(*right)) {
    code_.calculate_by(BPF_MUL, BPF_REG_0, element(right));
    code_.calculate(BPF_ADD, BPF_REG_0, BPF_REG_1);
    return right->kind == Type::array ? pointer_to(right->to, right->user) : right;
  }
  // Use pointers as numbers where C would reject them: low bits of pointers may hold flags.
  return arithmetic(node, is_pointer(*left) ? long_type(false) : left,
                    is_pointer(*right) ? long_type(false) : right);
}

Result<TypePtr> Compiler::binary(const Node& node) {
  auto &left = *node.operands[0], &right = *node.operands[1];
  if (node.text == "==" || node.text == "!=")
    for (auto [text, other] : {std::pair(&left, &right), std::pair(&right, &left)})
      if (text->kind == Node::literal) {
        auto same = compare_text(node, *other, text->text, true);
        if (same && node.text == "!=") code_.calculate_by(BPF_XOR, BPF_REG_0, 1);
        return same;
      }
  auto left_type = value(left);
  if (!left_type) return left_type;
  if (depth_ >= kSpills) return wrong(node, "this expression is nested too deeply");
  TypePtr right_type;
  if (right.kind == Node::number) {
    auto type = type_of(right);
    right_type = *type;
    code_.set(BPF_REG_1, static_cast<std::int64_t>(right.value));
  } else {
    auto slot = spill();
    code_.store(BPF_REG_10, slot, BPF_REG_0);
    auto type = value(right);
    if (!type) return type;
    right_type = *type;
    code_.move(BPF_REG_1, BPF_REG_0);
    code_.load(8, BPF_REG_0, BPF_REG_10, slot);
    unspill();
  }
  if (is_pointer(**left_type) || is_pointer(*right_type))
    return pointers(node, *left_type, right_type);
  return arithmetic(node, *left_type, right_type);
}

/// Tests whether the text at an address equals `text`, or (not `whole`) starts with it.
Result<TypePtr> Compiler::compare_text(const Node& node, const Node& what, const std::string& text,
                                       bool whole) {
  if (text.size() > kMostText)
    return wrong(node, fmt::format("a text is compared by {} bytes at most", kMostText));
  auto type = value(what);
  if (!type) return type;
  if (!(*type)->is_text() && (*type)->kind == Type::integer && (*type)->bytes < 8)
    return wrong(what, "this is no text", "'c' is a character, \"c\" a text");
  const bool own = what.kind == Node::name && scope_.names.contains(what.text) &&
                   scope_.names.find(what.text)->second.in_place;
  const bool user = what.user || (is_pointer(**type) ? (*type)->user : scope_.user);
  auto bytes = text;
  if (whole) bytes += '\0';
  std::vector<Code::Label> differ;
  code_.move(BPF_REG_3, BPF_REG_0);
  if (own) {
    if (bytes.size() > COMM_LEN) bytes.resize(COMM_LEN);
  } else {
    const auto room = static_cast<std::int64_t>(bytes.size()) + 1;  // with a terminator
    code_.call_to_read(user ? kReadUserText : kReadKernelText, BPF_REG_10, kTextAt, room);
    auto fine = code_.jump_if_value(BPF_JSGE, BPF_REG_0, 0);
    set_fault();
    differ.push_back(code_.jump());
    code_.here(fine);
    code_.move(BPF_REG_3, BPF_REG_10);
    code_.calculate_by(BPF_ADD, BPF_REG_3, kTextAt);
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t rest = bytes.size() - at;
    const std::uint32_t n = rest >= 8 ? 8 : rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
    std::uint64_t part = 0;
    memcpy(&part, bytes.data() + at, n);
    code_.load(n, BPF_REG_1, BPF_REG_3, static_cast<int>(at));
    code_.set(BPF_REG_2, static_cast<std::int64_t>(part));
    differ.push_back(code_.jump_if(BPF_JNE, BPF_REG_1, BPF_REG_2));
    at += n;
  }
  code_.set(BPF_REG_0, 1);
  auto end = code_.jump();
  for (auto label : differ) code_.here(label);
  code_.set(BPF_REG_0, 0);
  code_.here(end);
  return int_type();
}

/// $entry(NAME): a parameter's value at function entry.
Result<TypePtr> Compiler::entry(const Node& node) {
  if (node.operands.size() != 1 || node.operands[0]->kind != Node::name)
    return wrong(node, "$entry takes the name of a parameter", "$entry(count)");
  auto& word = *node.operands[0];
  if (scope_.entries.empty())
    return wrong(node, "$entry is known at returns of functions and system calls only");
  auto found = scope_.entries.find(word.text);
  if (found == scope_.entries.end()) {
    std::vector<std::string> known;
    for (auto& [name, variable] : scope_.entries) known.push_back(name);
    return wrong(word, fmt::format("there is no parameter {}", word.text), near(word.text, known));
  }
  Place place{found->second.type, true, found->second.at};
  return take(word, place);
}

Result<TypePtr> Compiler::call(const Node& node) {
  auto& name = node.text;
  auto operands = node.operands.size();
  if (name == "$entry") return entry(node);
  if (name == "STRCMP" || name == "STREQ" || name == "STRNCMP") {
    const bool counted = name == "STRNCMP";
    if (operands != (counted ? 3U : 2U) || node.operands[0]->kind != Node::literal)
      return wrong(node,
                   fmt::format("{} takes a text{} and a value", name,
                               counted ? ", how many bytes of it count," : ""),
                   counted ? "STRNCMP(\"text\", N, VALUE)" : name + "(\"text\", VALUE)");
    auto text = node.operands[0]->text;
    if (counted) {
      if (node.operands[1]->kind != Node::number)
        return wrong(*node.operands[1], "expected a number here");
      text = text.substr(0, node.operands[1]->value);
    }
    return compare_text(node, *node.operands.back(), text, name == "STREQ");
  }
  if (name == "ntohs" || name == "htons" || name == "ntohl" || name == "htonl") {
    if (operands != 1) return wrong(node, name + " takes one value");
    auto type = value(*node.operands[0]);
    if (!type) return type;
    const std::uint32_t bytes = name.back() == 's' ? 2 : 4;
    code_.to_big_endian(BPF_REG_0, bytes);
    return integer_type(bytes, false);
  }
  return wrong(
      node, fmt::format("{} is no function that is known here", name),
      near(name, {"STRCMP", "STRNCMP", "STREQ", "ntohs", "ntohl", "htons", "htonl", "sizeof"}));
}

// ---- filters and outputs of pads ----

Result<void> Compiler::filter(const Node& node) {
  code_.set(BPF_REG_8, 0);
  auto type = value(node);
  if (!type) return type.error();
  auto no = code_.jump_if_value(BPF_JEQ, BPF_REG_0, 0);
  code_.set(BPF_REG_0, EXPRESSION_YES);
  code_.here(no);
  auto fine = code_.jump_if_value(BPF_JEQ, BPF_REG_8, 0);
  code_.set(BPF_REG_0, EXPRESSION_FAULT);
  code_.here(fine);
  return {};
}

Result<Output> Compiler::output(const Node& node, Wanted wanted, std::uint32_t index,
                                std::uint32_t text_bytes, std::uint32_t& next) {
  code_.set(BPF_REG_8, 0);
  auto type = any(node);
  if (!type) return type.error();
  auto& t = **type;
  Output out{Output::number, *type};
  const bool whole = wanted == Wanted::whole;
  bool cut = false;
  if (wanted != Wanted::address && !whole && t.kind == Type::record)
    return wrong(node, fmt::format("this is {}", noun(t)), "name one of its members");
  if (t.kind == Type::nothing)
    return wrong(node, fmt::format("this is {}", noun(t)),
                 t.name == "void" ? "cast it" : "integers, pointers and text can be read");
  if (wanted == Wanted::text && t.kind == Type::integer && t.bytes < 8)
    return wrong(node, "%s shows text, this is a number", "%d and %x show numbers");
  const bool user = node.user || (is_pointer(t) ? t.user : t.kind == Type::integer && scope_.user);
  if (wanted == Wanted::address && t.kind != Type::integer) {
    // An IPv4 or IPv6 address, or a pointer to one.
    auto& to = t.kind == Type::record ? t : t.kind == Type::array || !t.to ? t : *t.to;
    out.form = Output::bytes;
    out.room = to.bytes;
    if (out.room != 4 && out.room != 16)
      return wrong(node, fmt::format("%I shows addresses of 4 or 16 bytes, this has {}", out.room));
  } else if (whole) {
    auto* lies = t.kind == Type::pointer ? t.to.get() : t.kind == Type::integer ? nullptr : &t;
    if (t.is_text() && (t.kind == Type::pointer || !t.bytes)) {
      out.form = Output::text;
      out.room = std::min(text_bytes, kWholeText) + 2;
    } else if (lies && lies->bytes && (lies == &t || lies->kind == Type::record)) {
      out.form = Output::bytes;
      out.room = std::min(text_bytes, lies->bytes);
      cut = out.room < lies->bytes;
    }
  } else if (wanted == Wanted::text) {
    out.form = Output::text;
    out.room = text_bytes + 2;  // one more byte than shown, to detect longer text
  }
  std::optional<Code::Label> none;  // jump taken for a null pointer
  const bool leads = whole && t.kind == Type::pointer;
  if (out.form == Output::number || leads)
    code_.store(BPF_REG_7, in(offsetof(expression_out, values)) + static_cast<int>(8 * index),
                BPF_REG_0);
  if (out.form != Output::number) {
    if (leads) none = code_.jump_if_value(BPF_JEQ, BPF_REG_0, 0);
    out.at = next;
    next += (out.room + 7) / 8 * 8;
    code_.move(BPF_REG_3, BPF_REG_0);
    const bool text = out.form == Output::text;
    code_.call_to_read(
        user ? (text ? kReadUserText : kReadUser) : (text ? kReadKernelText : kReadKernel),
        BPF_REG_7, static_cast<int>(out.at), out.room);
    auto fine = code_.jump_if_value(BPF_JSGE, BPF_REG_0, 0);
    set_fault();
    code_.here(fine);
    if (text || cut) {
      std::optional<Code::Label> fits;
      if (text) fits = code_.jump_if_value(BPF_JNE, BPF_REG_0, static_cast<std::int32_t>(out.room));
      code_.load(8, BPF_REG_1, BPF_REG_7, in(offsetof(expression_out, cut)));
      code_.calculate_by(BPF_OR, BPF_REG_1, 1 << index);
      code_.store(BPF_REG_7, in(offsetof(expression_out, cut)), BPF_REG_1);
      if (fits) code_.here(*fits);
    }
    if (none) code_.here(*none);
  }
  auto fine = code_.jump_if_value(BPF_JEQ, BPF_REG_8, 0);
  code_.load(8, BPF_REG_1, BPF_REG_7, in(offsetof(expression_out, faults)));
  code_.calculate_by(BPF_OR, BPF_REG_1, 1 << index);
  code_.store(BPF_REG_7, in(offsetof(expression_out, faults)), BPF_REG_1);
  code_.here(fine);
  return out;
}

void add_common_names(Scope& scope) {
  auto number = [&](std::string name, std::size_t at, const TypePtr& type, std::uint64_t uses) {
    scope.names[std::move(name)] = {type, static_cast<std::uint32_t>(at), false, uses};
  };
  auto u32 = integer_type(4, false);
  // As in bcc: $pid is the thread id, $tgid the process id.
  number("$pid", offsetof(expression_in, tid), u32, EXPRESSION_USES_IDS);
  number("$tid", offsetof(expression_in, tid), u32, EXPRESSION_USES_IDS);
  number("$tgid", offsetof(expression_in, pid), u32, EXPRESSION_USES_IDS);
  number("$uid", offsetof(expression_in, uid), u32, EXPRESSION_USES_USER);
  number("$gid", offsetof(expression_in, gid), u32, EXPRESSION_USES_USER);
  number("$cpu", offsetof(expression_in, cpu), u32, EXPRESSION_USES_CPU);
  auto task = scope.types ? scope.types->named("struct task_struct") : nullptr;
  if (task) number("$task", offsetof(expression_in, task), pointer_to(task), EXPRESSION_USES_TASK);
  auto character = std::make_shared<const Type>(Type{Type::integer, "char", 1, true, false, true});
  scope.names["$comm"] = {array_of(std::move(character), COMM_LEN),
                          static_cast<std::uint32_t>(offsetof(expression_in, comm)), true,
                          EXPRESSION_USES_COMM};
}

void add_arguments(Scope& scope, const std::vector<Parameter>& parameters) {
  constexpr std::size_t kInRegisters = std::size(expression_in{}.arguments);
  auto at = [](std::size_t i) {
    return static_cast<std::uint32_t>(offsetof(expression_in, arguments) + 8 * i);
  };
  for (std::size_t i = 0; i < kInRegisters; i++) {
    auto type = i < parameters.size() ? parameters[i].type : untyped_register(false);
    if (type->kind == Type::nothing || type->kind == Type::record) type = untyped_register(false);
    Variable variable{type, at(i), false, EXPRESSION_USES_ARGUMENTS};
    if (i < parameters.size() && !parameters[i].name.empty())
      scope.names[parameters[i].name] = variable;
    // argN has no specific type: in bcc it is a number.
    if (type->kind == Type::integer) variable.type = untyped_register(type->is_signed);
    scope.names[fmt::format("arg{}", i + 1)] = variable;
  }
}

}  // namespace coretap::expression
