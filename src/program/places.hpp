// What expressions can name at the places that a hook traces (Hook::by_word), and the instructions
// of a whole pad.
#pragma once
#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/result.hpp"
#include "expression/compile.hpp"
#include "program/targets.hpp"

namespace coretap {

class Kernel;

/// Does the text of a word that traces returns ask for $latency or $entry?
bool asks_for_entry(std::string_view word);

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

}  // namespace coretap
