#include "unwind/walker.hpp"

#include <algorithm>

namespace coretap {

const std::array<CutReason, STACK_ENDS>& cut_reasons() {
  static constexpr std::array<CutReason, STACK_ENDS> kReasons = {{
      {STACK_END_OPEN, "no frame pointers",
       "walked by frame pointers alone, and one of them led nowhere: --unwind fp, or a program of "
       "32 bits"},
      {STACK_END_WHOLE, {}, {}},
      {STACK_END_DEPTH, "stack depth", "more frames than --perf-max-stack-depth"},
      {STACK_END_NOT_READY, "file not read yet",
       "the walk passed a program or a library whose unwind information is being read, as nothing "
       "has passed it before; from there on frame pointers led as far as they could"},
      {STACK_END_NO_MAPPING, "no mapping", "an address that is in no code of the process"},
      {STACK_END_NO_CFI, "no unwind information",
       "code of which no file tells how to leave it (compiled at run time, assembler), and that "
       "keeps no frame pointer"},
      {STACK_END_NO_MEMORY, "no memory for unwind tables", "a larger --unwind-memory helps"},
      {STACK_END_OTHER_RULE, "unsupported unwind rule",
       "code of a rare kind, mostly assembler, whose description is too involved"},
      {STACK_END_UNREADABLE, "stack not readable",
       "the page of the stack is not in memory, or what should be a frame is none"},
      {STACK_END_BACKWARDS, "stack goes backwards",
       "a caller's frame that lies below the one it called: a stack that the program has changed "
       "by itself, or damaged"},
      {STACK_END_EXITING, "exiting", "the task had given up its memory already"},
      {STACK_END_LEAF, "--unwind off", "no walk was wanted"},
  }};
  return kReasons;
}

std::string_view walk_cut(const stack& walked, const Symbol& outermost) {
  if (!walked.depth || walked.end >= STACK_ENDS) return {};
  // A walk by frame pointers may have skipped callers even if it reached the entry.
  if (outermost.entry && walked.end != STACK_END_NOT_READY) return {};
  return cut_reasons()[walked.end].words;
}

}  // namespace coretap
