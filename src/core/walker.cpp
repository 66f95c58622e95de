#include "core/walker.hpp"

#include "core/run.hpp"
#include "unwind/table_walker.hpp"

namespace coretap {

namespace {

class PlainWalker : public StackWalker {
 public:
  explicit PlainWalker(bool leaf) : leaf_(leaf) {}
  void configure(Session& s) override { set_variable(s, "walk_leaf", leaf_); }

 private:
  bool leaf_;
};

}  // namespace

std::unique_ptr<StackWalker> make_walker(const Config& config, bool by_tables) {
  if (by_tables && config.unwind == Config::automatic && unwind::kSupported)
    return unwind::make_table_walker();
  return std::make_unique<PlainWalker>(config.unwind == Config::no_walk);
}

std::string_view walk_cut(const stack& walked, const Symbol& outermost) {
  if (outermost.entry || !walked.depth) return {};
  switch (walked.end) {
    case STACK_END_WHOLE:
      return {};
    case STACK_END_DEPTH:
      return "stack depth";
    case STACK_END_NOT_READY:
      return "unwind tables not ready";
    case STACK_END_NO_MAPPING:
      return "no mapping";
    case STACK_END_NO_CFI:
      return "no unwind information";
    case STACK_END_NO_MEMORY:
      return "no memory for unwind tables";
    case STACK_END_OTHER_RULE:
      return "unsupported unwind rule";
    case STACK_END_UNREADABLE:
      return "stack not readable";
    case STACK_END_BACKWARDS:
      return "stack goes backwards";
    case STACK_END_EXITING:
      return "exiting";
    case STACK_END_LEAF:
      return "--unwind off";
    default:
      return "no frame pointers";
  }
}

}  // namespace coretap
