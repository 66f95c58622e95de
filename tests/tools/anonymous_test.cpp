// --anonymous: a recording beside a workload whose files, programs, arguments, cgroup and host have
// a name that nothing else has: it is nowhere in the file, which is shown as it was recorded.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <regex>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// Parts of it are no words; the whole one is too long for a command's name.
constexpr char kHost[] = "zqhostzq", kSecret[] = "zqsecretzq", kPart[] = "zqse";

/// Programs with the name that open files, run programs, connect, compute, and sleep.
class Secrets {
 public:
  Secrets() {
    const auto shell = directory_.path() + "/" + kSecret;
    EXPECT_EQ(run({"cp", "/bin/sh", shell}).status, 0);
    EXPECT_EQ(run({"cp", "/bin/true", shell + "-true"}).status, 0);
    const auto file = shell + ".d/" + kSecret + ".conf";
    EXPECT_EQ(run({"mkdir", shell + ".d"}).status, 0);
    EXPECT_EQ(run({"cp", "/etc/passwd", file}).status, 0);
    const std::string loop =
        "i=0; while :; do read x < " + file + "; " + shell + "-true --key=" + kSecret + " " + file +
        "; (exec 3<>/dev/null; cat < " + file + " >/dev/null); i=$((i+1)); done";
    workload_.emplace(Spawn{.argv = {shell, "-c", loop, kSecret}});
    connect_.emplace(Spawn{.argv = {"/usr/bin/python3", "-c",
                                    "import socket,time,ctypes\n"
                                    "ctypes.CDLL(None).prctl(15, b'" +
                                        std::string(kSecret) +
                                        "')\n"
                                        "s = socket.socket(); s.bind(('', 0)); s.listen(64)\n"
                                        "while True:\n"
                                        "  c = socket.create_connection(s.getsockname())\n"
                                        "  a, _ = s.accept(); c.close(); a.close()\n"
                                        "  time.sleep(0.02)\n"}});
    cgroup_.add(workload_->pid());
    cgroup_.add(connect_->pid());
  }

 private:
  TemporaryDirectory directory_;
  Cgroup cgroup_{kSecret};
  std::optional<Process> workload_, connect_;
};

class AnonymousRecording : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Tools, AnonymousRecording,
                         ::testing::Values("opensnoop", "execsnoop", "tcpconnect", "profile",
                                           "offcputime", "syscount --by cgroup",
                                           "opensnoop --comm zqsecretzq", "filetop -C 1 2"),
                         [](auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return !isalnum(c); });
                           return name;
                         });

TEST_P(AnonymousRecording, HasNoNames) {
  const auto words = Strings(GetParam());
  require_tool(words[0]);
  TemporaryDirectory directory;
  const auto file = directory.path() + "/one.ctr";
  const Secrets secrets;
  auto with_host = [] {
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(kHost, sizeof kHost - 1) != 0) _exit(126);
  };
  auto live = run(Strings{tool_path(words[0])} + Strings(words.begin() + 1, words.end()) +
                      Strings{"--record", file, "--anonymous", "--json", "--duration", "2"},
                  with_host);
  ASSERT_EQ(live.status, 0) << live.err;
  // The output has names.
  EXPECT_NE(live.out.find(kPart), std::string::npos);
  auto unpacked = run({"zstd", "-dc", file});
  ASSERT_EQ(unpacked.status, 0) << unpacked.err;
  ASSERT_GT(unpacked.out.size(), 1000u);
  for (auto* name : {kHost, kPart})
    EXPECT_EQ(unpacked.out.find(name), std::string::npos)
        << unpacked.out.substr(std::max<std::size_t>(unpacked.out.find(name), 80) - 80, 160);
  auto shown = run({tool_path("coretap"), "show", file, "--json"});
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(lines(shown.out).size(), lines(live.out).size());
  EXPECT_TRUE(std::regex_search(shown.out, std::regex("p-[0-9a-f]{8}")));
  EXPECT_EQ(shown.out.find(kPart), std::string::npos);
  auto text = run({tool_path("coretap"), "show", file});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_FALSE(text.out.empty());
  auto info = run({tool_path("coretap"), "show", "--info", file});
  expect_contains(info.out, {"anonymous"});
  EXPECT_EQ(info.out.find(kHost), std::string::npos);
}

TEST(AnonymousRecordings, OthersAreRefused) {
  require_tool("opensnoop");
  auto none = run({tool_path("opensnoop"), "--anonymous", "--duration", "0.1"});
  EXPECT_EQ(none.status, 2);
  expect_contains(none.err, {"nothing is recorded"});
}

}  // namespace
}  // namespace coretap::tooltest
