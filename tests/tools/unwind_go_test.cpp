// User stacks of Go programs, against what Go's own runtime says of its calls.
#include <algorithm>
#include <set>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// A Go program, and its stacks: outermost function first.
class GoCalls {
 public:
  GoCalls(const std::string& kind, const std::string& end, std::size_t truths) {
    const auto path = workload_path("unwind_go_" + kind);
    if (::access(path.c_str(), X_OK)) throw Skip("not built for this machine: " + path);
    process_.emplace(Spawn{.argv = {path, end, "100"}});
    if (!process_->await([&](auto& out, auto&) {
          return std::ranges::count(out, '\n') >= static_cast<std::ptrdiff_t>(truths);
        }))
      throw std::runtime_error("the program has ended: " + process_->err());
    for (auto& line : process_->out_lines()) truths_.push_back(shown(Json::parse(line).strings()));
  }
  std::string pid() const { return std::to_string(process_->pid()); }

  /// Go's runtime leaves out some functions that it has put between others.
  static Strings shown(Strings innermost_first) {
    static const std::set<std::string> kLeftOut = {"runtime.deferreturn", "runtime.deferCallSave",
                                                   "runtime.runOpenDeferFrame",
                                                   "runtime.reflectcall", "runtime.panicmem"};
    Strings frames;
    for (auto& frame : innermost_first) {
      if (frame.ends_with(".abi0")) frame.resize(frame.size() - 5);
      if (!kLeftOut.contains(frame) && !frame.starts_with("runtime.call"))
        frames.insert(frames.begin(), frame);
    }
    return frames;
  }

  /// All of the stack is in a truth, but for functions that run at any of its places; or it is one
  /// of Go's scheduler.
  bool right(const Strings& frames) const {
    static const std::set<std::string> kBegins = {"runtime.goexit", "runtime.mcall",
                                                  "runtime.mstart"};
    std::size_t most = 0;
    for (auto& truth : truths_)
      most = std::max<std::size_t>(
          most, static_cast<std::size_t>(
                    std::mismatch(truth.begin(), truth.end(), frames.begin(), frames.end()).second -
                    frames.begin()));
    // Its assembler functions, and the vdso's, have no package.
    const auto is_runtime = [](const std::string& f) {
      return f.starts_with("runtime.") || f.starts_with("runtime/") || f == "<signal handler>" ||
             f == "[vdso]" || f.find('.') == std::string::npos;
    };
    const auto is_leaf = [&](const std::string& f) {
      return is_runtime(f) || f.starts_with("main.leaf") || f.starts_with("time.") ||
             f.starts_with("syscall.") || f.starts_with("sync") || f.starts_with("reflect.") ||
             f.starts_with("sort.") || f.starts_with("internal/") || f == "main.fill" ||
             f == "main.quietEnd" || f == "main.rawSleep" || f == "main.(*node).visit";
    };
    const auto rest = frames.begin() + static_cast<std::ptrdiff_t>(most);
    if (frames.empty() || !kBegins.contains(frames[0])) return false;
    return std::all_of(rest, frames.end(), is_leaf) &&
           (most > 1 || std::all_of(rest, frames.end(), is_runtime));
  }

 private:
  std::optional<Process> process_;
  std::vector<Strings> truths_;
};

/// At least 98 % of the samples are whole, right and not guessed; the others are marked. The
/// runtime's own work on the system stack, such as returning memory, is marked, and does not count.
void expect_go(const std::string& kind, const std::string& end, std::size_t truths,
               const std::string& tool) {
  SCOPED_TRACE(tool + " " + kind + " " + end);
  require_tool(tool);
  const GoCalls go(kind, end, truths);
  Strings options = {"-p", go.pid(), "-U", "--json"};
  if (tool == "profile") options.insert(options.end(), {"-F", "997"});
  Tracer tracer(tool, options);
  std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(1000 * slowness())));
  std::uint64_t right = 0, marked = 0, young = 0, refused = 0;
  std::string example, without;
  const auto report = tracer.stop();
  for (auto& line : report.body) {
    if (line["user_stack"].is_null()) continue;
    if (line["user_stack"].strings().empty()) {  // the kernel had no memory for it
      refused += line["count"].u64();
      without = line.text();
      continue;
    }
    const auto frames = GoCalls::shown(line["user_stack"].strings());
    const auto cut = line["user_stack_truncated"];
    const auto count = line["count"].u64();
    // On arm64 frame pointers lead through functions that change the stack, such as nanotime1.
    EXPECT_LE(line["user_stack_guessed"].u64(), kArm64 ? 1u : 0u)
        << ::testing::PrintToString(frames);
    if (!cut.is_null()) {
      if (std::ranges::count(frames, "runtime.systemstack")) continue;
      (cut.str() == "file not read yet" ? young : marked) += count;
      example = cut.str() + ": " + ::testing::PrintToString(frames);
      continue;
    }
    EXPECT_TRUE(go.right(frames)) << ::testing::PrintToString(frames) << line.text();
    right += count;
  }
  EXPECT_GE(right, 20u);
  EXPECT_LE(refused, report.lost("stacks_failed")) << without << report.ledger.text();
  EXPECT_LE(marked, right / 50) << example;
  EXPECT_LE(young, 2 + right / 50);
}

TOOL_TEST(Unwind, CallsOfGo) {
  for (auto* kind : {"plain", "stripped", "pie"}) expect_go(kind, "spin", 2, "profile");
  expect_go("plain", "sleep", 4, "offcputime");
}

// Goes down and up: samples in the first and last instructions of functions.
TOOL_TEST(Unwind, CallsAndReturnsOfGo) { expect_go("plain", "churn", 2, "profile"); }

}  // namespace
}  // namespace coretap::tooltest
