// The words of ksnoop's command line, FUNCTION or FUNCTION(ARGUMENT [COMPARISON], ...): from text
// to code for the kernel program, and from its records to values.
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
  std::string name;  ///< as it is written
  const expression::Node* value = nullptr;
  bool at_return = false;
  expression::Output output = {};
  std::shared_ptr<const expression::Layout> layout = {};
};

struct Call {
  std::string text;         ///< the whole word
  std::string spec;         ///< what program/target.hpp reads, without arguments
  bool is_event = false;    ///< a tracepoint: it has no return
  bool has_return = false;  ///< it is waited for
  bool listed = false;      ///< its values are; else all are shown
  std::vector<Shown> shown = {};
  expression::NodePtr filters[2] = {};         ///< at the entry, at the return; null: none
  std::vector<expression::NodePtr> held = {};  ///< values that no filter holds
};

class Calls {
 public:
  /// "count = 100". `one_line`: a value never has several.
  std::vector<std::string> values(const ksnoop_event& e, bool one_line) const;

  std::vector<std::unique_ptr<Call>> all = {};
  std::vector<const Call*> of_word = {};  ///< each word of the hook
  std::vector<std::size_t> words = {};    ///< of the targets, by their ids
};

/// In the configuration (Config::own); the plan may be made again, and the code with it.
struct Held {
  std::shared_ptr<Calls> calls = std::make_shared<Calls>();
  bool info = false;  ///< declarations only
};

/// What of the words says what to trace: of a call with a return both ends.
std::vector<std::string> specs(const Config& config);
/// For Tool::look_up, Tool::compile and Tool::list.
Result<void> parse_calls(Config& config);
Result<void> compile_calls(Session& s);
std::string declarations(const Config& config);

}  // namespace coretap::calls
