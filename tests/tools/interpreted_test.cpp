// Frames of Python, JavaScript, Java, PHP and Ruby in user stacks, against what the programs
// themselves know of their calls.

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kInterpreter[] = "/usr/bin/python3", kNode[] = "/usr/bin/node",
               kJava[] = "/usr/bin/java", kPhp[] = "/usr/bin/php", kRuby[] = "/usr/bin/ruby";

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

// As above; each function is in one line, so that a frame's line is its function's.
constexpr char kJavaScriptCalls[] = R"js(
Error.stackTraceLimit = 500;
function leaf(t) { Error.prepareStackTrace = (e, sites) => sites; const sites = new Error().stack; Error.prepareStackTrace = undefined; console.log(JSON.stringify(sites.filter((s) => s.getFileName()).map((s) => `${s.getFunctionName() || '<anonymous>'} (${s.getFileName().split('/').pop()}:${s.getLineNumber()})`))); return busy(t); }
function busy(t) { const end = Date.now() + t * 1000; let x = 1; do { for (let i = 0; i < 3e6; i++) x = (x * 3 + i) % 1000003; } while (Date.now() < end); return x; }
class A { constructor(n, t) { this.x = go(n - 1, t); } }
class B extends A { constructor(n, t) { super(n, t); } }
class C { method(n, t) { return go(n - 1, t); } static still(n, t) { return go(n - 1, t); } #hidden(n, t) { return go(n - 1, t); } open(n, t) { return this.#hidden(n, t); } }
class D { constructor(n, t) { this.n = n; this.t = t; } [Symbol.toPrimitive]() { return go(this.n - 1, this.t); } }
function* generator(n, t) { yield go(n - 1, t); }
function* delegates(n, t) { yield* generator(n, t); }
async function waits(n, t) { const x = go(n - 1, t); await x; return x; }
const arrow = (n, t) => go(n - 1, t);
const closure = (n) => function inner(t) { return go(n - 1, t); };
const object = { short(n, t) { return go(n - 1, t); }, long: function (n, t) { return go(n - 1, t); }, arrow: (n, t) => go(n - 1, t) };
function é日(n, t) { return go(n - 1, t); }
function many(n, t, ...rest) { return rest.length ? go(n - 1, t) : many(n, t, 1, 2, 3); }
function fewer(n, t, a, b, c, d) { return go(n - 1, t); }
function caught(n, t) { try { throw n; } catch (e) { return go(e - 1, t); } finally { globalThis.z = n; } }
function variables(n, t) { let a = 1, b = 2, c = () => a + b + c.length + n; return go(n - 1, t) + a - 1 + 0 * c(); }
function go(n, t) { if (n <= 0) return leaf(t); switch (n % 22) { case 0: return new A(n, t).x; case 1: return new B(n, t).x; case 2: return new C().method(n, t); case 3: return C.still(n, t); case 4: return new C().open(n, t); case 5: return +new D(n, t); case 6: return generator(n, t).next().value; case 7: return [...delegates(n, t)][0]; case 8: waits(n, t); return 1; case 9: return arrow(n, t); case 10: return closure(n)(t); case 11: return object.short(n, t); case 12: return object.long(n, t); case 13: return object.arrow(n, t); case 14: return é日(n, t); case 15: return many(n, t); case 16: return fewer(n, t); case 17: return caught(n, t); case 18: return [1].map(() => go(n - 1, t))[0]; case 19: return [2, 1].sort((a, b) => (n > 0 ? (go(n - 1, t), n = 0) : 0, a - b))[0]; case 20: return go.bind(null, n - 1)(t); default: return variables(n, t); } }
go(50, 600);
)js";

// Functions that are compiled, run and freed; name, file and line have the same number. Their
// source is one piece of text, as that of files is.
constexpr char kJavaScriptCompiled[] = R"js(
const vm = require('vm');
console.log('ready');
for (let n = 1; ; n++) {
  const line = n % 900 + 1;
  vm.runInThisContext(Buffer.from('\n'.repeat(line - 1) + `(function f${n}() { let x = 0; for (let i = 0; i < 2e6; i++) x += i % 7; return x; })`).toString(), { filename: `gen${n}.js` })();
}
)js";

// Threads with the same functions at other lines.
constexpr char kJavaScriptWorkers[] = R"js(
const { Worker, isMainThread, workerData: n } = require('worker_threads');
if (isMainThread) {
  for (let n = 1; n < 4; n++) new Worker(__filename, { workerData: n });
  setTimeout(() => console.log('ready'), 500);
} else {
  require('vm').runInThisContext(Buffer.from('\n'.repeat(n) + `(function inThread${n}() { let x = 0; for (;;) for (let i = 0; i < 3e6; i++) x = (x * 3 + i) % 1000003; })`).toString(), { filename: `thread${n}.js` })();
}
)js";

// Calls of all kinds, compiled if it may be; prints its own stack, then computes.
constexpr char kJavaCalls[] = R"java(
public class Calls {
  interface Step { int go(int n); }
  static class A implements Step {
    public int go(int n) { return down(n) + 1; }
  }
  static class B extends A {
    @Override
    public int go(int n) { return super.go(n) * 3; }
  }
  static class Locked implements Step {
    public synchronized int go(int n) { return down(n) - 1; }
  }
  static class Many implements Step {
    public int go(int n) { return many(n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10L, 11.0); }
    static int many(int n, int a, int b, int c, int d, int e, int f, int g, int h, int i, long j, double k) {
      int r = down(n);
      return r + a + b + c + d + e + f + g + h + i + (int) j + (int) k;
    }
  }
  static class Named implements Step {
    public int go(int n) { return été(n); }
    int été(int n) { return down(n); }
  }
  static Step[] steps = {new A(), new B(), n -> down(n), new Locked(), new Many(), Calls::down, new Named()};
  static boolean holds;
  static int down(int n) {
    return n == 0 ? leaf() : steps[n % steps.length].go(n - 1);
  }
  static int leaf() {
    if (holds) { print(); return busy(); }
    return 1;
  }
  static void print() {
    StringBuilder text = new StringBuilder();
    for (StackTraceElement e : Thread.currentThread().getStackTrace())
      if ("Calls.java".equals(e.getFileName()))
        text.append(text.length() == 0 ? "[" : ", ").append('"').append(e.getClassName()).append('.').append(e.getMethodName())
            .append(" (Calls.java:").append(e.getLineNumber()).append(")\"");
    new java.io.PrintStream(System.out, true, java.nio.charset.StandardCharsets.UTF_8).println(text + "]");
  }
  static int busy() {
    int x = 1;
    long end = System.nanoTime() + 600_000_000_000L;
    while (System.nanoTime() < end)
      for (int i = 0; i < 100_000; i++) x = x * 3 + i;
    return x;
  }
  public static void main(String[] arguments) throws Exception {
    int x = 0;
    for (int i = 0; i < Integer.parseInt(arguments[0]); i++) x += down(20);
    Thread.sleep(x == 0 ? 1 : 500);
    for (int i = 0; i < Integer.parseInt(arguments[0]); i++) x += down(20);
    holds = true;
    System.exit(down(20));
  }
}
)java";

// As above; frames of functions written in C have no line.
constexpr char kPhpCalls[] = R"php(<?php
namespace App;
function leaf(float $t): int {
  $frames = []; $line = __LINE__; $file = __FILE__;
  foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS) as $f) {
    $name = (isset($f['class']) ? $f['class'] . '::' : '') . $f['function'];
    $frames[] = $name . ($line ? ' (' . basename($file) . ":$line)" : '');
    $line = $f['line'] ?? 0; $file = $f['file'] ?? '';
  }
  $frames[] = '<main> (' . basename($file) . ":$line)";
  echo json_encode($frames, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES), "\n";
  return busy($t);
}
function busy(float $t): int {
  $end = microtime(true) + $t; $x = 1;
  do { for ($i = 0; $i < 100000; $i++) $x = ($x * 3 + $i) % 1000003; } while (microtime(true) < $end);
  return $x;
}
trait Shared {
  function shared(int $n, float $t): int { return go($n - 1, $t); }
}
class A {
  use Shared;
  public int $x = 0;
  function __construct(int $n, float $t) { if ($n) $this->x = go($n - 1, $t); }
  function method(int $n, float $t): int { return go($n - 1, $t); }
  static function still(int $n, float $t): int { return go($n - 1, $t); }
  function __invoke(int $n, float $t): int { return go($n - 1, $t); }
  function __get(string $name): int { return go((int)$name - 1, 600.0); }
  function __call(string $name, array $a): int { return go($a[0] - 1, $a[1]); }
  function later(int $n, float $t): \Closure { return function () use ($n, $t) { return go($n - 1, $t); }; }
}
function generator(int $n, float $t): \Generator { yield go($n - 1, $t); }
function été(int $n, float $t): int { return go($n - 1, $t); }
function caught(int $n, float $t): int {
  try {
    throw new \Exception("$n");
  } catch (\Exception $e) {
    return go((int)$e->getMessage() - 1, $t);
  }
}
function go(int $n, float $t): int {
  if ($n <= 0) return leaf($t);
  switch ($n % 16) {
    case 0: return (new A($n, $t))->x;
    case 1: return (new A(0, $t))->method($n, $t);
    case 2: return A::still($n, $t);
    case 3: return (new A(0, $t))($n, $t);
    case 4: return (new A(0, $t))->{$n};
    case 5: return (new A(0, $t))->unknown($n, $t);
    case 6: return (new A(0, $t))->later($n, $t)();
    case 7: foreach (generator($n, $t) as $x) return $x;
    case 8: return generator($n, $t)->current();
    case 9: return été($n, $t);
    case 10: return array_map(fn($m) => go($m - 1, $t), [$n])[0];
    case 11: $a = [2, 1]; usort($a, function ($b, $c) use ($n, $t) { return go($n - 1, $t); }); return $a[0];
    case 12: return call_user_func('App\\go', $n - 1, $t);
    case 13: return (new \ReflectionMethod('App\\A', 'method'))->invoke(new A(0, $t), $n, $t);
    case 14: return (new A(0, $t))->shared($n, $t);
    default: return caught($n, $t);
  }
}
go((int)$argv[1], 600.0);
)php";

// As above. Its own traces have the caller's line for methods written in C: these come without one.
constexpr char kRubyCalls[] = R"ruby(def leaf(t)
  frames = caller_locations(0).map { |l| "#{l.label} (#{File.basename(l.path)}:#{l.lineno})" }
  puts '[' + frames.map(&:dump).join(',') + ']'
  STDOUT.flush
  busy(t)
end
def busy(t)
  finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + t
  x = 1
  loop do
    i = 0
    while i < 10000
      x = (x * 3 + i) % 1000003
      i += 1
    end
    break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
  end
  x
end
module Shared
  def shared(n, t) = go(n - 1, t)
end
class A
  include Shared
  attr_reader :x
  def initialize(n, t); @x = go(n - 1, t) if n > 0; end
  def method_(n, t); go(n - 1, t); end
  def self.still(n, t); go(n - 1, t); end
  def +(n); go(n - 1, 600.0); end
  def [](n); go(n - 1, 600.0); end
  def each; yield 1; end
  def method_missing(name, *a) name == :unknown ? go(a[0] - 1, a[1]) : super end
  def respond_to_missing?(*) = true
  def <=>(o) = 0
  define_method(:made) { |n, t| go(n - 1, t) }
  def été(n, t); go(n - 1, t); end
  def blk(n, t, &b); b.call(n, t); end
  def self.const_missing(name) = go(name.to_s[1..].to_i - 1, 600.0)
end
def caught(n, t)
  begin
    raise "#{n}"
  rescue => e
    return go(e.message.to_i - 1, t)
  end
end
def ensured(n, t)
  begin
    x = 1
  ensure
    return go(n - 1, t)
  end
end
def go(n, t)
  return leaf(t) if n <= 0
  case n % 24
  when 0 then A.new(n, t).x
  when 1 then A.new(0, t).method_(n, t)
  when 2 then A.still(n, t)
  when 3 then A.new(0, t) + n
  when 4 then A.new(0, t)[n]
  when 5 then A.new(0, t).unknown(n, t)
  when 6 then lambda { |m| go(m - 1, t) }.call(n)
  when 7 then proc { |m| go(m - 1, t) }.(n)
  when 8 then [n].each { |m| return go(m - 1, t) }
  when 9 then [n].map { |m| go(m - 1, t) }[0]
  when 10 then 1.times { return go(n - 1, t) }
  when 11 then [2, 1].sort { |a, b| return go(n - 1, t) }
  when 12 then send(:go, n - 1, t)
  when 13 then A.new(0, t).method(:method_).call(n, t)
  when 14 then A.new(0, t).shared(n, t)
  when 15 then caught(n, t)
  when 16 then A.new(0, t).made(n, t)
  when 17 then A.new(0, t).été(n, t)
  when 18 then eval("go(n - 1, t)")
  when 19 then A.new(0, t).each { |_| return go(n - 1, t) }
  when 20 then { n => 1 }.each_pair { |k, _| return go(k - 1, t) }
  when 21 then Enumerator.new { |y| y << go(n - 1, t) }.each { |v| return v }
  when 22 then A.new(0, t).blk(n, t) { |a, b| go(a - 1, b) }
  else ensured(n, t)
  end
end
go(ARGV[0].to_i, 600.0)
)ruby";

/// A script under the machine's own python3, node, java, php or ruby.
class Script : public TemporaryDirectory {
 public:
  explicit Script(std::string_view text, const char* interpreter = kInterpreter,
                  const std::string& name = "script.py", Strings flags = {},
                  const Strings& arguments = {}) {
    if (::access(interpreter, X_OK)) throw Skip(std::string("no ") + interpreter + " here");
#ifndef __x86_64__
    throw Skip("frames of interpreters: x86-64 only");
#endif
    std::ofstream(path() + "/" + name) << text;
    flags.insert(flags.begin(), interpreter);
    flags.push_back(path() + "/" + name);
    flags.insert(flags.end(), arguments.begin(), arguments.end());
    process_.emplace(Spawn{.argv = flags});
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

/// Frames of Python, or of files with another ending, only.
Strings interpreted_of(const Strings& frames, const std::string& ending) {
  const std::regex kFrame(R"(.* \(.*\.)" + ending + R"(:\d+\))");
  Strings out;
  for (auto& f : frames)
    if (std::regex_match(f, kFrame)) out.push_back(f);
  return out;
}

Strings python_of(const Strings& frames) { return interpreted_of(frames, "py"); }

/// At most `few` profiled stacks, and 2 % of the others, are not `truth`. `chosen`: the frames of a
/// stack that must be; nothing: the stack does not count.
void expect_frames(const std::string& profile, const Strings& truth, std::uint64_t few,
                   const std::function<std::optional<Strings>(const Strings&)>& chosen) {
  std::uint64_t right = 0, other = 0;
  std::string example;
  for (auto& stack : folded(profile)) {
    const auto frames = chosen(stack.frames);
    if (!frames) continue;
    if (*frames == truth) {
      right += stack.count;
    } else {
      other += stack.count;
      example = ::testing::PrintToString(stack.frames);
    }
  }
  EXPECT_GE(right, 20u) << example;
  EXPECT_LE(other, few + right / 50) << example << "\nbut: " << ::testing::PrintToString(truth);
}

TEST(Interpreted, FramesAreThoseOfItsTraceback) {
  Script script(kPythonCalls);
  auto truth = Json::parse(script.process().out_lines().at(0)).strings();
  std::reverse(truth.begin(), truth.end());
  truth.back() = "leaf (script.py:12)";  // its line has changed
  // Its first stacks may come before the file has been read.
  expect_frames(profiled(script.pid()), truth, 3, [](auto& frames) { return python_of(frames); });
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

class JavaScript : public Script {
 public:
  explicit JavaScript(std::string_view text, Strings flags = {})
      : Script(text, kNode, "script.js", std::move(flags)) {}
};

/// By V8's interpreter alone, its first compiler alone, and all of them.
TEST(Interpreted, JavaScriptFramesAreThoseOfItsError) {
  for (const Strings& flags :
       {Strings{}, Strings{"--jitless"}, Strings{"--no-opt", "--always-sparkplug"}}) {
    SCOPED_TRACE(::testing::PrintToString(flags));
    JavaScript script(kJavaScriptCalls, flags);
    auto truth = Json::parse(script.process().out_lines().at(0)).strings();
    std::reverse(truth.begin(), truth.end());
    std::erase_if(truth, [](auto& f) { return f.find("(script.js:") == std::string::npos; });
    truth.front() = "<anonymous> (script.js:1)";
    for (auto& frame : truth)  // a name that is computed
      if (frame.starts_with('[')) frame = "<anonymous>" + frame.substr(frame.find("] ") + 1);
    truth.push_back("busy (script.js:4)");
    expect_frames(profiled(script.pid()), truth, 3, [](auto& frames) {
      auto found = interpreted_of(frames, "js");
      std::erase_if(found, [](auto& f) { return f.find("(script.js:") == std::string::npos; });
      return found;
    });
  }
}

TEST(Interpreted, FreedJavaScriptIsNotTakenForNew) {
  JavaScript script(kJavaScriptCompiled);
  static const std::regex kMade(R"(f(\d+) \(gen(\d+)\.js:(\d+)\))");
  std::uint64_t seen = 0;
  for (auto& stack : folded(profiled(script.pid())))
    for (auto& frame : stack.frames) {
      std::smatch m;
      if (!std::regex_match(frame, m, kMade)) continue;
      seen++;
      EXPECT_EQ(m[1].str(), m[2].str()) << frame;
      EXPECT_EQ(std::stol(m[3].str()), std::stol(m[1].str()) % 900 + 1) << frame;
    }
  EXPECT_GE(seen, 10u);
}

/// Each thread has separate objects, with equal ids.
TEST(Interpreted, ThreadsOfJavaScript) {
  JavaScript script(kJavaScriptWorkers);
  static const std::regex kThread(R"(inThread(\d+) \(thread(\d+)\.js:(\d+)\))");
  std::set<std::string> seen;
  for (auto& stack : folded(profiled(script.pid())))
    for (auto& frame : stack.frames) {
      std::smatch m;
      if (!std::regex_match(frame, m, kThread)) continue;
      seen.insert(m[1].str());
      EXPECT_EQ(m[1].str(), m[2].str()) << frame;
      EXPECT_EQ(std::stol(m[3].str()), std::stol(m[1].str()) + 1) << frame;
    }
  EXPECT_EQ(seen.size(), 3u);
}

/// By HotSpot's interpreter alone, its first compiler, and all of them; with and without methods
/// that they inline.
TEST(Interpreted, JavaFramesAreThoseOfItsStackTrace) {
  if (!std::filesystem::exists(std::filesystem::canonical(kJava).parent_path() / "javac"))
    GTEST_SKIP() << "no compiler beside " << kJava;
  struct Case {
    Strings flags;
    const char* calls;
  };
  for (const Case& tried :
       {Case{{"-Xint"}, "1"}, Case{{"-XX:TieredStopAtLevel=1", "-XX:-Inline"}, "3000"},
        Case{{"-XX:-Inline"}, "30000"}, Case{{"-XX:TieredStopAtLevel=1"}, "3000"},
        Case{{}, "30000"}}) {
    SCOPED_TRACE(::testing::PrintToString(tried.flags));
    Script script(kJavaCalls, kJava, "Calls.java", tried.flags, {tried.calls});
    auto truth = Json::parse(script.process().out_lines().at(0)).strings();
    std::reverse(truth.begin(), truth.end());
    truth.pop_back();  // print()
    truth.push_back("Calls.busy");
    expect_frames(profiled(script.pid()), truth, 0, [](auto& frames) -> std::optional<Strings> {
      Strings found;
      for (auto& frame : frames)
        // Its own traces leave out classes that are made for lambda expressions.
        if (frame.starts_with("Calls") && frame.find("$$Lambda") == std::string::npos)
          found.push_back(frame);
      if (found.empty()) return {};  // threads of the virtual machine
      // Its line is known at some of its instructions only.
      if (found.back().starts_with("Calls.busy")) found.back() = "Calls.busy";
      return found;
    });
  }
}

TEST(Interpreted, PhpFramesAreThoseOfItsBacktrace) {
  Script script(kPhpCalls, kPhp, "calls.php", {}, {"48"});
  auto truth = Json::parse(script.process().out_lines().at(0)).strings();
  std::reverse(truth.begin(), truth.end());
  truth.back() = "App\\leaf (calls.php:12)";  // its line has changed
  truth.emplace_back("App\\busy (calls.php:16)");
  std::set<std::string> internal;
  for (auto& frame : truth)
    if (!frame.ends_with(")")) internal.insert(frame);
  expect_frames(profiled(script.pid()), truth, 0, [&](auto& frames) -> std::optional<Strings> {
    Strings found;
    for (auto& frame : frames)
      if (frame.find("(calls.php:") != std::string::npos || internal.contains(frame))
        found.push_back(frame);
    if (found.empty()) return {};  // before the file has been read
    return found;
  });
}

TEST(Interpreted, RubyFramesAreThoseOfItsBacktrace) {
  Script script(kRubyCalls, kRuby, "calls.rb", {}, {"47"});
  auto truth = Json::parse(script.process().out_lines().at(0)).strings();
  std::reverse(truth.begin(), truth.end());
  truth.back() = "leaf (calls.rb:5)";  // its line has changed
  truth.insert(truth.end(), {"busy (calls.rb:10)", "loop", "block in busy"});
  const auto name_of = [](const std::string& frame) { return frame.substr(0, frame.find(" (")); };
  std::set<std::string> names;
  for (auto& frame : truth) names.insert(name_of(frame));
  expect_frames(profiled(script.pid()), truth, 0, [&](auto& frames) -> std::optional<Strings> {
    Strings found;
    auto at = std::ranges::find_if(
        frames, [](auto& frame) { return frame.starts_with("<main> (calls.rb:"); });
    if (at == frames.end()) return {};  // before the file has been read, or another thread
    for (; at != frames.end(); ++at) {
      // Methods in C, and those of the interpreter's own (<internal:kernel>), have no line of the
      // script; Ruby's trace has the caller's.
      const bool own = at->find("(<internal:") != at->npos;
      if (!own && !at->ends_with(')') && !names.contains(*at)) continue;  // native
      const auto i = found.size();
      const bool by_name = own || !at->ends_with(')') || i + 1 == truth.size();
      found.push_back(by_name && i < truth.size() && name_of(*at) == name_of(truth[i]) ? truth[i]
                                                                                       : *at);
    }
    return found;
  });
}

/// Profiles a program with the symbols of an interpreter and wrong data. `marked`: how many frames
/// of a stack are as they must be in it; some are, and the program's own are there, too.
void expect_marks(const std::string& program, const std::string& kind,
                  const std::function<std::size_t(const Strings& frames)>& marked) {
  SCOPED_TRACE(kind);
  Process liar({.argv = {workload_path(program), kind}});
  ASSERT_TRUE(liar.await([](auto& out, auto&) { return out.find('\n') != std::string::npos; }));
  const auto text = profiled(std::to_string(liar.pid()));
  std::uint64_t marks = 0, native = 0;
  for (auto& stack : folded(text)) {
    EXPECT_LE(stack.frames.size(), 512u);
    native += static_cast<std::uint64_t>(std::ranges::count(stack.frames, "main"));
    marks += marked(stack.frames) * stack.count;
  }
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_GE(native, kind == "endless" ? 0u : 1u) << text;  // without end: no room for others
  EXPECT_GE(marks, 1u) << text;
}

TEST(Interpreted, ProgramsThatPretendToBeRuby) {
#ifndef __x86_64__
  throw Skip("frames of interpreters: x86-64 only");
#endif
  for (std::string kind : {"escapes", "endless", "beyond", "wild", "outside"})
    expect_marks("pretend_ruby", kind, [&](auto& frames) -> std::size_t {
      if (kind == "endless") return frames.back() == "bad\\x0ainner (bad\\x1b.rb:7)";
      if (kind != "escapes")
        return static_cast<std::size_t>(std::ranges::count(frames, "[ruby: frames not readable]"));
      const Strings truth = {"bad\\x1b[31mouter (bad\\x1b.rb:9)",
                             "bad\\x1b[2Jmethod in C, whose name is not in the object",
                             "bad\\x0ainner (bad\\x1b.rb:7)"};
      return std::ranges::search(frames, truth).size() == truth.size();
    });
}

TEST(Interpreted, ProgramsThatPretendToBeV8) {
#ifndef __x86_64__
  throw Skip("frames of interpreters: x86-64 only");
#endif
  for (std::string kind : {"escapes", "itself", "wild", "long", "version"})
    expect_marks(kind == "version" ? "pretend_v8_99" : "pretend_v8",
                 kind == "version" ? "escapes" : kind, [&](auto& frames) {
                   return static_cast<std::size_t>(std::ranges::count_if(frames, [&](auto& frame) {
                     if (kind == "escapes")
                       return frame.starts_with("bad\\") && frame.ends_with(".js:2)");
                     if (kind == "wild") return frame == "[v8: frame not readable]";
                     if (kind == "version") return frame == "[v8: unknown version]";
                     return frame.starts_with("<anonymous>") || frame.starts_with("bad\\") ||
                            frame.starts_with("[v8");
                   }));
                 });
}

TEST(Interpreted, ProgramsThatOnlyPretend) {
#ifndef __x86_64__
  throw Skip("frames of interpreters: x86-64 only");
#endif
  for (std::string kind : {"frames", "threads", "wild", "escapes"})
    expect_marks("pretend", kind, [](auto& frames) {
      return static_cast<std::size_t>(std::ranges::count_if(frames, [](auto& frame) {
        return frame.starts_with("[python") || frame.starts_with("bad\\");
      }));
    });
}

}  // namespace
}  // namespace coretap::tooltest
