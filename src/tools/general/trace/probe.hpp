// A word of trace's command line, in the syntax of bcc:
//   SPEC[(PARAMETERS)] [(FILTER)] ["FORMAT"[, VALUE...]]
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "expression/print.hpp"
#include "expression/syntax.hpp"

namespace coretap::tracing {

struct Probe {
  std::string text;  ///< the whole word
  std::string spec;  ///< target for program/target.hpp
  /// "int fd", "struct file *f"; none: there are no parentheses after the name
  std::optional<std::vector<std::string>> parameters;
  expression::NodePtr filter;  ///< null: none
  std::optional<expression::MessageFormat> format;
  std::vector<expression::NodePtr> values;

  /// Set by the compilation.
  std::vector<expression::Output> outputs = {};
};

/// The part with the target.
std::string_view spec_of(std::string_view word);
Result<std::shared_ptr<Probe>> parse_probe(std::string_view word,
                                           const expression::IsType& is_type);

}  // namespace coretap::tracing
