#include "expression/types.hpp"

#include <linux/btf.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "coretap/parse.hpp"
#include "coretap/tracepoint_format.hpp"

namespace coretap::expression {

namespace {

struct Base {
  std::string_view name;
  std::uint32_t bytes;
  bool is_signed;
};
/// Integer type names of C and the kernel; x86-64 and arm64 agree.
constexpr std::array kBases = {
    Base{"char", 1, true},       Base{"short", 2, true},     Base{"int", 4, true},
    Base{"long", 8, true},       Base{"u8", 1, false},       Base{"u16", 2, false},
    Base{"u32", 4, false},       Base{"u64", 8, false},      Base{"s8", 1, true},
    Base{"s16", 2, true},        Base{"s32", 4, true},       Base{"s64", 8, true},
    Base{"__u8", 1, false},      Base{"__u16", 2, false},    Base{"__u32", 4, false},
    Base{"__u64", 8, false},     Base{"__s8", 1, true},      Base{"__s16", 2, true},
    Base{"__s32", 4, true},      Base{"__s64", 8, true},     Base{"uint8_t", 1, false},
    Base{"uint16_t", 2, false},  Base{"uint32_t", 4, false}, Base{"uint64_t", 8, false},
    Base{"int8_t", 1, true},     Base{"int16_t", 2, true},   Base{"int32_t", 4, true},
    Base{"int64_t", 8, true},    Base{"size_t", 8, false},   Base{"ssize_t", 8, true},
    Base{"uintptr_t", 8, false}, Base{"intptr_t", 8, true},  Base{"off_t", 8, true},
    Base{"loff_t", 8, true},     Base{"pid_t", 4, true},     Base{"uid_t", 4, false},
    Base{"gid_t", 4, false},     Base{"mode_t", 4, false},   Base{"time_t", 8, true},
    Base{"__be16", 2, false},    Base{"__be32", 4, false},   Base{"__be64", 8, false},
    Base{"bool", 1, false},      Base{"_Bool", 1, false},    Base{"umode_t", 2, false},
    Base{"sector_t", 8, false},  Base{"dev_t", 4, false},    Base{"gfp_t", 4, false},
};

bool is_truth(std::string_view name) { return name == "bool" || name == "_Bool"; }

TypePtr base_type(std::string_view name) {
  for (auto& b : kBases)
    if (b.name == name) {
      Type t{Type::integer, std::string(name), b.bytes, b.is_signed, is_truth(name)};
      t.character = name == "char";
      return std::make_shared<const Type>(std::move(t));
    }
  return nullptr;
}

/// Parses words of a type's name: "unsigned", "long", "int" in any order, without qualifiers.
TypePtr integer_by_words(const std::vector<std::string_view>& words) {
  int longs = 0;
  bool has_unsigned = false, has_signed = false, has_char = false, has_short = false;
  for (auto word : words) {
    if (word == "unsigned")
      has_unsigned = true;
    else if (word == "signed")
      has_signed = true;
    else if (word == "long")
      longs++;
    else if (word == "short")
      has_short = true;
    else if (word == "char")
      has_char = true;
    else if (word != "int")
      return nullptr;
  }
  if (words.empty()) return nullptr;
  std::string name;
  for (auto word : words) name += (name.empty() ? "" : " ") + std::string(word);
  Type t{Type::integer, std::move(name), 4, !has_unsigned};
  if (longs) t.bytes = 8;
  if (has_short) t.bytes = 2;
  if (has_char) {
    t.bytes = 1;
    t.character = !has_unsigned && !has_signed;
  }
  return std::make_shared<const Type>(std::move(t));
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    if (std::isspace(static_cast<unsigned char>(text.front()))) {
      text.remove_prefix(1);
      continue;
    }
    std::size_t n = 0;
    while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) || text[n] == '_'))
      n++;
    n = std::max<std::size_t>(n, 1);
    words.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return words;
}

bool is_qualifier(std::string_view word) {
  return word == "const" || word == "volatile" || word == "__user" || word == "restrict" ||
         word == "__rcu" || word == "__iomem" || word == "__percpu";
}

/// A type that expressions cannot read.
TypePtr unreadable(std::uint32_t bytes) {
  auto none = *nothing();
  none.bytes = bytes;
  return std::make_shared<const Type>(std::move(none));
}

/// Members of a struct or union, from BTF.
class BtfMembers final : public Members {
 public:
  BtfMembers(const Btf* btf, const Types* types, std::uint32_t id)
      : btf_(btf), types_(types), id_(id) {}

  void each(const Visit& visit) const override {
    std::size_t left = kMostInside;
    each_of(id_, 0, left, visit);
  }

 private:
  /// `bit`: offset of this record in the outermost one. True: `visit` has ended the visits.
  bool each_of(std::uint32_t id, std::uint32_t bit, std::size_t& left, const Visit& visit) const {
    auto* t = btf_->plain(id);
    auto kind = t ? BTF_INFO_KIND(t->info) : 0U;
    if ((kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION) || left == 0) return false;
    left--;
    const bool fields = BTF_INFO_KFLAG(t->info);
    for (unsigned i = 0; i < BTF_INFO_VLEN(t->info); i++) {
      auto& m = behind<btf_member>(t)[i];
      const auto at = bit + (fields ? BTF_MEMBER_BIT_OFFSET(m.offset) : m.offset);
      const auto bits = fields ? BTF_MEMBER_BITFIELD_SIZE(m.offset) : 0;
      const auto name = btf_->name(m.name_off);
      auto member = [&] { return Member{Member::memory, types_->of(m.type), at, bits}; };
      if (name.empty() ? each_of(m.type, at, left, visit) : visit(name, member)) return true;
    }
    return false;
  }

  const Btf* btf_;
  const Types* types_;
  std::uint32_t id_;
};

/// Members of a tracepoint's record.
class FormatMembers final : public Members {
 public:
  void each(const Visit& visit) const override {
    for (auto& [name, member] : all)
      if (visit(name, [&member = member] { return member; })) return;
  }

  std::vector<std::pair<std::string, Member>> all;
};

}  // namespace

std::optional<Member> Members::find(std::string_view name) const {
  std::optional<Member> found;
  each([&](std::string_view known, auto& member) {
    if (known == name) found = member();
    return known == name;
  });
  return found;
}

std::vector<std::string> Members::names() const {
  std::vector<std::string> all;
  each([&](std::string_view name, auto&) {
    all.emplace_back(name);
    return all.size() >= kMostNames;
  });
  return all;
}

TypePtr nothing() {
  static const auto none = std::make_shared<const Type>(Type{Type::nothing, "void", 1});
  return none;
}

TypePtr integer_type(std::uint32_t bytes, bool is_signed) {
  return std::make_shared<const Type>(
      Type{Type::integer, (is_signed ? "s" : "u") + std::to_string(bytes * 8), bytes, is_signed});
}

TypePtr untyped_register(bool is_signed) {
  auto type = *integer_type(8, is_signed);
  type.untyped = true;
  return std::make_shared<const Type>(std::move(type));
}

TypePtr pointer_to(TypePtr to, bool user) {
  Type t{Type::pointer, (to ? to->name : "void") + " *"};
  t.to = std::move(to);
  t.user = user;
  return std::make_shared<const Type>(std::move(t));
}

TypePtr array_of(TypePtr element, std::uint32_t count) {
  constexpr std::uint64_t kMost = 1U << 30;
  Type t{Type::array, element->name + " []"};
  t.count = count;
  t.bytes = static_cast<std::uint32_t>(std::min(std::uint64_t{element->bytes} * count, kMost));
  t.to = std::move(element);
  return std::make_shared<const Type>(std::move(t));
}

TypePtr in_user_memory(const TypePtr& type) {
  if (!type || type->kind != Type::pointer) return type;
  auto copy = *type;
  copy.user = true;
  return std::make_shared<const Type>(std::move(copy));
}

TypePtr Types::named(std::string_view name) const {
  std::vector<std::string_view> words;
  for (auto word : split_words(name))
    if (!is_qualifier(word)) words.push_back(word);
  if (words.empty()) return nullptr;
  if (words.size() == 2 && btf_) {
    auto kind = words[0] == "struct"  ? BTF_KIND_STRUCT
                : words[0] == "union" ? BTF_KIND_UNION
                : words[0] == "enum"  ? BTF_KIND_ENUM
                                      : 0;
    if (kind) {
      auto id = btf_->find(words[1], static_cast<unsigned>(kind));
      if (!id && kind == BTF_KIND_ENUM) id = btf_->find(words[1], BTF_KIND_ENUM64);
      return id ? of(id) : nullptr;
    }
  }
  if (words.size() == 1) {
    if (words[0] == "void") return nothing();
    if (auto base = base_type(words[0])) return base;
  }
  if (auto base = integer_by_words(words)) return base;
  if (words.size() == 1 && btf_)
    if (auto id = btf_->find(words[0], BTF_KIND_TYPEDEF)) return of(id);
  return nullptr;
}

bool Types::starts_type(std::string_view word) const {
  for (std::string_view known :
       {"struct", "union", "enum", "unsigned", "signed", "void", "const", "volatile"})
    if (word == known) return true;
  return base_type(word) || (btf_ && btf_->find(word, BTF_KIND_TYPEDEF));
}

TypePtr Types::of(std::uint32_t id) const {
  if (auto known = known_.find(id); known != known_.end()) return known->second;
  auto type = make(id, 0);
  known_[id] = type;
  return type;
}

TypePtr Types::make(std::uint32_t id, int depth) const {
  auto* t = btf_ ? btf_->type(id) : nullptr;
  if (!t || depth > kDeepest) return nothing();
  auto name = std::string(btf_->name(t->name_off));
  switch (BTF_INFO_KIND(t->info)) {
    case BTF_KIND_INT: {
      auto info = *behind<std::uint32_t>(t);
      Type type{Type::integer, name, t->size,
                static_cast<bool>(BTF_INT_ENCODING(info) & BTF_INT_SIGNED),
                static_cast<bool>(BTF_INT_ENCODING(info) & BTF_INT_BOOL)};
      type.character = name == "char";
      type.id = id;
      if (t->size > 8) return unreadable(t->size);
      return std::make_shared<const Type>(std::move(type));
    }
    case BTF_KIND_FLOAT:
      return unreadable(t->size);
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64: {
      Type type{Type::integer, "enum " + name, t->size,
                BTF_INFO_KIND(t->info) == BTF_KIND_ENUM ? true : bool(BTF_INFO_KFLAG(t->info))};
      type.id = id;
      return std::make_shared<const Type>(std::move(type));
    }
    case BTF_KIND_PTR: {
      // A pointer's target may be a record that refers back: its members are looked up on demand.
      auto* to = btf_->type(t->type);
      const bool tagged = to && BTF_INFO_KIND(to->info) == BTF_KIND_TYPE_TAG;
      const bool user = tagged && btf_->name(to->name_off) == "user";
      return pointer_to(make(t->type, depth + 1), user);
    }
    case BTF_KIND_ARRAY: {
      auto* array = behind<btf_array>(t);
      return array_of(make(array->type, depth + 1), array->nelems);
    }
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION: {
      Type type{Type::record,
                (BTF_INFO_KIND(t->info) == BTF_KIND_UNION ? "union " : "struct ") + name, t->size};
      type.members = std::make_shared<const BtfMembers>(btf_, this, id);
      type.id = id;
      return std::make_shared<const Type>(std::move(type));
    }
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_CONST:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_TYPE_TAG:
      return make(t->type, depth + 1);
    default:
      return nothing();
  }
}

Prototype Types::prototype(const btf_type& type, bool skip_first) const {
  Prototype p;
  auto* parameters = behind<btf_param>(&type);
  for (unsigned i = skip_first ? 1 : 0; i < BTF_INFO_VLEN(type.info); i++)
    p.parameters.push_back(
        {std::string(btf_->name(parameters[i].name_off)), of(parameters[i].type)});
  p.result = of(type.type);
  return p;
}

std::optional<Prototype> Types::function(std::string_view name) const {
  auto id = btf_ ? btf_->find(name, BTF_KIND_FUNC) : 0;
  auto* function = id ? btf_->type(id) : nullptr;
  auto* type = function ? btf_->type(function->type) : nullptr;
  if (!type || BTF_INFO_KIND(type->info) != BTF_KIND_FUNC_PROTO) return {};
  return prototype(*type, false);
}

std::optional<Prototype> Types::tracepoint(std::string_view name) const {
  auto id = btf_ ? btf_->find("btf_trace_" + std::string(name), BTF_KIND_TYPEDEF) : 0;
  auto* type = id ? btf_->type(id) : nullptr;
  for (int i = 0; type && i < 2; i++) type = btf_->type(type->type);  // the typedef, the pointer
  if (!type || BTF_INFO_KIND(type->info) != BTF_KIND_FUNC_PROTO) return {};
  return prototype(*type, true);
}

std::optional<std::int64_t> Types::enumerator(std::string_view name) const {
  if (!btf_) return {};
  // A module's own ones come first.
  for (auto [first, end] : {std::pair(btf_->first(), btf_->count()), std::pair(1U, btf_->first())})
    for (auto id = first; id < end; id++) {
      auto* t = btf_->type(id);
      auto kind = t ? BTF_INFO_KIND(t->info) : 0;
      if (kind != BTF_KIND_ENUM && kind != BTF_KIND_ENUM64) continue;
      for (auto& [known, value] : btf_->enumerators(t))
        if (known == name) return value;
    }
  return {};
}

std::vector<std::string> Types::records() const {
  std::vector<std::string> all;
  for (std::uint32_t id = 1; btf_ && id < btf_->count(); id++) {
    auto* t = btf_->type(id);
    auto kind = t ? BTF_INFO_KIND(t->info) : 0;
    if ((kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION) && t->name_off)
      all.push_back((kind == BTF_KIND_UNION ? "union " : "struct ") +
                    std::string(btf_->name(t->name_off)));
  }
  return all;
}

Parameter parse_declaration(std::string_view text, const Types& types) {
  auto count = std::optional<std::uint32_t>();
  if (auto bracket = text.find('['); bracket != text.npos) {
    auto rest = text.substr(bracket + 1);
    auto number = parse_unsigned(take_until(rest, ']'));
    count = number && *number < (1U << 16) ? static_cast<std::uint32_t>(*number) : 0;
    // "unsigned char[] cmnd" has its name after the brackets, "char disk[32]" before them.
    auto words = split_words(rest);
    text = words.empty() ? text.substr(0, bracket) : text;
  }
  std::vector<std::string_view> words;
  std::size_t stars = 0;
  bool user = false, in_brackets = false;
  for (auto word : split_words(text)) {
    if (word == "[") in_brackets = true;
    if (word == "]") in_brackets = false;
    user = user || word == "__user";
    if (word == "*") stars++;
    if (in_brackets || word == "*" || word == "]" || is_qualifier(word)) continue;
    words.push_back(word);
  }
  Parameter p;
  // One word is a type ("int"), two words may be one as well ("unsigned long").
  std::string type;
  auto known = [&](std::size_t n) {
    type.clear();
    for (std::size_t i = 0; i < n; i++) type += (i ? " " : "") + std::string(words[i]);
    return types.named(type);
  };
  auto found = known(words.size());
  if (!found && !words.empty()) {
    p.name = words.back();
    found = known(words.size() - 1);
    if (!found && stars)  // such as "struct foo *name" of a module
      found = std::make_shared<const Type>(Type{Type::nothing, type});
  }
  if (!found) found = integer_type(8, false);
  for (std::size_t i = 0; i < stars; i++) found = pointer_to(found, user);
  p.type = count ? array_of(std::move(found), *count) : std::move(found);
  return p;
}

std::shared_ptr<const Members> format_members(std::string_view format, const Types& types,
                                              std::optional<std::uint32_t> inputs) {
  auto members = std::make_shared<FormatMembers>();
  std::uint32_t number = 0;
  each_tracepoint_field(format, [&](const TracepointField& field) {
    auto declaration = field.declaration;
    Member member;
    for (auto [word, place] :
         {std::pair<std::string_view, Member::Place>{"__data_loc ", Member::behind},
          {"__rel_loc ", Member::beyond}})
      if (declaration.starts_with(word)) {
        member.place = place;
        declaration.remove_prefix(word.size());
      }
    auto [name, type] = parse_declaration(declaration, types);
    if (name.empty()) return;
    const bool input = inputs && !name.starts_with("common_") && name != "__syscall_nr";
    if (!input && member.place == Member::memory && type->kind == Type::integer) {
      // The format file has the size and sign of an enum or an unknown type; of an argument of a
      // system call it has those of a register.
      auto exact = *type;
      exact.bytes = field.size == 1 || field.size == 2 || field.size == 4 ? field.size : 8;
      exact.is_signed = field.is_signed;
      type = std::make_shared<const Type>(std::move(exact));
    }
    member.type = type;
    member.bit = field.at * 8;
    if (input) {
      member.place = Member::input;
      member.bit = *inputs + 8 * number++;
      if (type->kind == Type::pointer) member.type = in_user_memory(type);
    }
    members->all.emplace_back(name, std::move(member));
  });
  return members;
}

}  // namespace coretap::expression
