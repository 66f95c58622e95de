#include "expression/syntax.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "coretap/sanitize.hpp"

namespace coretap::expression {

namespace {

constexpr int kMostNested = 64;
constexpr std::size_t kMostTyped = 128;  // maximum bytes of a text to compare

struct Operator {
  std::string_view word;
  int rank;  ///< higher binds closer
};
/// Longer operators first, as "<" is a prefix of "<<".
constexpr std::array kOperators = {
    Operator{"||", 1}, Operator{"&&", 2}, Operator{"==", 6}, Operator{"!=", 6}, Operator{"<=", 7},
    Operator{">=", 7}, Operator{"<<", 8}, Operator{">>", 8}, Operator{"|", 3},  Operator{"^", 4},
    Operator{"&", 5},  Operator{"<", 7},  Operator{">", 7},  Operator{"+", 9},  Operator{"-", 9},
    Operator{"*", 10}, Operator{"/", 10}, Operator{"%", 10}};

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

template <class... Operands>
NodePtr make(Node node, Operands... operands) {
  auto made = std::make_unique<Node>(std::move(node));
  (made->operands.push_back(std::move(operands)), ...);
  return made;
}

}  // namespace

Error error_at(std::string_view text, std::size_t at, std::string_view what,
               std::string_view hint) {
  // The caret is printed below the error's column: each byte has to take one column.
  std::string shown;
  for (char c : text) shown += c >= ' ' && c < 0x7f ? c : '?';
  return {printable(what), fmt::format("\n  {}\n  {}^", shown, std::string(at, ' ')),
          printable(hint), kUsage};
}

char Parser::peek() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) at_++;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool Parser::take(char c) {
  if (peek() != c || c == '\0') return false;
  at_++;
  return true;
}

std::string_view Parser::look_at_word() {
  peek();
  auto end = at_;
  if (end < text_.size() && text_[end] == '$') end++;
  if (end < text_.size() && starts_word(text_[end]))
    while (end < text_.size() && in_word(text_[end])) end++;
  return text_.substr(at_, end - at_);
}

std::string_view Parser::word() {
  auto found = look_at_word();
  at_ += found.size();
  return found;
}

NodePtr Parser::fail(Error error) {
  if (!error_) error_ = std::move(error);
  at_ = text_.size();
  return nullptr;
}

NodePtr Parser::fail(std::size_t at, std::string_view what, std::string_view hint) {
  return fail(wrong(at, what, hint));
}

char Parser::character_of_text() {
  char c = text_[at_++];
  if (c != '\\' || at_ >= text_.size()) return c;
  c = text_[at_++];
  return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == '0' ? '\0' : c;
}

Result<std::string> Parser::quoted() {
  const auto start = at_;
  if (!take('"')) return wrong(at_, "expected a text in double quotes");
  std::string all;
  while (at_ < text_.size() && text_[at_] != '"') all += character_of_text();
  if (at_ >= text_.size()) return wrong(start, "this quote is not closed");
  at_++;
  return all;
}

Result<NodePtr> Parser::expression() {
  if (peek() == '\0') return wrong(at_, "expected an expression here, found the end");
  auto node = conditional();
  if (error_) return *error_;
  return Result<NodePtr>(std::move(node));
}

NodePtr Parser::conditional() {
  if (++depth_ > kMostNested) return fail(at_, "too many parentheses within parentheses");
  auto node = binary(1);
  const auto start = at_;
  if (take('?')) {
    auto yes = conditional();
    if (!take(':')) fail(at_, "expected ':' and what the value is otherwise");
    node = make({Node::conditional, start}, std::move(node), std::move(yes), conditional());
  }
  depth_--;
  return node;
}

std::string_view Parser::next_operator() {
  peek();
  auto rest = text_.substr(at_);
  for (auto& o : kOperators)
    if (rest.starts_with(o.word)) return o.word;
  return {};
}

NodePtr Parser::binary(int least) {
  auto left = unary();
  for (;;) {
    auto word = next_operator();
    int rank = 0;
    for (auto& o : kOperators)
      if (o.word == word) rank = o.rank;
    if (!rank || rank < least) break;
    const auto start = at_;
    at_ += word.size();
    if (peek() == '=' && word != "==" && word != "!=")
      return fail(start, "nothing can be assigned", "== compares");
    left = make({Node::binary, start, std::string(word)}, std::move(left), binary(rank + 1));
  }
  if (least == 1 && peek() == '=') return fail(at_, "nothing can be assigned", "== compares");
  return left;
}

bool Parser::type_is_next() {
  auto found = look_at_word();
  return !found.empty() && found.front() != '$' && is_type_ && is_type_(found);
}

bool Parser::other_type_is_next() {
  const auto start = at_;
  const auto first = look_at_word();
  std::string words;
  int stars = 0;
  type_name(words, stars);
  bool is = !first.empty() && first.front() != '$' && take(')');
  if (is && stars == 0) {
    // Without an operator between two operands, the first must be a type.
    const char c = peek();
    is = words == first && (in_word(c) || c == '$' || c == '(' || c == '~');
  }
  at_ = start;
  return is;
}

void Parser::type_name(std::string& words, int& stars) {
  for (;;) {
    auto found = look_at_word();
    if (found.empty() || found.front() == '$') break;
    words += (words.empty() ? "" : " ") + std::string(word());
  }
  while (take('*')) stars++;
}

bool Parser::take_type(Node& node) {
  if (!take('(') || !(type_is_next() || other_type_is_next())) return false;
  type_name(node.text, node.stars);
  if (!take(')')) fail(at_, "expected ')' behind the type");
  return true;
}

NodePtr Parser::unary() {
  const char c = peek();
  const auto start = at_;
  if (++depth_ > kMostNested) return fail(at_, "this expression is nested too deeply");
  NodePtr node;
  if (c == '-' || c == '+' || c == '~' || c == '!' || c == '*' || c == '&') {
    at_++;
    node = make({Node::unary, start, std::string(1, c)}, unary());
  } else if (Node cast{Node::cast, start}; take_type(cast)) {
    node = make(std::move(cast), unary());
  } else {
    at_ = start;
    node = look_at_word() == "sizeof" ? size_of(start) : postfix();
  }
  depth_--;
  return node;
}

NodePtr Parser::size_of(std::size_t start) {
  word();
  const auto open = at_;
  Node node{Node::size_of, start};
  if (take_type(node)) return make(std::move(node));
  at_ = open;
  return make(std::move(node), unary());
}

NodePtr Parser::postfix() {
  auto node = primary();
  for (;;) {
    const char c = peek();
    const auto start = at_;
    const bool through = c == '-' && at_ + 1 < text_.size() && text_[at_ + 1] == '>';
    if (through || c == '.') {
      at_ += through ? 2 : 1;
      auto name = look_at_word();
      if (name.empty() || name.front() == '$')
        return fail(at_, "expected the name of a member here");
      node = make({Node::member, at_, std::string(word())}, std::move(node));
      node->through = through;
    } else if (c == '[') {
      at_++;
      auto index = conditional();
      if (!take(']')) return fail(at_, "expected ']' here");
      node = make({Node::element, start}, std::move(node), std::move(index));
    } else if (c == '@') {
      at_++;
      if (word() != "user")
        return fail(start, "expected @user", "it marks an address of the process");
      node->user = true;
    } else {
      return node;
    }
  }
}

NodePtr Parser::primary() {
  const char c = peek();
  const auto start = at_;
  if (take('(')) {
    auto node = conditional();
    if (!take(')')) return fail(at_, peek() ? "expected ')' here" : "a ')' is missing");
    return node;
  }
  if (std::isdigit(static_cast<unsigned char>(c))) return number();
  if (c == '\'') return character();
  if (c == '"') {
    auto text = quoted();
    if (!text) return fail(text.error());
    if (text->size() > kMostTyped)
      return fail(start, fmt::format("a text is compared by {} bytes at most", kMostTyped));
    return make({Node::literal, start, std::move(*text)});
  }
  auto name = word();
  if (name.empty() || name == "$")
    return fail(start, c ? "expected a name, a number or '(' here" : "an operand is missing here");
  if (peek() == '(' && (name.front() != '$' || name == "$entry")) return call(name, start);
  return make({Node::name, start, std::string(name)});
}

NodePtr Parser::call(std::string_view name, std::size_t start) {
  take('(');
  auto node = make({Node::call, start, std::string(name)});
  if (take(')')) return node;
  do {
    node->operands.push_back(conditional());
  } while (take(','));
  if (!take(')')) return fail(at_, "expected ')' or ',' here");
  return node;
}

NodePtr Parser::number() {
  const auto start = at_;
  auto node = make({Node::number, start});
  int base = 10;
  if (text_[at_] == '0' && at_ + 1 < text_.size()) {
    const char c = text_[at_ + 1];
    base = c == 'x' || c == 'X' ? 16 : c == 'b' || c == 'B' ? 2 : 8;
    if (base != 8) at_ += 2;
  }
  const auto [end, error] =
      std::from_chars(text_.data() + at_, text_.data() + text_.size(), node->value, base);
  if (error == std::errc::result_out_of_range)
    return fail(start, "this number has more than 64 bits");
  if (error != std::errc()) return fail(start, "expected digits here");
  at_ = static_cast<std::size_t>(end - text_.data());
  for (; at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])); at_++) {
    const char c = text_[at_];
    if (c == 'u' || c == 'U')
      node->is_unsigned = true;
    else if (c == 'l' || c == 'L')
      node->is_long = true;
    else
      return fail(at_, "this is no part of a number");
  }
  if (at_ < text_.size() && in_word(text_[at_])) return fail(at_, "this is no part of a number");
  // The first of C's types that can represent it.
  constexpr std::uint64_t kInt = 0x7fffffff, kUnsigned = 0xffffffff, kLong = 0x7fffffffffffffff;
  if (node->value > kUnsigned || (node->value > kInt && base == 10 && !node->is_unsigned))
    node->is_long = true;
  if (!node->is_long && node->value > kInt) node->is_unsigned = true;
  if (node->value > kLong) node->is_unsigned = true;
  return node;
}

NodePtr Parser::character() {
  const auto start = at_++;
  const char c = at_ < text_.size() ? character_of_text() : '\'';
  if (at_ >= text_.size() || text_[at_++] != '\'')
    return fail(start, "expected one character in single quotes");
  auto node = make({Node::number, start});
  node->value = static_cast<std::uint64_t>(static_cast<std::int64_t>(c));
  return node;
}

}  // namespace coretap::expression
