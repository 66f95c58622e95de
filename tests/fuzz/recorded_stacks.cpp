#include <numeric>

#include "fuzz.hpp"
#include "stacks/recorded_stacks.hpp"
#include "stacks/stack_comparison.hpp"
#include "text/gzip.hpp"

using namespace coretap;

/// Profiles and folded stacks of other runs: files of any user. As text, and packed.
FUZZ(recorded_stacks, bytes) {
  for (const bool packed : {false, true}) {
    auto read = recorded_stacks(packed ? gzip(bytes, Compression::fast) : std::string(bytes),
                                "a file", {"time", "nanoseconds", 1000}, "walltime");
    if (!read) {
      MUST(!read.error().hint.empty() && !read.error().why.empty());
      MUST(fuzz::is_plain(read.error().what) && fuzz::is_plain(read.error().why));
      continue;
    }
    MUST(!read->stacks.empty() && read->names.size() == read->kernel.size());
    for (auto& name : read->names) MUST(fuzz::is_plain(name) && name.find(';') == name.npos);
    StackComparison comparison({1, 1, 1}, 3);
    std::uint64_t total = 0;
    for (auto& stack : read->stacks) {
      MUST(stack.value && !stack.frames.empty());
      MUST(stack.frames.size() <= RecordedStacks::kMostDepth);
      total += stack.value;
      StackComparison::Stack is;
      for (auto frame : stack.frames) {
        MUST(frame < read->names.size());
        is.path.push_back(read->names[frame]);
      }
      is.state = is.path.back();
      comparison.add_old(is, static_cast<double>(stack.value), 0);
    }
    MUST(total <= RecordedStacks::kMostTime);
    for (auto& change : comparison.changes()) MUST(change.change() < 0);
    const auto svg = comparison.svg({"title", "", {}});
    MUST(svg.ends_with("</svg>\n"));
  }
}
