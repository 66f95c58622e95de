// User stacks of short-lived processes: complete, and with names after their exit.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::size_t kChain = 10;  // calls (brief.c)
const std::array<std::string, 2> kNames{"brief_one", "brief_two"};

void require_brief() {
  require_tool("profile");
  if (::access(workload_path(kNames[0]).c_str(), X_OK))
    throw Skip("not built for this machine: " + kNames[0]);
}

struct Seen {
  std::uint64_t whole = 0, in_chain = 0, exiting = 0;
  std::map<std::string, std::uint64_t> cut;  ///< of incomplete stacks, by reason
  std::string others;

  std::uint64_t all() const {
    auto sum = whole;
    for (auto& [reason, count] : cut) sum += count;
    return sum;
  }
  std::string text() const {
    auto words = std::to_string(whole) + " whole, " + std::to_string(exiting) + " exiting";
    for (auto& [reason, count] : cut) words += ", " + std::to_string(count) + " " + reason;
    return words + "\n" + others;
  }
};

/// Stacks of the program with that name: only its own functions, in the right order.
Seen check(const Report& report, const std::string& name) {
  Seen seen;
  for (auto& line : report.body) {
    if (line["comm"].str() != name) continue;
    auto frames = line["user_stack"].strings();
    auto n = line["count"].u64();
    if (frames.empty()) continue;  // during exec it has no stack
    std::string words = std::to_string(n) + ":";
    for (auto& frame : frames) words += " " + frame;
    auto cut = line["user_stack_truncated"];
    if (!cut.is_null() && cut.str() == "exiting") {
      seen.exiting += n;  // its memory is released, so it has no stack
      continue;
    }
    for (auto& frame : frames)
      EXPECT_TRUE(!frame.starts_with("brief_") || frame.starts_with(name + "_")) << words;
    if (!cut.is_null()) {
      seen.cut[cut.str()] += n;
      seen.others += cut.str() + " " + words + "\n";
      continue;
    }
    seen.whole += n;
    auto first = std::ranges::find(frames, name + "_chain");
    if (first == frames.end()) continue;
    auto calls = static_cast<std::size_t>(std::ranges::count(frames, name + "_chain"));
    bool leaf = std::ranges::count(frames, name + "_leaf") == 1;
    EXPECT_LE(calls, kChain) << words;
    EXPECT_EQ(frames.back(), "_start") << words;
    if (!leaf) continue;  // before the leaf is called, or after its return
    EXPECT_EQ(calls, kChain) << words;
    auto main = std::ranges::find(first, frames.end(), "main");
    EXPECT_EQ(main - first, static_cast<std::ptrdiff_t>(kChain)) << words;
    seen.in_chain += n;
  }
  return seen;
}

std::string milliseconds(double usual) {
  return std::to_string(static_cast<std::uint64_t>(usual * std::min(slowness(), 4.0)));
}

/// Mapped files are read in the background, in the first second.
void warm_up() {
  ::usleep(static_cast<useconds_t>(1'000'000 * std::min(slowness(), 4.0)));
  for (auto& name : kNames) run({workload_path(name), milliseconds(300)});
}

void expect_nearly_all_whole(const Seen& seen) {
  EXPECT_GT(seen.in_chain, 0u) << seen.text();
  EXPECT_GE(seen.whole * 100, seen.all() * 95) << seen.text();
}

std::string loop(int times, const std::string& body) {
  return "i=0; while [ $i -lt " + std::to_string(times) + " ]; do " + body + "; i=$((i+1)); done";
}

// Once their files have been read, for any process.
TOOL_TEST(UnwindYoung, ShortProgramsAreWhole) {
  require_brief();
  Tracer tracer("profile", "-F 499 --json");
  warm_up();
  std::string both;
  for (auto& name : kNames) both += workload_path(name) + " 3; ";
  run({"/bin/sh", "-c", loop(150, both + "/bin/true")});
  auto report = tracer.stop();
  for (auto& name : kNames) expect_nearly_all_whole(check(report, name));
}

TOOL_TEST(UnwindYoung, CommandsAreWholeFromTheirFirstStack) {
  require_brief();
  for (auto& [tool, options, way] : std::vector<std::tuple<std::string, Strings, std::string>>{
           {"profile", {"-F", "999"}, "--work"}, {"offcputime", {}, "--sleep"}}) {
    auto both = result_of(tool + options +
                          Strings{"--json", "--", workload_path(kNames[0]), milliseconds(50), way});
    ASSERT_EQ(both.status, 0) << both.err;
    auto seen = check(parse_report(both.out, both.err), kNames[0]);
    EXPECT_GT(seen.in_chain, 0u) << seen.text();
    EXPECT_EQ(seen.cut["file not read yet"], 0u) << tool << ": " << seen.text();
  }
}

/// With these names, after these commands; new files have to be read first.
void expect_mostly_whole(const std::string& script, const std::vector<std::string>& names) {
  Tracer tracer("profile", "-F 999 --json");
  warm_up();
  run({"/bin/sh", "-c", script});
  auto report = tracer.stop();
  for (auto& name : names) {
    auto seen = check(report, name);
    EXPECT_GT(seen.whole * 2, seen.all()) << seen.text();
    EXPECT_GT(seen.in_chain * 2, seen.whole) << seen.text();
  }
}

// Files that are deleted and recreated, as in builds: equal in size, in tables, often in inode.
TOOL_TEST(UnwindYoung, FilesThatTakeEachOthersPlace) {
  require_brief();
  TemporaryDirectory directory;
  auto program = directory.path() + "/program";
  std::string body = ":";
  for (auto& name : kNames)
    body += "; cp " + workload_path(name) + " " + program + "; " + program + " " +
            milliseconds(150) + "; rm " + program;
  expect_mostly_whole(loop(6, body), {kNames[0], kNames[1]});
}

// In a mount namespace that is gone when names are read, on an overlay, whose files have other
// device and inode numbers than stat() returns.
TOOL_TEST(UnwindYoung, InOverlaysThatAreGone) {
  require_brief();
  TemporaryDirectory directory;
  std::string script = "mount -t tmpfs none " + directory.path() + " && cd " + directory.path() +
                       " && mkdir lower upper work all && cp " + workload_path(kNames[1]) +
                       " lower/program && mount -t overlay -o "
                       "lowerdir=lower,upperdir=upper,workdir=work none all || exit 9; ";
  auto there = run({"/usr/bin/env", "unshare", "-m", "/bin/sh", "-c", script + "all/program 1"});
  if (there.status) throw Skip("no overlay file systems here: " + there.err);
  script += loop(4, "all/program " + milliseconds(100));
  expect_mostly_whole("exec unshare -m /bin/sh -c '" + script + "'", {kNames[1]});
}

// Many processes at once that fork, exec and exit, beside one that maps code continuously.
TOOL_TEST(UnwindYoung, Storms) {
  require_brief();
  Workload mapper("unwind", {"--ms", milliseconds(5000), "--mappings", "500", "--end", "remap"},
                  kLinger);
  Tracer tracer("profile", "-F 999 --json");
  mapper.release();
  warm_up();
  std::string all;
  for (auto& name : kNames) all += "(" + loop(100, workload_path(name) + " 1 & wait") + ") & ";
  run({"/bin/sh", "-c", all + "wait"});
  mapper.truth();
  auto report = tracer.stop();
  for (auto& name : kNames) {
    auto seen = check(report, name);
    EXPECT_GT(seen.in_chain, 0u) << seen.text();
    EXPECT_GE(seen.whole * 100, seen.all() * 80) << seen.text();
  }
}

// The program's own frames are right; musl's have no tables and are marked, except where names show
// the start of the program or thread.
TOOL_TEST(UnwindYoung, MuslsPrograms) {
  for (std::string kind : {"unwind_musl_dynamic", "unwind_musl_static"}) {
    SCOPED_TRACE(kind);
    if (::access(workload_path(kind).c_str(), X_OK)) throw Skip("not built: there is no musl-gcc");
    std::map<std::string, std::uint64_t> callers;
    const Strings command{workload_path(kind), milliseconds(200), "--callers"};
    for (auto& line : report_of("profile -F 199 --json --" + command).body) {
      auto frames = line["user_stack"].strings();
      auto cut = line["user_stack_truncated"].is_null() ? "" : line["user_stack_truncated"].str();
      // From a leaf in musl only a guess continues.
      if (cut == "file not read yet" || frames.empty() || frames[0] != "musl_leaf") continue;
      const auto text = line.text();
      EXPECT_EQ(line["user_stack_guessed"].u64(), 0u) << text;
      ASSERT_GT(frames.size(), kChain + 1) << text;
      EXPECT_EQ(std::count(frames.begin() + 1, frames.begin() + kChain + 1, "musl_chain"), kChain)
          << text;
      EXPECT_TRUE(cut.empty() || cut == "no unwind information") << text;
      EXPECT_LE(frames.size() - kChain, 4u) << text;
      callers[frames[kChain + 1]] += line["count"].u64();
    }
    for (auto name : {"main", "musl_handler", "musl_thread"}) EXPECT_GT(callers[name], 0u) << name;
  }
}

}  // namespace
}  // namespace coretap::tooltest
