// The words of argdist's command line, in the syntax of bcc:
//   KIND:[LIBRARY]:FUNCTION([PARAMETERS])[:TYPE[,TYPE...]:VALUE[,VALUE...][:FILTER]][#LABEL]
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/result.hpp"
#include "expression/print.hpp"
#include "expression/syntax.hpp"
#include "general/argdist.h"

namespace coretap {
class Config;
struct Session;
}  // namespace coretap

namespace coretap::distribution {

inline constexpr std::size_t kMostValues = 4;

struct Spec {
  std::string text;   ///< the whole word
  std::string place;  ///< target for program/target.hpp
  std::string label;  ///< empty: none
  std::vector<std::string> parameters;
  std::vector<std::string> names;  ///< of the values, as written
  std::vector<expression::NodePtr> values;
  std::vector<expression::Conversion> conversions;  ///< output formats
  expression::NodePtr filter;                       ///< null: none

  std::vector<expression::Output> outputs = {};  ///< once compiled

  std::string title() const { return label.empty() ? text : label; }
};
Result<std::shared_ptr<Spec>> parse_spec(std::string_view word, const expression::IsType& is_type,
                                         bool histogram);

class Specs {
 public:
  std::vector<std::shared_ptr<Spec>> all;
  std::uint32_t text_bytes = 80;

  const Spec* of(std::uint64_t word) const { return word < all.size() ? all[word].get() : nullptr; }
  /// As an answer of a recording: what rows are made from.
  std::string packed() const;
  /// Takes that. False: it is of other structs, or damaged.
  bool take(std::string_view bytes);
  /// "fd = 3", for each value of a key.
  std::vector<std::string> values(const argdist_key& key) const;
};
/// Stored in the configuration (Config::own).
struct Held {
  std::shared_ptr<Specs> specs = std::make_shared<Specs>();
};

std::vector<std::string> places(const Config& config);
/// For Tool::look_up and Tool::compile.
Result<void> parse_specs(Config& config);
/// While a recording is shown: takes what it has of that.
Result<void> compile_specs(Session& s);

}  // namespace coretap::distribution
