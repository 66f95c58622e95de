// `coretap mcp` with a client in Python.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kClient[] = R"py(
import json, os, select, signal, subprocess, sys, time

class Client:
    def __init__(self, *tools):
        self.process = subprocess.Popen([sys.argv[1], "mcp", *tools], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pending = b""
    def send(self, what):
        line = what if isinstance(what, bytes) else json.dumps(what).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
    def request(self, id, method, **params):
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    def call(self, id, tool, **arguments):
        self.request(id, "tools/call", name=tool, arguments=arguments)
    def answer(self, seconds=40):
        end = time.monotonic() + seconds
        while b"\n" not in self.pending:
            ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
            got = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not got:
                return None
            self.pending += got
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)
    def children(self):
        try:
            return open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()
        except FileNotFoundError:
            return []
    def wait_for_children(self, count):
        end = time.monotonic() + 20
        while len(self.children()) != count and time.monotonic() < end:
            time.sleep(0.02)
        return len(self.children()) == count
    def end(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        return self.process.wait(20), rest.decode()

def code(answer):
    return answer["error"]["code"], answer["id"]

out = {}
)py";

Json session(const std::string& script) {
  return read_by_python(std::string(kClient) + script + "\nprint(json.dumps(out))\n",
                        tool_path("coretap"));
}

TOOL_TEST(Mcp, BeginsAndLists) {
  auto out = session(R"py(
c = Client()
c.request(1, "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={"name": "test", "version": "1"})
out["version"] = c.answer()["result"]["protocolVersion"]
c.request("two", "initialize", protocolVersion="1999-01-01")
second = c.answer()
out["id"], out["newest"] = second["id"], second["result"]["protocolVersion"]
c.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
c.request(3, "ping")
out["ping"] = c.answer() == {"jsonrpc": "2.0", "id": 3, "result": {}}
c.request(4, "tools/list")
tools = {t["name"]: t for t in c.answer()["result"]["tools"]}
out["tools"] = len(tools)
out["why"] = "why" in tools
properties = [set(t["inputSchema"]["properties"]) for t in tools.values()]
out["all_timed"] = all("seconds" in p for p in properties)
out["unsafe"] = sorted(set.union(*properties) & {"output", "svg", "pprof", "heatmap", "diff", "command", "library",
    "dump-graph", "from", "raw", "rotate", "append", "json", "csv", "duration", "return-trampoline", "directory"})
out["ended"] = c.end()[0]
)py");
  EXPECT_EQ(out["version"].str(), "2025-03-26");
  EXPECT_EQ(out["newest"].str(), "2025-06-18");
  EXPECT_EQ(out["id"].str(), "two");
  EXPECT_TRUE(out["ping"].boolean());
  EXPECT_GT(out["tools"].u64(), 1u);
  EXPECT_TRUE(out["why"].boolean());
  EXPECT_TRUE(out["all_timed"].boolean());
  EXPECT_EQ(out["unsafe"].strings(), Strings{});
  EXPECT_EQ(out["ended"].u64(), 0u);
}

TOOL_TEST(Mcp, RefusesBadMessages) {
  auto out = session(R"py(
c = Client("runqlat", "funccount")
def ask(what):
    c.send(what)
    return code(c.answer())
out["codes"] = [list(x) for x in (
    ask(b"{bad"), ask(b"\xff"), ask(b"[" * 100 + b"]" * 100), ask(b'"' + b"x" * 2000000 + b'"'),
    ask(b"[]"), ask({"id": 5, "method": "ping"}), ask({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
    ask({"jsonrpc": "2.0", "id": 6, "method": "resources/list"}),
    ask({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "walltime"}}),
    ask({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": []}))]
def refused(tool, **arguments):
    c.call("call", tool, **arguments)
    answer = c.answer()
    return answer["error"]["message"] if "error" in answer else "ACCEPTED"
out["words"] = [
    refused("runqlat", output="/tmp/x"), refused("runqlat", seconds=61), refused("runqlat", seconds="5"),
    refused("runqlat", words=["1"]), refused("funccount", words=["--output=/tmp/x"]),
    refused("funccount", words=["-o/tmp/x"]), refused("funccount", words=["--", "true"]),
    refused("funccount", words=["x" * 5000]), refused("runqlat", milliseconds="yes"),
    refused("runqlat", pid=[1])]
c.send(b"")
c.send({"jsonrpc": "2.0", "id": 9, "result": {}})
c.send({"jsonrpc": "2.0", "method": "unknown"})
c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})
c.request(10, "ping")
out["next"] = c.answer()["id"]
status, rest = c.end()
out["rest"] = rest
)py");
  std::vector<std::pair<std::int64_t, std::string>> codes;
  for (auto& pair : out["codes"].items())
    codes.emplace_back(static_cast<std::int64_t>(pair.items().at(0).real()),
                       pair.items().at(1).text());
  EXPECT_EQ(codes, (decltype(codes){{-32700, "null"},
                                    {-32700, "null"},
                                    {-32700, "null"},
                                    {-32700, "null"},
                                    {-32600, "null"},
                                    {-32600, "5"},
                                    {-32600, "null"},
                                    {-32601, "6"},
                                    {-32602, "7"},
                                    {-32602, "8"}}));
  auto words = out["words"].strings();
  for (auto& w : words) EXPECT_NE(w, "ACCEPTED");
  expect_contains(words.at(0), {"no parameter 'output'"});
  expect_contains(words.at(1), {"from 0.1 to 60"});
  expect_contains(words.at(4), {"begins with '-'"});
  EXPECT_EQ(out["next"].u64(), 10u);
  EXPECT_EQ(out["rest"].str(), "");
}

TOOL_TEST(Mcp, RunsTwoAtOnce) {
  require_tool("runqlat");
  require_tool("syscount");
  auto out = session(R"py(
c = Client()
c.call("a", "runqlat", seconds=2)
c.call("b", "syscount", seconds=0.5, pid=c.process.pid)
c.call("a", "runqlat")
out["same"] = code(c.answer())[0]
out["two"] = c.wait_for_children(2)
answers = [c.answer() for _ in "ab"]
out["order"] = [a["id"] for a in answers]
out["errors"] = [a["result"]["isError"] for a in answers]
lines = [json.loads(l) for l in answers[1]["result"]["content"][0]["text"].splitlines()]
out["types"] = [lines[0]["type"], lines[0]["tool"], lines[-1]["type"]]
c.call("wrong", "runqlat", seconds=1, cgroup="/no/such/cgroup")
wrong = c.answer()["result"]
out["wrong"] = wrong["isError"] and any("cgroup" in t["text"] for t in wrong["content"])
out["ended"] = c.end()[0]
)py");
  EXPECT_EQ(out["same"].real(), -32600);
  EXPECT_TRUE(out["two"].boolean());
  EXPECT_EQ(out["order"].strings(), (Strings{"b", "a"}));
  for (auto& error : out["errors"].items()) EXPECT_FALSE(error.boolean());
  EXPECT_EQ(out["types"].strings(), (Strings{"header", "runqlat", "ledger"}));
  EXPECT_TRUE(out["wrong"].boolean());
}

TOOL_TEST(Mcp, CallsAreBoundedAndCancelled) {
  require_tool("runqlat");
  auto out = session(R"py(
c = Client("runqlat")
for i in range(5):
    c.call(i, "runqlat", seconds=50)
out["busy"] = list(code(c.answer()))
out["four"] = c.wait_for_children(4)
for i in range(3):
    c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": i}})
out["one"] = c.wait_for_children(1)
c.request("p", "ping")
out["next"] = c.answer()["id"]
children = c.children()
began = time.monotonic()
status, rest = c.end()
out["rest"], out["status"] = rest, status
out["fast"] = time.monotonic() - began < 10
out["left"] = [p for p in children if os.path.exists("/proc/" + p)]
# A signal ends it, too.
d = Client("runqlat")
d.call(1, "runqlat", seconds=50)
d.wait_for_children(1)
children = d.children()
d.process.send_signal(signal.SIGTERM)
out["signalled"] = d.process.wait(20)
out["left"] += [p for p in children if os.path.exists("/proc/" + p)]
)py");
  auto busy = out["busy"].items();
  EXPECT_EQ(busy.at(0).real(), -32000);
  EXPECT_EQ(busy.at(1).u64(), 4u);
  EXPECT_TRUE(out["four"].boolean());
  EXPECT_TRUE(out["one"].boolean());
  EXPECT_EQ(out["next"].str(), "p") << "cancelled calls have no answer";
  EXPECT_EQ(out["rest"].str(), "");
  EXPECT_EQ(out["status"].u64(), 0u);
  EXPECT_TRUE(out["fast"].boolean());
  EXPECT_EQ(out["signalled"].u64(), 0u);
  EXPECT_EQ(out["left"].strings(), Strings{});
}

TOOL_TEST(Mcp, OutputIsBounded) {
  require_tool("opensnoop");
  auto out = session(R"py(
busy = subprocess.Popen([sys.executable, "-c", "import os\nwhile True:\n os.close(os.open('/dev/null', 0))"])
c = Client("opensnoop")
c.call(1, "opensnoop", seconds=3, pid=busy.pid)
content = c.answer()["result"]["content"]
busy.kill()
busy.wait()
text = content[0]["text"]
out["bytes"] = len(text)
out["whole"] = text.endswith("\n") and bool(json.loads(text.splitlines()[-1]))
out["said"] = content[1]["text"] if len(content) > 1 else ""
c.end()
)py");
  expect_between(out["bytes"].real(), 200e3, 256 * 1024);
  EXPECT_TRUE(out["whole"].boolean());
  expect_contains(out["said"].str(), {"truncated"});
}

TOOL_TEST(Mcp, NamesThatAreNoTools) {
  auto result = run_tool("coretap", {"mcp", "nosuchtool"});
  EXPECT_EQ(result.status, 2);
  expect_contains(result.err, {"mcp", "nosuchtool"});
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace coretap::tooltest
