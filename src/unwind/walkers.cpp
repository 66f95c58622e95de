#include "unwind/walkers.hpp"

#include <algorithm>

#include "program/variables.hpp"
#include "unwind/table_walker.hpp"

namespace coretap {

namespace {

class PlainWalker : public StackWalker {
 public:
  /// `fallback`: unwind tables were requested, but are not supported.
  PlainWalker(bool leaf, bool fallback) : leaf_(leaf), fallback_(fallback) {}
  void configure(Session& s) override {
    set_variable(s, "walk_leaf", leaf_);
    if (fallback_ && std::find(s.limits.begin(), s.limits.end(), kLimit) == s.limits.end())
      s.limits.emplace_back(kLimit);
  }

 private:
  static constexpr std::string_view kLimit =
      "user stacks are walked by frame pointers alone: unwind tables are for x86-64 only";
  bool leaf_, fallback_;
};

}  // namespace

std::unique_ptr<StackWalker> make_walker(Config::Stacks::Unwind how, bool by_tables) {
  const bool wanted = by_tables && how == Config::Stacks::automatic;
  if (wanted && unwind::kSupported) return unwind::make_table_walker();
  return std::make_unique<PlainWalker>(how == Config::Stacks::no_walk, wanted);
}

}  // namespace coretap
