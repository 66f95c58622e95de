// What expressions can name at the places that a hook traces (Hook::by_word), and the instructions
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

/// Of the command line's words: does it trace returns, and ask for $latency or $entry? For
/// Hook::paired.
std::vector<bool> words_that_ask_for_entries(const Config& config);

/// C's types and the kernel's, which are read when first asked for.
expression::IsType names_of_types();

/// Types that the expressions of each word may name: the kernel's, and those of a module where all
/// places are in that one.
class WordTypes {
 public:
  WordTypes(const Targets& targets, Kernel& kernel) : targets_(targets), kernel_(kernel) {}
  const expression::Types& of(std::size_t word);

 private:
  const Targets& targets_;
  Kernel& kernel_;
  std::map<const Btf*, expression::Types> known_;
};

/// The names at the places of a word. `signature`: what the user says of the parameters; nullptr:
/// what the kernel's types say, where all places are one function or system call.
Result<expression::Scope> scope_at(const std::vector<const TargetPoint*>& places,
                                   const expression::Types& types,
                                   const std::vector<expression::Parameter>* signature);

/// The same of a word by its number.
Result<expression::Scope> scope_of_word(const Targets& targets, std::size_t word,
                                        const expression::Types& types,
                                        const std::vector<expression::Parameter>* signature);

/// The instructions of a pad: for each target its own.
class PadCode {
 public:
  explicit PadCode(const Targets& targets) : targets_(targets) {}

  /// For all targets of this word.
  void add(std::size_t word, expression::Code code) { codes_.emplace_back(word, std::move(code)); }
  bool empty() const { return codes_.empty(); }
  /// Of targets without code: `otherwise` in r0. Where no target has any, the pad stays empty.
  Result<void> put(std::vector<bpf_insn>& pad, std::int32_t otherwise) const;

 private:
  const Targets& targets_;
  std::vector<std::pair<std::size_t, expression::Code>> codes_;
};

/// What the words of a command line come to.
struct WordsCode {
  PadCode filters, outputs;
  std::uint64_t uses = 0;  ///< enum expression_use

  explicit WordsCode(const Targets& targets) : filters(targets), outputs(targets) {}

  /// `filter`: null where the word has none. `text`: the whole word.
  Result<void> add_filter(std::size_t word, std::string_view text, const expression::Scope& scope,
                          const expression::Node* filter);
  /// Into the session's pads, and what the program has to know of them.
  Result<void> put(Session& s) const;
};

}  // namespace coretap
