// mountsnoop against a program that says of each of its calls how it should be shown.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::string result_of(const Json& call) {
  auto ret = call["ret"].i64();
  return ret < 0 ? std::string("-") + ::strerrorname_np(static_cast<int>(-ret))
                 : std::to_string(ret);
}

/// Calls of the scene that the kernel has.
std::vector<Json> scene(const Json& truth) {
  std::vector<Json> all;
  for (auto& call : truth["scene"].items())
    if (call["ret"].i64() != -ENOSYS) all.push_back(call);
  return all;
}

TOOL_TEST(Mountsnoop, EveryCallWithItsArguments) {
  require_tool("mountsnoop");
  Workload workload("mounts", {"--unmounts", "20", "--scene"}), other("mounts", {"--scene"});
  Tracer tracer("mountsnoop", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  other.release();
  auto truth = workload.truth();
  other.truth();
  auto calls = scene(truth);
  auto report = tracer.stop();
  std::vector<Json> events;
  for (auto& event : report.body)
    if (event["ret"].i64() != -ENOSYS) events.push_back(event);
  ASSERT_EQ(events.size(), 20 + calls.size());
  for (std::size_t i = 0; i < events.size(); i++) {
    SCOPED_TRACE(i);
    auto& event = events[i];
    EXPECT_EQ("mnt:[" + std::to_string(event["mount_namespace"].u64()) + "]",
              truth["mount_ns"].str());
    if (i < 20) {
      EXPECT_EQ(event["arguments_text"].str(), "umount(\"/no/where\", MNT_FORCE) = -ENOENT");
      continue;
    }
    auto& call = calls[i - 20];
    EXPECT_EQ(event["call"].str(), call["call"].str());
    EXPECT_EQ(event["arguments_text"].str(), call["text"].str() + " = " + result_of(call));
    EXPECT_EQ(event["ret"].i64(), call["ret"].i64());
    if (auto source = call["source"].str(); !source.empty()) {
      EXPECT_EQ(event["source"].str(), source);
    }
    if (auto target = call["target"].str(); !target.empty()) {
      EXPECT_EQ(event["mount_point"].str(), target);
    }
  }
  auto& first = events[20];
  EXPECT_EQ(first["fs_type"].str(), "tmpfs");
  EXPECT_EQ(first["data"].str(), "size=1M");
  EXPECT_EQ(first["flags_text"].str(), "MS_NOSUID|MS_NODEV");
}

TOOL_TEST(Mountsnoop, Text) {
  require_tool("mountsnoop");
  EXPECT_EQ(header_of("mountsnoop", {}), (Strings{"COMM", "PID", "TID", "MNT_NS", "CALL"}));
  Workload workload("mounts", {"--unmounts", "1", "--scene"});
  Tracer tracer("mountsnoop", {"-t", "-P", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_EQ(words(text.substr(0, text.find('\n'))),
            (Strings{"TIME(s)", "COMM", "PID", "TID", "PCOMM", "PPID", "MNT_NS", "CALL"}));
  EXPECT_TRUE(safe_for_terminals(text));
  EXPECT_TRUE(contains(text, " umount(\"/no/where\", MNT_FORCE) = -ENOENT\n")) << text;
}

const DeclareTests kMountsnoop{{
    .name = "mountsnoop",
    .events = {{}, "mounts --unmounts 3"},
    .stress = {.workload = "mounts --unmounts {n}",
               .events = 20000,
               .truth = "calls",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
