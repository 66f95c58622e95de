// Expressions that the parser accepts, and the positions of errors in others.
#include "expression/syntax.hpp"
#include "expect.hpp"

namespace coretap::expression {
namespace {

bool is_type(std::string_view word) { return word == "struct" || word == "int" || word == "u64"; }

/// The whole text as nested parentheses, or the error with its caret.
std::string shape(const Node& n) {
  auto all = [&](std::string inner) {
    for (auto& o : n.operands) inner += " " + shape(*o);
    return "(" + inner + ")";
  };
  switch (n.kind) {
    case Node::number:
      return std::to_string(n.value) + (n.is_unsigned ? "u" : "") + (n.is_long ? "l" : "");
    case Node::literal:
      return '"' + n.text + '"';
    case Node::name:
      return n.text + (n.user ? "@" : "");
    case Node::member:
      return all((n.through ? "->" : ".") + n.text);
    case Node::element:
      return all("[]");
    case Node::conditional:
      return all("?");
    case Node::cast:
      return all("cast:" + n.text + std::string(static_cast<std::size_t>(n.stars), '*'));
    case Node::size_of:
      return all("sizeof" + (n.text.empty() ? "" : ":" + n.text));
    default:
      return all(n.text);
  }
}

std::string read(const std::string& text) {
  Parser parser(text, 0, is_type);
  auto node = parser.expression();
  if (!node) return node.error().what + "|" + node.error().why;
  if (parser.peek()) return "rest at " + std::to_string(parser.at());
  return shape(**node);
}

TEST(ExpressionSyntax, PrecedenceIsThatOfC) {
  expect_each(
      read,
      {"1 + 2 * 3 => (+ 1 (* 2 3))", "1 - 2 - 3 => (- (- 1 2) 3)", "a & 1 == 0 => (& a (== 1 0))",
       "a || b && c | d ^ e & f => (|| a (&& b (| c (^ d (& e f)))))",
       "1 << 2 < 3 => (< (<< 1 2) 3)", "a ? b : c ? d : e => (? a b (? c d e))",
       "-a.b[1]->c => (- (->c ([] (.b a) 1)))", "*p->q => (* (->q p))", "!a == b => (== (! a) b)"});
}

TEST(ExpressionSyntax, TypesInParenthesesAreCasts) {
  expect_each(
      read, {"(int)a + 1 => (+ (cast:int a) 1)",
             "((struct sock *)arg1)->x => (->x (cast:struct sock* arg1))",
             // Types of the program, which are not known yet.
             "((request_t *)arg1)->x => (->x (cast:request_t* arg1))",
             "*(const word **)arg1 => (* (cast:const word** arg1))",
             "(word)arg1 + 1 => (+ (cast:word arg1) 1)", "(word)(a + b) => (cast:word (+ a b))",
             "(word)$pid => (cast:word $pid)", "sizeof(request_t *) => (sizeof:request_t)",
             // Not casts.
             "(a) * b => (* a b)", "(a) - 1 => (- a 1)", "(a) & b => (& a b)", "(a)->b => (->b a)",
             "(a * b) => (* a b)", "sizeof(a) => (sizeof a)", "(a) \"text\" => rest at 4",
             "($pid)1 => rest at 6", "(a) + 1 => (+ a 1)", "sizeof(struct x) => (sizeof:struct x)",
             "sizeof(a) * 2 => (* (sizeof a) 2)", "arg1@user => arg1@"});
}

TEST(ExpressionSyntax, NumbersHaveTheTypesOfC) {
  expect_each(read, {"2147483647 => 2147483647", "2147483648 => 2147483648l",
                     "0x80000000 => 2147483648u", "0xffffffffffffffff => 18446744073709551615ul",
                     "017 => 15", "0b101 => 5", "5UL => 5ul", "'a' => 97", "'\\n' => 10"});
}

TEST(ExpressionSyntax, ACaretStandsAtTheFault) {
  expect_each(read, {"1 + => an operand is missing here|\n  1 +\n     ^",
                     "(1 + 2 => a ')' is missing|\n  (1 + 2\n        ^",
                     "a = 1 => nothing can be assigned|\n  a = 1\n    ^",
                     "a->1 => expected the name of a member here|\n  a->1\n     ^",
                     "12ab => this is no part of a number|\n  12ab\n    ^",
                     "99999999999999999999 => this number has more than 64 bits|\n"
                     "  99999999999999999999\n  ^",
                     "\"abc => this quote is not closed|\n  \"abc\n  ^",
                     "f(1 => expected ')' or ',' here|\n  f(1\n     ^",
                     " => expected an expression here, found the end|\n  \n  ^"});
  EXPECT_EQ(read("1 2"), "rest at 2");
  // Bytes that are not letters take a column each.
  EXPECT_EQ(read("\x1b[1m"), "expected a name, a number or '(' here|\n  ?[1m\n  ^");
}

TEST(ExpressionSyntax, DepthIsBounded) {
  EXPECT_TRUE(says(read(std::string(10000, '(')), "too"));
  for (char c : {'-', '!'}) EXPECT_TRUE(says(read(std::string(10000, c) + "1"), "too deeply"));
}

}  // namespace
}  // namespace coretap::expression
