#include "core/walker.hpp"

namespace coretap {

namespace {

/// Saved frame pointers, each leading to the caller's. Most distributions' code does not keep them:
/// there the register holds anything, also 0, and only the outermost frame tells how far it went.
class FramePointers : public StackWalker {
 public:
  std::string_view cut(const stack& walked, const Symbol& outermost) const override {
    if (outermost.entry || !walked.depth) return {};
    return walked.end == STACK_END_DEPTH ? "stack depth" : "no frame pointers";
  }
};

}  // namespace

std::unique_ptr<StackWalker> make_walker(const Config&) {
  return std::make_unique<FramePointers>();
}

}  // namespace coretap
