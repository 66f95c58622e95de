// `coretap why` with faults that are seeded, and without: of one process each, so that other load
// on the machine does not matter.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "harness.hpp"
#include "quota.hpp"

namespace coretap::tooltest {
namespace {

Strings of(pid_t pid) { return {"why", "-p", std::to_string(pid), "3", "--json"}; }

/// The ids of findings; the answer's line comes first.
Strings findings(const Result& result) {
  EXPECT_EQ(result.status, 0) << result.err;
  Strings ids;
  bool answered = false;
  for (auto& line : lines(result.out)) {
    auto json = Json::parse(line);
    if (json["type"].str() == "answer") {
      answered = true;
      continue;
    }
    if (json["type"].str() == "note") continue;
    EXPECT_GT(json["lost_ns"].u64(), 0u) << line;
    EXPECT_TRUE(json["command"].str().starts_with("coretap ")) << line;
    ids.push_back(json["id"].str());
  }
  EXPECT_TRUE(answered) << result.out;
  return ids;
}

/// Of this process while it runs.
std::string first_of(pid_t pid) {
  auto result = run_tool("coretap", of(pid));
  auto ids = findings(result);
  SCOPED_TRACE(result.out);
  EXPECT_FALSE(ids.empty()) << result.out;
  return ids.empty() ? "" : ids[0];
}

TOOL_TEST(Why, UsedUpQuota) {
  require_tool("walltime");
  Quota quota;
  Process busy({.argv = {"/bin/sh", "-c", "while :; do :; done"}});
  quota.add(busy.pid());
  auto result = run_tool("coretap", of(busy.pid()));
  auto ids = findings(result);
  ASSERT_FALSE(ids.empty()) << result.out;
  EXPECT_TRUE(ids[0] == "queue.limit" || ids[0] == "queue.throttled") << result.out;
  expect_contains(result.out, {"10000 100000 (0.1 CPUs)", "throttled periods"});
}

TOOL_TEST(Why, LockOfAFile) {
  require_tool("walltime");
  TemporaryDirectory place;
  auto path = place.path() + "/lock";
  int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  Process waiter({.argv = {"/usr/bin/flock", path, "true"}});
  EXPECT_EQ(first_of(waiter.pid()), "lock.file");
  ::close(fd);
}

TOOL_TEST(Why, LockOfAProgram) {
  require_tool("walltime");
  require_tool("blockedby");
  if (run({"/usr/bin/env", "python3", "-c", "import ctypes"}).status) throw Skip("no python3 here");
  Process contends({.argv = {"/usr/bin/env", "python3", "-c", R"(
import ctypes, threading
c = ctypes.CDLL('libc.so.6')
m = ctypes.create_string_buffer(64)
def work():
  while True:
    c.pthread_mutex_lock(m); c.usleep(5000); c.pthread_mutex_unlock(m)
for _ in range(4): threading.Thread(target=work).start()
)"}});
  ::usleep(500'000);
  auto result = run_tool("coretap", of(contends.pid()));
  auto ids = findings(result);
  ASSERT_FALSE(ids.empty()) << result.out;
  EXPECT_EQ(ids[0], "lock.user") << result.out;
  expect_contains(result.out, {"(pid " + std::to_string(contends.pid()) + ")"});
}

TOOL_TEST(Why, WritesThatReachTheDisk) {
  require_tool("walltime");
  auto file = "/var/tmp/coretap-why-" + std::to_string(::getpid());
  Process writer({.argv = {"/bin/sh", "-c",
                           "exec dd if=/dev/zero of=" + file +
                               " bs=4k count=10000000 oflag=sync conv=notrunc"}});
  auto result = run_tool("coretap", of(writer.pid()));
  auto ids = findings(result);
  ::unlink(file.c_str());
  // On a busy machine it also waits for a CPU.
  EXPECT_TRUE(std::ranges::any_of(ids, [](auto& id) {
    return id.starts_with("disk.") || id == "fs.journal";
  })) << result.out;
}

TOOL_TEST(Why, AnotherProcess) {
  require_tool("walltime");
  Process pipe({.argv = {"/bin/sh", "-c", "{ while :; do sleep 0.1; echo; done; } | exec cat"}});
  ::usleep(300'000);
  auto children = run({"/usr/bin/pgrep", "-P", std::to_string(pipe.pid()), "-x", "cat"});
  if (children.status) throw Skip("no pgrep here, or no cat among the children");
  EXPECT_EQ(first_of(std::stoi(children.out)), "peer.process");
}

TOOL_TEST(Why, WhatCpuTimeIsFor) {
  require_tool("walltime");
  require_tool("syscount");
  const std::pair<const char*, const char*> kLoads[] = {
      {"call.errors", "while True:\n  try: os.open('/nonexistent', 0)\n  except OSError: pass"},
      {"io.tiny", "f = os.open('/dev/zero', 0)\nwhile True: os.read(f, 1)"},
      {"proc.storm", "os.execl('/bin/sh', 'sh', '-c', 'while :; do /bin/true; done')"}};
  if (run({"/usr/bin/env", "python3", "-c", "import os"}).status) throw Skip("no python3 here");
  for (auto& [id, program] : kLoads) {
    Process load({.argv = {"/usr/bin/env", "python3", "-c", std::string("import os\n") + program}});
    ::usleep(500'000);
    auto result = run_tool("coretap", of(load.pid()));
    auto ids = findings(result);
    // On a busy machine it also waits for a CPU.
    EXPECT_NE(std::ranges::find(ids, id), ids.end()) << id << ": " << result.out;
  }
}

TOOL_TEST(Why, AddressesOfNames) {
  require_tool("walltime");
  int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(53);
  server.sin_addr.s_addr = htonl(0x7f00004d);
  ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&server), sizeof server), 0);
  auto result = run_tool("coretap", of(::getpid()));
  ::close(socket);
  auto ids = findings(result);
  ASSERT_FALSE(ids.empty()) << result.out;
  EXPECT_EQ(ids[0], "net.names") << result.out;
  expect_contains(result.out, {"127.0.0.77"});
}

TOOL_TEST(Why, SilentWithTheReason) {
  require_tool("walltime");
  Process idle({.argv = {"/bin/sleep", "100"}});
  auto result = run_tool("coretap", {"why", "-p", std::to_string(idle.pid()), "2", "--fail"});
  EXPECT_EQ(result.status, 0) << result.err;
  expect_contains(result.out, {"Nothing found: it is idle"});
}

TOOL_TEST(Why, RecordedFactsGiveTheSameAnswer) {
  require_tool("walltime");
  TemporaryDirectory place;
  Process busy({.argv = {"/bin/sh", "-c", "while :; do :; done"}});
  auto facts = run_tool("coretap", {"why", "-p", std::to_string(busy.pid()), "2", "--raw"});
  ASSERT_EQ(facts.status, 0) << facts.err;
  auto file = place.path() + "/facts";
  ASSERT_TRUE(write_file(file, facts.out));
  ASSERT_EQ(::chmod(place.path().c_str(), 0755), 0);
  auto first = run_tool("coretap", {"why", "--from", file, "--all", "--json"});
  EXPECT_FALSE(findings(first).empty()) << first.out;
  EXPECT_EQ(run_tool("coretap", {"why", "--from", file, "--all", "--json"}).out, first.out);
  auto without_rights =
      run({tool_path("coretap"), "why", "--from", file, "--all", "--json"}, as_nobody({}));
  EXPECT_TRUE(without_rights.status >= 126 || without_rights.out == first.out)
      << without_rights.err;
}

TOOL_TEST(Why, EndsWhenTold) {
  require_tool("walltime");
  Process why({.argv = {tool_path("coretap"), "why", "60"}});
  ::usleep(1'500'000);
  auto told = std::chrono::steady_clock::now();
  why.signal(SIGINT);
  EXPECT_EQ(why.wait(), 0) << why.err();
  EXPECT_LE(std::chrono::steady_clock::now() - told, ends_within());
  expect_contains(why.out(), {"threads were busy on average"});
}

TOOL_TEST(Why, WrongWords) {
  for (auto& wrong :
       std::vector<Strings>{"why 0.5", "why soon", "why 5000", "why -p 0", "why -p 1 --comm x",
                            "why --share 0", "why --from", "why 1 2", "why --findings 0"}) {
    SCOPED_TRACE(::testing::PrintToString(wrong));
    expect_refusal("coretap", run_tool("coretap", wrong), 2, "");
  }
  EXPECT_EQ(run_tool("coretap", "why --from /nonexistent").status, 1);
  EXPECT_EQ(run_tool("coretap", "why -p 4194303").status, 1);
  EXPECT_NE(run_tool("coretap", "why -c /no/such/cgroup").status, 0);
  auto rules = run_tool("coretap", "why --rules");
  EXPECT_EQ(rules.status, 0);
  expect_contains(rules.out, {"queue.limit: ", "See: coretap "});
}

}  // namespace
}  // namespace coretap::tooltest
