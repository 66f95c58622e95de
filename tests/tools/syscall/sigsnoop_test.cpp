// sigsnoop against a program that sends signals to its child and knows what each call returned.
#include <sys/stat.h>

#include <sstream>

#include <fmt/format.h>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t pidns() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

std::string name_of_signal(int number) {
  return number < SIGRTMIN ? fmt::format("SIG{}", ::sigabbrev_np(number))
                           : fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
}

/// What the kernel makes of signals of the scene that it sends.
std::string outcome_of(int signal, int before) {
  if (signal == SIGURG) return "ignored";
  return signal == SIGTTIN && before == SIGTTIN ? "pending" : "delivered";
}

void expect_target(const Json& event, const Json& child) {
  EXPECT_EQ(event["target_comm"].str(), "signals");
  EXPECT_EQ(event["target_tid"].i64(), child.i64());
  EXPECT_EQ(event["target_uid"].u64(), 0u);
  EXPECT_EQ(event["pidns"].u64(), pidns());
  EXPECT_EQ(event["target_pidns"].u64(), pidns());
  EXPECT_EQ(event["receivers"].u64(), 1u);
  EXPECT_FALSE(event["from_kernel"].boolean());
}

TOOL_TEST(Sigsnoop, CallsAndSignals) {
  require_tool("sigsnoop");
  Workload workload("signals", {});
  auto child = workload.ready()["child"];
  const auto list = fmt::format("USR1,SIGUSR2,rtmin+3,{},ttin,9", SIGURG);
  Tracer calls("sigsnoop", {"--json", "--strict", "-k", "-p", workload.id()}),
      signals("sigsnoop", {"--json", "--strict", "-s", list, "-p", workload.id()}),
      failed("sigsnoop", {"--json", "-x", "-T", std::to_string(child.i64()), "-p", workload.id()}),
      kills("coretap", {"killsnoop", "-n", "-x", "-p", workload.id()});
  workload.release();
  auto scene = workload.truth()["scene"].items();
  auto report = calls.stop(), sent = signals.stop();
  ASSERT_EQ(report.body.size(), scene.size());
  std::size_t next = 0;
  int before = 0;
  for (std::size_t i = 0; i < scene.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = report.body[i], &call = scene[i];
    auto number = static_cast<int>(call["signal"].i64());
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "signals");
    EXPECT_EQ(event["call"].str(), call["call"].str());
    EXPECT_EQ(event["signal_number"].i64(), number);
    EXPECT_EQ(event["target_pid"].i64(), call["to"].i64());
    if (auto ret = call["ret"].i64(); ret < 0) {
      EXPECT_EQ(event["error"].str(), ::strerrorname_np(static_cast<int>(-ret)));
    } else {
      EXPECT_TRUE(event["error"].is_null());
    }
    if (call["ret"].i64() < 0 || !number) {
      EXPECT_TRUE(event["outcome"].is_null());
      EXPECT_TRUE(event["target_comm"].is_null());
      EXPECT_EQ(event["receivers"].u64(), 0u);
      continue;
    }
    ASSERT_LT(next, sent.body.size());
    auto& signal = sent.body[next++];
    EXPECT_TRUE(signal["call"].is_null());
    for (auto* of : {&event, &signal}) {
      expect_target(*of, child);
      EXPECT_EQ((*of)["target_pid"].i64(), child.i64());
      EXPECT_EQ((*of)["signal_name"].str(), name_of_signal(number));
      EXPECT_EQ((*of)["outcome"].str(), outcome_of(number, before));
      EXPECT_EQ((*of)["si_code"].str(),
                contains(call["call"].str(), "queue") ? "SI_QUEUE"
                : contains(call["call"].str(), "tkill") || contains(call["call"].str(), "tgkill")
                    ? "SI_TKILL"
                    : "SI_USER");
    }
    before = number;
  }
  EXPECT_EQ(next, sent.body.size());
  auto bad = failed.stop();
  ASSERT_EQ(bad.body.size(), 2u);
  EXPECT_EQ(bad.body[0]["outcome"].str(), "ignored");
  EXPECT_EQ(bad.body[1]["outcome"].str(), "pending");
  auto text = kills.stop_text();
  EXPECT_TRUE(contains(text, " SIGTERM ")) << text;
  EXPECT_TRUE(contains(text, " -                ESRCH")) << text;
  EXPECT_TRUE(contains(text, "EINVAL")) << text;
  EXPECT_TRUE(contains(text, "EPERM")) << text;
}

// The kernel's own signals, and their sender: the child that ends.
TOOL_TEST(Sigsnoop, FromTheKernel) {
  require_tool("sigsnoop");
  auto report = follow("sigsnoop", "signals", {"--rounds", "1"});
  std::size_t ends = 0;
  for (auto& event : report.body) {
    if (event["signal_name"].str() != "SIGCHLD") continue;
    EXPECT_TRUE(event["from_kernel"].boolean());
    ends += event["target_comm"].str() == "signals";
  }
  EXPECT_EQ(ends, 2u);
}

TOOL_TEST(Sigsnoop, Columns) {
  require_tool("sigsnoop");
  const Strings columns = {"TIME", "PID", "COMM", "SIG", "TPID", "TCOMM", "RESULT"};
  EXPECT_EQ(header_of("sigsnoop", {}), columns);
  EXPECT_EQ(header_of("sigsnoop", {"-k", "-n"}), columns);
  for (auto* wrong : {"KILLED", "65", "", "9,"})
    EXPECT_EQ(run({tool_path("sigsnoop"), "-s", wrong}).status, 2) << wrong;
}

const DeclareTests kSigsnoop{{
    .name = "sigsnoop",
    .events = {"-k", "signals"},
    .stress = {.workload = "signals --rounds {n/13}",
               .events = 2600,
               .options = "-k",
               .truth = "calls",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
