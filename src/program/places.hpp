// The names that expressions can use at the places of a hook (Hook::by_word), and the instructions
// of a whole pad.
#pragma once
#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/result.hpp"
#include "expression/compile.hpp"
#include "program/targets.hpp"

namespace coretap {

class Btf;
class Config;
class Kernel;
struct Session;

/// C's types and the kernel's, which are read at first use.
expression::IsType names_of_types();

/// Types that the expressions of each word may use: the kernel's, and those of a module if all
/// places are in that module.
class WordTypes {
 public:
  WordTypes(const Targets& targets, Kernel& kernel) : targets_(targets), kernel_(kernel) {}
  const expression::Types& of(std::size_t word);

 private:
  const Targets& targets_;
  Kernel& kernel_;
  std::map<const Btf*, expression::Types> known_;
};

/// The names at the places of a word. `signature`: the parameters as the user has declared them;
/// nullptr: use the kernel's types, if all places are in one function or system call.
Result<expression::Scope> scope_at(const std::vector<const TargetPoint*>& places,
                                   const expression::Types& types,
                                   const std::vector<expression::Parameter>* signature);

/// The same for a word by its number.
Result<expression::Scope> scope_of_word(const Targets& targets, std::size_t word,
                                        const expression::Types& types,
                                        const std::vector<expression::Parameter>* signature);

/// The instructions of a pad: separate code for each target.
class PadCode {
 public:
  explicit PadCode(const Targets& targets) : targets_(targets) {}

  /// For all targets of this word.
  void add(std::size_t word, expression::Code code) { codes_.emplace_back(word, std::move(code)); }
  bool empty() const { return codes_.empty(); }
  /// Targets without code return `otherwise` in r0. If no target has code, the pad stays empty.
  Result<void> put(std::vector<bpf_insn>& pad, std::int32_t otherwise) const;

 private:
  const Targets& targets_;
  std::vector<std::pair<std::size_t, expression::Code>> codes_;
};

/// The code of all words of a command line.
struct WordsCode {
  PadCode filters, outputs;
  std::uint64_t uses = 0;  ///< enum expression_use

  explicit WordsCode(const Targets& targets) : filters(targets), outputs(targets) {}

  /// `filter`: null if the word has none. `text`: the whole word.
  Result<void> add_filter(std::size_t word, std::string_view text, const expression::Scope& scope,
                          const expression::Node* filter);
  /// Stores the code in the session's pads, and sets the program's constants that go with it.
  Result<void> put(Session& s) const;
};

}  // namespace coretap
