// Frames of Python in user stacks, against what the programs themselves know of their calls.

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kInterpreter[] = "/usr/bin/python3";

// Calls of all kinds, 30 deep; prints its own traceback, then computes in one line.
constexpr char kPythonCalls[] = R"py(
import sys, time, functools, json
def leaf(t):
    frames, f = [], sys._getframe()
    while f:
        code = f.f_code
        name = code.co_qualname if hasattr(code, 'co_qualname') else code.co_name
        frames.append(f'{name} ({code.co_filename.split("/")[-1]}:{f.f_lineno})')
        f = f.f_back
    print(json.dumps(frames), flush=True)
    end = time.monotonic() + t; x = 1
    while time.monotonic() < end: x = (x * 3 + 1) % 1000003
class A:
    def __init__(self, n, t): self.x = go(n - 1, t)
    def __call__(self, n, t): return go(n - 1, t)
    def __eq__(self, o): return bool(go(self.n - 1, self.t))
    @property
    def p(self): return go(self.n - 1, self.t)
class B(A):
    def __init__(self, n, t): self.n, self.t = n, t
def g(n, t):
    yield go(n - 1, t)
def g2(n, t):
    yield from g(n, t)
def é(n, t): return go(n - 1, t)
def deco(f):
    @functools.wraps(f)
    def w(*a, **k): return f(*a, **k)
    return w
@deco
def decorated(n, t): return go(n - 1, t)
def go(n, t):
    if n == 0: return leaf(t)
    k = n % 11
    if k == 0: return A(n, t).x
    if k == 1: return B(n, t)(n, t)
    if k == 2: return B(n, t) == 3
    if k == 3: return B(n, t).p
    if k == 4: return sum(g(n, t))
    if k == 5: return sum(g2(n, t))
    if k == 6: return max([1], key=lambda v: go(n - 1, t))
    if k == 7: return list(map(functools.partial(go, n - 1), [t]))[0]
    if k == 8: return [go(n - 1, t) for i in range(1)][0]
    if k == 9: return é(n, t)
    if k == 10: return decorated(n, t)
go(30, 600)
)py";

// Threads that wait without the interpreter's lock.
constexpr char kPythonWaits[] = R"py(
import threading, time, sys
never = threading.Event()
def naps():
    while True: time.sleep(0.002)
def waits():
    while True: never.wait(0.002)
def run(f): f()
for i in range(4):
    for f in (naps, waits):
        threading.Thread(target=run, args=(f,), daemon=True).start()
print('ready', flush=True)
time.sleep(600)
)py";

// Code that is compiled, run and freed; name, file and line have the same number.
constexpr char kPythonCompiled[] = R"py(
import sys
print('ready', flush=True)
n = 0
while True:
    n += 1
    line = n % 900 + 1
    scope = {}
    exec(compile('\n' * (line - 1) + f'def f{n}():\n x = 0\n while x < 3000: x += 1', f'gen{n}.py', 'exec'), scope)
    scope[f'f{n}']()
)py";

/// A script under the machine's own python3.
class Script : public TemporaryDirectory {
 public:
  explicit Script(std::string_view text) {
    if (::access(kInterpreter, X_OK)) throw Skip("no python3 here");
#ifndef __x86_64__
    throw Skip("frames of interpreters: x86-64 only");
#endif
    std::ofstream(path() + "/script.py") << text;
    process_.emplace(Spawn{.argv = {kInterpreter, path() + "/script.py"}});
    if (!process_->await([](auto& out, auto&) { return out.find('\n') != std::string::npos; }))
      throw std::runtime_error("the script has ended: " + process_->err());
  }
  Process& process() { return *process_; }
  std::string pid() { return std::to_string(process_->pid()); }

 private:
  std::optional<Process> process_;
};

struct Folded {
  Strings frames;  // without the task
  std::uint64_t count;
};

std::vector<Folded> folded(const std::string& text) {
  std::vector<Folded> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto space = line.rfind(' ');
    if (space == std::string::npos) continue;
    std::istringstream words(line.substr(0, space));
    Folded stack{{}, std::stoull(line.substr(space + 1))};
    for (std::string word; std::getline(words, word, ';');) stack.frames.push_back(word);
    stack.frames.erase(stack.frames.begin());
    all.push_back(std::move(stack));
  }
  return all;
}

std::string profiled(const std::string& pid, Strings more = {}) {
  Strings arguments = {"-p", pid, "-F", "199", "-U", "--folded"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Tracer tracer("profile", arguments);
  std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(500 * slowness())));
  return tracer.stop_text();
}

/// Frames of Python only.
Strings python_of(const Strings& frames) {
  static const std::regex kFrame(R"(.* \(.*\.py:\d+\))");
  Strings out;
  for (auto& f : frames)
    if (std::regex_match(f, kFrame)) out.push_back(f);
  return out;
}

TEST(Interpreted, FramesAreThoseOfItsTraceback) {
  Script script(kPythonCalls);
  auto truth = Json::parse(script.process().out_lines().at(0)).strings();
  std::reverse(truth.begin(), truth.end());
  truth.pop_back();  // the leaf's line has changed
  std::uint64_t right = 0, other = 0;
  std::string example;
  for (auto& stack : folded(profiled(script.pid()))) {
    auto frames = python_of(stack.frames);
    const bool leaf = !frames.empty() && frames.back() == "leaf (script.py:12)";
    if (leaf) frames.pop_back();
    if (leaf && frames == truth) {
      right += stack.count;
    } else {
      other += stack.count;
      example = ::testing::PrintToString(stack.frames);
    }
  }
  EXPECT_GE(right, 20u) << example;
  // Its first stacks may come before the file has been read.
  EXPECT_LE(other, 3 + right / 50) << example << "\nbut: " << ::testing::PrintToString(truth);
}

TEST(Interpreted, ThreadsOffTheCpu) {
  Script script(kPythonWaits);
  Tracer tracer("offcputime", {"-p", script.pid(), "-U", "--folded"});
  std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(700 * slowness())));
  std::uint64_t naps = 0, waits = 0, other = 0;
  std::string example;
  for (auto& stack : folded(tracer.stop_text())) {
    auto frames = python_of(stack.frames);
    auto has = [&](const std::string& f) {
      return std::find(frames.begin(), frames.end(), f) != frames.end();
    };
    if (has("run (script.py:8)") && has("naps (script.py:5)"))
      naps += stack.count;
    else if (has("run (script.py:8)") && has("waits (script.py:7)"))
      waits += stack.count;
    else if (!has("<module> (script.py:13)") && stack.frames != Strings{"[still waiting]"})
      other += stack.count, example = ::testing::PrintToString(stack.frames);
  }
  EXPECT_GT(naps, 100'000u);
  EXPECT_GT(waits, 100'000u);
  EXPECT_LE(other, (naps + waits) / 50) << example;
}

TEST(Interpreted, FreedCodeIsNotTakenForNewCode) {
  Script script(kPythonCompiled);
  static const std::regex kMade(R"(f(\d+) \(gen(\d+)\.py:(\d+)\))");
  std::uint64_t seen = 0;
  for (auto& stack : folded(profiled(script.pid())))
    for (auto& frame : stack.frames) {
      std::smatch m;
      if (!std::regex_match(frame, m, kMade)) continue;
      seen++;
      EXPECT_EQ(m[1].str(), m[2].str()) << frame;
      const long line = std::stol(m[3].str()), first = std::stol(m[1].str()) % 900 + 1;
      EXPECT_TRUE(line >= first && line <= first + 2) << frame;
    }
  EXPECT_GE(seen, 10u);
}

TEST(Interpreted, NamesOfProgramsThatHaveEnded) {
  Script warm(kPythonWaits);  // its file is read
  Tracer tracer("profile", {"-F", "499", "-U", "--folded"});
  const std::string program =
      "import time\ndef short():\n e = time.monotonic() + .1\n while time.monotonic() < e: pass\nshort()";
  for (int i = 0; i < 12; i++) Process({.argv = {kInterpreter, "-c", program}}).wait();
  std::uint64_t named = 0, unnamed = 0;
  for (auto& stack : folded(tracer.stop_text())) {
    auto has = [&](std::string_view f) {
      return std::find(stack.frames.begin(), stack.frames.end(), f) != stack.frames.end();
    };
    if (has("short (<string>:4)"))
      named += stack.count;
    else if (has("[python]"))
      unnamed += stack.count;
  }
  EXPECT_GE(named, 60u);
  EXPECT_LE(unnamed, named / 20);
}

TEST(Interpreted, OneKindOfFramesOnly) {
  Script script(kPythonCalls);
  for (auto& stack : folded(profiled(script.pid(), {"--native-only"})))
    EXPECT_TRUE(python_of(stack.frames).empty()) << ::testing::PrintToString(stack.frames);
  std::uint64_t only = 0;
  for (auto& stack : folded(profiled(script.pid(), {"--runtime-only"})))
    if (!python_of(stack.frames).empty()) {
      EXPECT_EQ(python_of(stack.frames), stack.frames);
      only++;
    }
  EXPECT_GE(only, 1u);
}

/// A program with the symbols of CPython, and wrong data.
TEST(Interpreted, ProgramsThatOnlyPretend) {
#ifndef __x86_64__
  throw Skip("frames of interpreters: x86-64 only");
#endif
  for (std::string kind : {"frames", "threads", "wild", "escapes"}) {
    SCOPED_TRACE(kind);
    Process liar({.argv = {workload_path("pretend"), kind}});
    ASSERT_TRUE(liar.await([](auto& out, auto&) { return out.find('\n') != std::string::npos; }));
    const auto text = profiled(std::to_string(liar.pid()));
    std::uint64_t marked = 0, native = 0;
    for (auto& stack : folded(text)) {
      EXPECT_LE(stack.frames.size(), 512u);
      for (auto& frame : stack.frames) {
        native += frame == "main";
        marked += frame.starts_with("[python") || frame.starts_with("bad\\");
      }
    }
    EXPECT_EQ(text.find('\033'), std::string::npos);
    EXPECT_GE(native, 1u) << text;
    EXPECT_GE(marked, 1u) << text;
  }
}

}  // namespace
}  // namespace coretap::tooltest
