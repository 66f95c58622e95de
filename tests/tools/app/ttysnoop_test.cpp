// ttysnoop against a program that writes known bytes to a terminal of its own.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Ttysnoop, EachWrite) {
  require_tool("ttysnoop");
  Workload workload("screen", {});
  auto tty = workload.ready()["tty"].str();
  Tracer lines("ttysnoop", {"--json", "--strict", tty}),
      raw("ttysnoop", {"--raw", "--strict", tty.substr(sizeof("/dev/") - 1)}),
      cut("ttysnoop", {"--json", "-s", "4", "-c", "2", "-p", workload.id(), tty}),
      text("ttysnoop", {"-T", tty}), any("ttysnoop", {"--json", "-p", workload.id()}),
      exact("ttysnoop", {"--json", "--raw", tty});
  workload.release();
  auto scene = workload.truth()["scene"].items();
  auto report = lines.stop();
  std::string all, bytes;
  std::size_t next = 0;
  for (auto& write : scene) {
    bytes = unhex(write["hex"].str());
    all += bytes;
    for (std::size_t part = 0, done = 0; done < bytes.size(); part++) {
      SCOPED_TRACE(next);
      ASSERT_LT(next, report.body.size());
      auto& event = report.body[next++];
      auto size = event["bytes"].u64();
      ASSERT_GT(size, 0u);
      EXPECT_EQ(event["pid"].i64(), write["pid"].i64());
      EXPECT_EQ(event["comm"].str(), "screen");
      EXPECT_EQ("/dev/" + event["tty"].str(), tty);
      EXPECT_EQ(event["part_number"].u64(), part);
      // What is no UTF-8 cannot be in JSON.
      auto expected = bytes.substr(done, size);
      if (auto at = expected.find('\x80'); at != expected.npos) expected.replace(at, 1, "\ufffd");
      EXPECT_EQ(event["data"].str(), expected);
      done += size;
    }
  }
  EXPECT_EQ(next, report.body.size()) << "nothing of other files";
  EXPECT_EQ(raw.stop_text(), all);
  std::string hex;
  for (auto& line : exact.stop().body) hex += unhex(line["data_hex"].str());
  EXPECT_EQ(hex, all);
  auto few = cut.stop();
  EXPECT_EQ(few.body.size(), 8u) << "two of each, and no other process";
  EXPECT_EQ(few.lost("truncated"), 3u);
  EXPECT_EQ(few.lost("filtered"), 1u);
  std::size_t elsewhere = 0;
  for (auto& event : any.stop().body) elsewhere += event["data"].str() == "elsewhere\n";
  EXPECT_EQ(elsewhere, 1u) << "the other terminal";
  auto shown = text.stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  EXPECT_TRUE(contains(shown, "hello")) << shown;
}

TOOL_TEST(Ttysnoop, WrongWords) {
  require_tool("ttysnoop");
  for (auto& wrong :
       std::vector<Strings>{{"/dev/null"}, {"pts/none"}, {"4000000"}, {"-C"}, {"--raw"}, {""}}) {
    auto words = wrong;
    words.insert(words.begin(), tool_path("ttysnoop"));
    EXPECT_EQ(run(words).status, 2);
  }
}

const DeclareTests kTtysnoop{{
    .name = "ttysnoop",
    .events = {"-T", "screen"},
    .stress = {.workload = "screen --writes {n}",
               .events = 2000,
               .truth = "writes",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
