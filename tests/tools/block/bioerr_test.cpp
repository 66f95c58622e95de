// bioerr against a process whose reads of the end of a device fail, as it says.
#include <algorithm>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kSector = 512;

const Strings kReads = {"--make", "loop", "--op", "read", "--count", "20", "--lost", "32k"};

TOOL_TEST(Bioerr, EachReadThatFails) {
  require_tool("bioerr");
  Workload workload("blockio", kReads, kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer tracer("bioerr", {"--json", "--strict", "-d", disk}),
      mine("bioerr", {"--json", "--strict", "-p", workload.id()}),
      others("bioerr", {"--json", "-p", "1", "-d", disk}),
      cheap("bioerr", {"--json", "--strict", "--no-process", "-d", disk});
  workload.release();
  auto truth = workload.truth();
  auto failed = truth["failed"].u64();
  ASSERT_EQ(failed, 8u);
  for (auto* each : {&tracer, &mine, &cheap}) {
    auto report = each->stop();
    ASSERT_EQ(report.body.size(), failed);
    auto sector = (truth["count"].u64() - failed) * truth["size"].u64() / kSector;
    for (auto& event : report.body) {
      EXPECT_EQ(event["disk"].str(), disk);
      EXPECT_EQ(event["rwbs"].str().front(), 'R');
      EXPECT_EQ(event["sector"].u64(), sector);
      EXPECT_EQ(event["bytes"].u64(), truth["size"].u64());
      EXPECT_EQ(event["error"].str(), "EIO");
      sector += truth["size"].u64() / kSector;
      if (each == &cheap) {
        EXPECT_TRUE(event["pid"].is_null());
      } else {
        EXPECT_EQ(event["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
        EXPECT_EQ(event["comm"].str(), "blockio");
      }
    }
  }
  auto none = others.stop();
  EXPECT_TRUE(none.body.empty());
  EXPECT_EQ(none.lost("filtered"), failed) << "only what fails is counted";
}

/// Is a function of this name among the frames?
bool has_frame(const Strings& frames, std::string_view function) {
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) {
    return f == function || f.starts_with(std::string(function) + "+");
  });
}

TOOL_TEST(Bioerr, StackOfTheSubmitter) {
  require_tool("bioerr");
  Workload workload("blockio", kReads, kLinger);
  Tracer tracer("bioerr", {"--json", "--strict", "-K", "-p", workload.id()}),
      text("bioerr", {"-K", "-p", workload.id()});
  workload.release();
  auto failed = workload.truth()["failed"].u64();
  auto report = tracer.stop();
  auto lines = text.stop_text();
  ASSERT_EQ(report.body.size(), failed);
  // The failing part is a read of the process; the error is found by a worker of the loop device.
  for (auto& event : report.body) {
    auto frames = event["kernel_stack"].strings();
    EXPECT_TRUE(has_frame(frames, "vfs_read") || has_frame(frames, "ksys_pread64")) << lines;
    EXPECT_FALSE(has_frame(frames, "worker_thread")) << lines;
    EXPECT_FALSE(has_frame(frames, "kthread")) << lines;
  }
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
  EXPECT_EQ(run({tool_path("bioerr"), "-K", "--no-process"}).status, 2);
}

TOOL_TEST(Bioerr, Text) {
  require_tool("bioerr");
  EXPECT_EQ(header_of("bioerr", {}),
            (Strings{"TIME", "DISK", "T", "SECTOR", "BYTES", "ERROR", "COMM", "PID"}));
  Workload workload("blockio", kReads, kLinger);
  Tracer tracer("bioerr", {"-a", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, " 96     4096 EIO         blockio ")) << text;
}

const DeclareTests kBioerr{{
    .name = "bioerr",
    .events = {"-a", "blockio --make loop --op read --count 5 --lost 8k"},
    .stress = {.workload = "blockio --make loop --op read --count {n} --span 4m --lost 4m",
               .events = 1500,
               .truth = "failed",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
