// Text, folded stacks, JSON and CSV of sums by stack. Pure: names in, text out.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/reports.hpp"
#include "coretap/schema.hpp"
#include "lib/core/shared.h"
#include "stacks/stack_word.hpp"
#include "stacks/stacks.hpp"

namespace coretap {

/// A task in a sum, with the names of its frames, leaf first.
struct StackParty {
  stack_party who = {};
  Frames kernel, user;
  std::string_view cut = {};  ///< why the user stack is truncated; empty: it is complete
  std::uint32_t guessed = 0;  ///< number of its frames that only a frame pointer led to
  std::span<const FramePlace> kernel_places = {}, user_places = {};  ///< empty: unknown
  std::optional<std::size_t> reason = {};  ///< of the wait (wait_reasons()); nothing: not asked for
  std::string group = {};  ///< that its sum belongs to, in place of its name; empty: none

  std::string name() const;
};

/// "task", or what ran instead of one: "idle", "irq", "softirq" (stack_party::state).
std::string_view context_of(std::uint32_t state);
/// "[truncated: no frame pointers]"
std::string cut_mark(std::string_view why);
/// All defects of a user stack in one line; empty: none.
std::string stack_marks(std::string_view cut, std::uint32_t guessed);
/// JSON keys of a user stack; leaf first.
void json_user_stack(JsonLine& line, const Frames& frames, std::string_view cut,
                     std::uint32_t guessed);
/// JSON keys of the task's stacks; with `lines`, also of the frames' source lines.
void json_frames(JsonLine& line, const StackParty& party, bool lines = false);

/// JSON keys of the frames' source lines (--lines).
std::vector<OutputKey> frame_line_keys();

class StackLayout {
 public:
  struct Style {
    bool annotated = false;      ///< frames end with _[k], _[j] or _[i]: annotation_of()
    bool delimited = false;      ///< a word between user and kernel frames
    bool lines = false;          ///< frames have source lines: in text, inlined ones say so
    std::string_view tool = {};  ///< name of the tool
  };
  StackLayout(const StackReport& report, Style style) : report_(report), style_(style) {}

  /// From the outermost frame to the leaf: the task first, then its wakers, each with its own
  /// stack.
  std::vector<StackWord> path(const std::vector<StackParty>& parties) const;
  /// The path in one line, separated by semicolons.
  std::string folded(const std::vector<StackParty>& parties) const { return folded(path(parties)); }
  std::string folded(const std::vector<StackWord>& path) const;
  /// The lines without the sum.
  std::vector<std::string> lines(const std::vector<StackParty>& parties) const;
  /// `event`: that was sampled; empty: none.
  std::string json(const std::vector<StackParty>& parties, const stack_sum& sum,
                   std::string_view event = {}) const;
  std::string csv_keys() const;
  std::string csv(const std::vector<StackParty>& parties, const stack_sum& sum,
                  std::string_view event = {}) const;

  /// The measured value: ns, samples, or bytes.
  std::uint64_t value(const stack_sum& sum) const;
  /// The number of these per unit of the output: us, samples, or bytes.
  std::uint64_t scale() const;
  std::uint64_t shown(std::uint64_t value) const { return value / scale(); }

 private:
  std::string word(const StackWord& frame) const;
  void down(std::vector<StackWord>& path, const StackParty& p, bool waker) const;
  StackWord user_word(const StackParty& p, std::size_t i, bool waker) const;
  StackWord kernel_word(const StackParty& p, std::size_t i, bool waker) const;

  const StackReport& report_;
  Style style_;
};

}  // namespace coretap
