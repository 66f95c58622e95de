#include "expression/syntax.hpp"

#include <array>
#include <cctype>
#include <limits>
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

Result<std::string> Parser::quoted() {
  const auto start = at_;
  if (!take('"')) return wrong(at_, "expected a text in double quotes");
  std::string all;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      c = text_[at_++];
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == '0' ? '\0' : c;
    }
    all += c;
  }
  if (at_ >= text_.size()) return wrong(start, "this quote is not closed");
  at_++;
  return all;
}

Result<NodePtr> Parser::expression() {
  if (peek() == '\0') return wrong(at_, "expected an expression here, found the end");
  return conditional();
}

Result<NodePtr> Parser::conditional() {
  if (++depth_ > kMostNested) return wrong(at_, "too many parentheses within parentheses");
  auto condition = binary(1);
  if (!condition) return condition;
  const auto start = at_;
  if (!take('?')) {
    depth_--;
    return condition;
  }
  auto node = std::make_unique<Node>(Node{Node::conditional, start});
  node->operands.push_back(std::move(*condition));
  auto yes = conditional();
  if (!yes) return yes;
  node->operands.push_back(std::move(*yes));
  if (!take(':')) return wrong(at_, "expected ':' and what the value is otherwise");
  auto no = conditional();
  if (!no) return no;
  node->operands.push_back(std::move(*no));
  depth_--;
  return Result<NodePtr>(std::move(node));
}

std::string_view Parser::next_operator() {
  peek();
  auto rest = text_.substr(at_);
  for (auto& o : kOperators)
    if (rest.starts_with(o.word)) return o.word;
  return {};
}

Result<NodePtr> Parser::binary(int least) {
  auto left = unary();
  while (left) {
    auto word = next_operator();
    int rank = 0;
    for (auto& o : kOperators)
      if (o.word == word) rank = o.rank;
    if (!rank || rank < least) break;
    const auto start = at_;
    at_ += word.size();
    if (peek() == '=' && word != "==" && word != "!=")
      return wrong(start, "nothing can be assigned", "== compares");
    auto right = binary(rank + 1);
    if (!right) return right;
    auto node = std::make_unique<Node>(Node{Node::binary, start, std::string(word)});
    node->operands.push_back(std::move(*left));
    node->operands.push_back(std::move(*right));
    left = Result<NodePtr>(std::move(node));
  }
  if (left && least == 1 && peek() == '=')
    return wrong(at_, "nothing can be assigned", "== compares");
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

Result<NodePtr> Parser::unary() {
  const char c = peek();
  const auto start = at_;
  if (++depth_ > kMostNested) return wrong(at_, "this expression is nested too deeply");
  if (c == '-' || c == '+' || c == '~' || c == '!' || c == '*' || c == '&') {
    at_++;
    auto operand = unary();
    if (!operand) return operand;
    auto node = std::make_unique<Node>(Node{Node::unary, start, std::string(1, c)});
    node->operands.push_back(std::move(*operand));
    depth_--;
    return Result<NodePtr>(std::move(node));
  }
  if (c == '(') {
    at_++;
    if (type_is_next() || other_type_is_next()) {
      auto node = std::make_unique<Node>(Node{Node::cast, start});
      type_name(node->text, node->stars);
      if (!take(')')) return wrong(at_, "expected ')' behind the type");
      auto operand = unary();
      if (!operand) return operand;
      node->operands.push_back(std::move(*operand));
      depth_--;
      return Result<NodePtr>(std::move(node));
    }
    at_ = start;
  }
  if (look_at_word() == "sizeof") {
    word();
    auto node = size_of(start);
    depth_--;
    return node;
  }
  auto node = postfix();
  depth_--;
  return node;
}

Result<NodePtr> Parser::size_of(std::size_t start) {
  auto node = std::make_unique<Node>(Node{Node::size_of, start});
  const auto open = at_;
  if (take('(') && (type_is_next() || other_type_is_next())) {
    type_name(node->text, node->stars);
    if (!take(')')) return wrong(at_, "expected ')' behind the type");
    return Result<NodePtr>(std::move(node));
  }
  at_ = open;
  auto operand = unary();
  if (!operand) return operand;
  node->operands.push_back(std::move(*operand));
  return Result<NodePtr>(std::move(node));
}

Result<NodePtr> Parser::postfix() {
  auto first = primary();
  if (!first) return first;
  NodePtr node = std::move(*first);
  for (;;) {
    const char c = peek();
    const auto start = at_;
    const bool through = c == '-' && at_ + 1 < text_.size() && text_[at_ + 1] == '>';
    if (through || c == '.') {
      at_ += through ? 2 : 1;
      auto name = look_at_word();
      if (name.empty() || name.front() == '$')
        return wrong(at_, "expected the name of a member here");
      auto member = std::make_unique<Node>(Node{Node::member, at_, std::string(word())});
      member->through = through;
      member->operands.push_back(std::move(node));
      node = std::move(member);
    } else if (c == '[') {
      at_++;
      auto index = conditional();
      if (!index) return index;
      if (!take(']')) return wrong(at_, "expected ']' here");
      auto element = std::make_unique<Node>(Node{Node::element, start});
      element->operands.push_back(std::move(node));
      element->operands.push_back(std::move(*index));
      node = std::move(element);
    } else if (c == '@') {
      at_++;
      if (word() != "user")
        return wrong(start, "expected @user", "it marks an address of the process");
      node->user = true;
    } else {
      break;
    }
  }
  return Result<NodePtr>(std::move(node));
}  // it is part of the result

Result<NodePtr> Parser::primary() {
  const char c = peek();
  const auto start = at_;
  if (take('(')) {
    auto node = conditional();
    if (!node) return node;
    if (!take(')')) return wrong(at_, peek() ? "expected ')' here" : "a ')' is missing");
    return node;
  }
  if (std::isdigit(static_cast<unsigned char>(c))) return number();
  if (c == '\'') return character();
  if (c == '"') {
    auto text = quoted();
    if (!text) return text.error();
    if (text->size() > kMostTyped)
      return wrong(start, fmt::format("a text is compared by {} bytes at most", kMostTyped));
    return Result<NodePtr>(std::make_unique<Node>(Node{Node::literal, start, std::move(*text)}));
  }
  auto name = word();
  if (name.empty() || name == "$")
    return wrong(start, c ? "expected a name, a number or '(' here" : "an operand is missing here");
  if (peek() == '(' && name.front() != '$') return call(std::string(name), start);
  if (peek() == '(' && name == "$entry") return call("$entry", start);
  return Result<NodePtr>(std::make_unique<Node>(Node{Node::name, start, std::string(name)}));
}

Result<NodePtr> Parser::call(std::string name, std::size_t start) {
  take('(');
  auto node = std::make_unique<Node>(Node{Node::call, start, std::move(name)});
  if (!take(')')) {
    do {
      auto operand = conditional();
      if (!operand) return operand;
      node->operands.push_back(std::move(*operand));
    } while (take(','));
    if (!take(')')) return wrong(at_, "expected ')' or ',' here");
  }
  return Result<NodePtr>(std::move(node));
}

Result<NodePtr> Parser::number() {
  const auto start = at_;
  auto node = std::make_unique<Node>(Node{Node::number, start});
  unsigned base = 10;
  if (text_[at_] == '0' && at_ + 1 < text_.size()) {
    if (text_[at_ + 1] == 'x' || text_[at_ + 1] == 'X') {
      base = 16;
      at_ += 2;
    } else if (text_[at_ + 1] == 'b' || text_[at_ + 1] == 'B') {
      base = 2;
      at_ += 2;
    } else {
      base = 8;
    }
  }
  const auto digits = at_;
  for (; at_ < text_.size(); at_++) {
    const char c = text_[at_];
    unsigned digit = std::isdigit(static_cast<unsigned char>(c)) ? static_cast<unsigned>(c - '0')
                     : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                     : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + 10
                                            : base;
    if (digit >= base) break;
    if (node->value > (std::numeric_limits<std::uint64_t>::max() - digit) / base)
      return wrong(start, "this number has more than 64 bits");
    node->value = node->value * base + digit;
  }
  if (at_ == digits) return wrong(start, "expected digits here");
  for (; at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])); at_++) {
    const char c = text_[at_];
    if (c == 'u' || c == 'U')
      node->is_unsigned = true;
    else if (c == 'l' || c == 'L')
      node->is_long = true;
    else
      return wrong(at_, "this is no part of a number");
  }
  if (at_ < text_.size() && in_word(text_[at_])) return wrong(at_, "this is no part of a number");
  // The first of C's types that can represent it.
  constexpr std::uint64_t kInt = 0x7fffffff, kUnsigned = 0xffffffff, kLong = 0x7fffffffffffffff;
  if (node->value > kUnsigned || (node->value > kInt && base == 10 && !node->is_unsigned))
    node->is_long = true;
  if (!node->is_long && node->value > kInt) node->is_unsigned = true;
  if (node->value > kLong) node->is_unsigned = true;
  return Result<NodePtr>(std::move(node));
}

Result<NodePtr> Parser::character() {
  const auto start = at_++;
  auto node = std::make_unique<Node>(Node{Node::number, start});
  char c = at_ < text_.size() ? text_[at_++] : '\'';
  if (c == '\\' && at_ < text_.size()) {
    c = text_[at_++];
    c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == '0' ? '\0' : c;
  }
  if (at_ >= text_.size() || text_[at_++] != '\'')
    return wrong(start, "expected one character in single quotes");
  node->value = static_cast<std::uint64_t>(static_cast<std::int64_t>(c));
  return Result<NodePtr>(std::move(node));
}

}  // namespace coretap::expression
