// syncsnoop against a program that flushes files in known ways.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Syncsnoop, EveryCallWithItsFile) {
  require_tool("syncsnoop");
  Workload workload("filecalls", {"--syncs", "20", "--scene"}),
      other("filecalls", {"--syncs", "10"});
  Tracer tracer("syncsnoop", {"--json", "--strict", "-p", workload.id()});
  Tracer slow("syncsnoop", {"--json", "-m", "600000", "-p", workload.id()});
  workload.release();
  other.release();
  auto truth = workload.truth();
  other.truth();
  auto calls = truth["scene"].items();
  auto bulk = truth["syncs"].u64();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), bulk + calls.size());
  for (std::size_t i = 0; i < report.body.size(); i++) {
    SCOPED_TRACE(i);
    auto& event = report.body[i];
    // Those of the bulk are as the first of the scene.
    auto& call = calls[i < bulk ? 0 : i - bulk];
    EXPECT_EQ(event["pid"].u64(), truth["pid"].u64());
    EXPECT_EQ(event["call"].str(), call["call"].str());
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    if (call["ret"].i64() < 0)
      EXPECT_EQ(event["error"].str(), ::strerrorname_np(static_cast<int>(-call["ret"].i64())));
    else
      EXPECT_TRUE(event["error"].is_null());
    ASSERT_EQ(event["file"].is_null(), !call["known"].boolean());
    if (!call["known"].boolean()) continue;
    EXPECT_EQ(event["file"].str(), unhex(call["path_hex"].str()));
  }
  auto none = slow.stop();
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.lost("filtered"), bulk + calls.size());
}

TOOL_TEST(Syncsnoop, Text) {
  require_tool("syncsnoop");
  EXPECT_EQ(header_of("syncsnoop", {}),
            (Strings{"TIME(s)", "COMM", "PID", "CALL", "LAT(ms)", "ERROR", "FILE"}));
  Workload workload("filecalls", {"--syncs", "1", "--scene"});
  Tracer tracer("syncsnoop", {"-T", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "/filecalls-" + workload.id() + "/file\n")) << text;
  EXPECT_TRUE(contains(text, " EBADF ")) << text;
  EXPECT_TRUE(contains(text, " sync_file_range ")) << text;
}

const DeclareTests kSyncsnoop{{
    .name = "syncsnoop",
    .events = {{}, "filecalls --syncs 3"},
    .stress = {.workload = "filecalls --syncs {n}",
               .events = 20000,
               .truth = "syncs",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
