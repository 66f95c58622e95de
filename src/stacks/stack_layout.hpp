// How sums by stack are written: as text, folded, as JSON and CSV. Pure: names in, text out.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/reports.hpp"
#include "lib/shared.h"
#include "stacks/stack_word.hpp"
#include "stacks/stacks.hpp"

namespace coretap {

/// A task in a sum, with the names of its frames, leaf first.
struct StackParty {
  stack_party who = {};
  Frames kernel, user;
  std::string_view cut = {};  ///< why the user stack ends too early; empty: it does not
  std::uint32_t guessed = 0;  ///< frames of it that only a frame pointer led to
  std::span<const FramePlace> kernel_places = {}, user_places = {};  ///< empty: not known

  std::string name() const;
};

/// "[truncated: no frame pointers]"
std::string cut_mark(std::string_view why);
/// All that lessens a user stack, in one line of text; empty: nothing does.
std::string stack_marks(std::string_view cut, std::uint32_t guessed);
/// Keys of a user stack; leaf first.
void json_user_stack(JsonLine& line, const Frames& frames, std::string_view cut,
                     std::uint32_t guessed);
/// Keys of its stacks.
void json_frames(JsonLine& line, const StackParty& party);

class StackLayout {
 public:
  struct Style {
    bool annotated = false;      ///< kernel frames end with _[k]
    bool delimited = false;      ///< a word between user and kernel frames
    std::string_view tool = {};  ///< that prints it
  };
  StackLayout(const StackReport& report, Style style) : report_(report), style_(style) {}

  /// From the outermost to the innermost: the task first, those that woke it behind it, each by its
  /// own way.
  std::vector<StackWord> path(const std::vector<StackParty>& parties) const;
  /// The path in one line, its words apart by semicolons.
  std::string folded(const std::vector<StackParty>& parties) const;
  /// Without the sum.
  std::vector<std::string> lines(const std::vector<StackParty>& parties) const;
  std::string json(const std::vector<StackParty>& parties, const stack_sum& sum) const;
  std::string csv_keys() const;
  std::string csv(const std::vector<StackParty>& parties, const stack_sum& sum) const;

  /// What the tool measures: ns, samples, or bytes.
  std::uint64_t value(const stack_sum& sum) const;
  /// How many of these make one of the unit in the output: us, samples, or bytes.
  std::uint64_t scale() const;
  std::uint64_t shown(std::uint64_t value) const { return value / scale(); }

 private:
  std::string word(const std::string& frame) const;
  void down(std::vector<StackWord>& path, const StackParty& p, bool waker) const;
  StackWord user_word(const StackParty& p, std::size_t i, bool waker) const;
  StackWord kernel_word(const StackParty& p, std::size_t i, bool waker) const;

  const StackReport& report_;
  Style style_;
};

}  // namespace coretap
