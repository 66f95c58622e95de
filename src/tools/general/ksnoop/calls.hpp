// The words of ksnoop's command line, FUNCTION or FUNCTION(ARGUMENT [COMPARISON], ...): compiles
// them to code for the kernel program, and turns its records into values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "expression/syntax.hpp"
#include "expression/typed.hpp"
#include "general/ksnoop.h"

namespace coretap {
class Config;
struct Session;
}  // namespace coretap

namespace coretap::calls {

inline constexpr std::uint64_t kMostBytes = 1024;

/// A value of a call.
struct Shown {
  std::string name;  ///< as written
  const expression::Node* value = nullptr;
  bool at_return = false;
  expression::Output output = {};
  std::shared_ptr<const expression::Layout> layout = {};
};

struct Call {
  std::string text;         ///< the whole word
  std::string spec;         ///< target for program/target.hpp, without arguments
  bool is_event = false;    ///< a tracepoint: it has no return
  bool has_return = false;  ///< its return is traced, too
  bool listed = false;      ///< values are listed; else shows all
  std::vector<Shown> shown = {};
  expression::NodePtr filters[2] = {};         ///< at the entry, at the return; null: none
  std::vector<expression::NodePtr> held = {};  ///< owns values that are not in a filter
};

class Calls {
 public:
  /// "count = 100". `one_line`: each value takes a single line.
  std::vector<std::string> values(const ksnoop_event& e, bool one_line) const;

  /// As an answer of a recording: what values are made from.
  std::string packed() const;
  /// Takes that. False: it is of other structs, or damaged.
  bool take(std::string_view bytes);

  std::vector<std::unique_ptr<Call>> all = {};
  std::vector<const Call*> of_word = {};  ///< for each word of the hook
  std::vector<std::size_t> words = {};    ///< the word of each target, by id
};

/// Stored in the configuration (Config::own); the plan, and with it the code, may be made again.
struct Held {
  std::shared_ptr<Calls> calls = std::make_shared<Calls>();
};

/// The targets of all words: for a call with a return, its entry and its return.
std::vector<std::string> specs(const Config& config);
/// For Tool::look_up, Tool::compile and Tool::list.
Result<void> parse_calls(Config& config);
/// While a recording is shown: takes what it has of that.
Result<void> compile_calls(Session& s);
std::string declarations(const Config& config);

}  // namespace coretap::calls
