// The expression syntax: C without assignments, calls and floating point, with names such as $pid
// and comparisons of text. Errors show the position with a caret.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap::expression {

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  enum Kind {
    number,
    literal,      ///< "..." in a comparison
    name,         ///< also with a leading $
    member,       ///< .text of operands[0]; `through`: ->
    element,      ///< operands[0][operands[1]]
    unary,        ///< one of - + ~ ! * &
    binary,       ///< text is the operator
    conditional,  ///< ?:
    cast,         ///< (text) operands[0], with `stars`
    size_of,      ///< of operands[0], or of the type text with `stars`
    call,         ///< text(operands...)
  } kind = number;
  std::size_t at = 0;  ///< offset in the whole text
  std::string text = {};
  std::uint64_t value = 0;
  bool is_unsigned = false;  ///< the number is unsigned
  bool is_long = false;
  bool through = false;
  bool user = false;  ///< marked @user: an address of the process
  int stars = 0;
  std::vector<NodePtr> operands = {};
};

/// An error at a position of the text, which is printed with a caret below it.
Error error_at(std::string_view text, std::size_t at, std::string_view what,
               std::string_view hint = {});

/// Returns true if a type's name can start with this word.
using IsType = std::function<bool(std::string_view word)>;

/// Parses expressions of one text one after another.
class Parser {
 public:
  Parser(std::string_view text, std::size_t at, IsType is_type)
      : text_(text), at_(at), is_type_(std::move(is_type)) {}

  /// Parses one expression, without the text after it.
  Result<NodePtr> expression();
  /// Skips blanks and returns the next character; 0: the end.
  char peek();
  /// Consumes this character if it is next.
  bool take(char c);
  /// Parses a text in double quotes and decodes C's escapes.
  Result<std::string> quoted();
  std::size_t at() const { return at_; }
  Error wrong(std::size_t at, std::string_view what, std::string_view hint = {}) const {
    return error_at(text_, at, what, hint);
  }

 private:
  /// Keeps the first error, and skips the rest of the text.
  NodePtr fail(Error error);
  NodePtr fail(std::size_t at, std::string_view what, std::string_view hint = {});
  NodePtr conditional();
  NodePtr binary(int least);
  NodePtr unary();
  NodePtr postfix();
  NodePtr primary();
  NodePtr number();
  NodePtr character();
  NodePtr size_of(std::size_t start);
  NodePtr call(std::string_view name, std::size_t start);
  bool type_is_next();
  /// True if a type that is unknown so far (such as the program's) is next: "NAME *)", or "NAME)"
  /// and an operand.
  bool other_type_is_next();
  /// Parses "struct file **": the words and the number of stars.
  void type_name(std::string& words, int& stars);
  /// Parses a type in parentheses; false: there is none, only its '(' may have been taken.
  bool take_type(Node& node);
  /// The next character in quotes, C's escapes decoded.
  char character_of_text();
  std::string_view word();
  std::string_view look_at_word();
  /// The binary operator that is next; empty: none.
  std::string_view next_operator();

  std::string_view text_;
  std::size_t at_;
  IsType is_type_;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace coretap::expression
