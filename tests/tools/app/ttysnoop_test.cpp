// ttysnoop against a program that writes known bytes to a private terminal.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Ttysnoop, EachWrite) {
  Scene scene("screen", {});
  auto tty = scene.ready()["tty"].str();
  for (auto* options : {"--json --strict {tty}", "--json --raw {tty}",
                        "--json -s 4 -c 2 -p {pid} {tty}", "--json -p {pid}", "-T {tty}"})
    scene.trace(Strings("ttysnoop") + options);
  scene.trace("ttysnoop --raw --strict " + tty.substr(sizeof("/dev/") - 1));
  auto seen = scene.finish();
  auto report = seen.report();
  std::string all;
  std::size_t next = 0;
  for (auto& write : seen.truth["scene"].items()) {
    auto bytes = unhex(write["hex"].str());
    all += bytes;
    for (std::size_t part = 0, done = 0; done < bytes.size(); part++) {
      SCOPED_TRACE(next);
      ASSERT_LT(next, report.body.size());
      auto& event = report.body[next++];
      auto size = event["bytes"].u64();
      ASSERT_GT(size, 0u);
      // JSON cannot contain invalid UTF-8.
      auto expected = bytes.substr(done, size);
      if (auto at = expected.find('\x80'); at != expected.npos) expected.replace(at, 1, "\ufffd");
      expect_fields(event, {{"pid", write["pid"].i64()},
                            {"comm", "screen"},
                            {"tty", tty.substr(sizeof("/dev/") - 1)},
                            {"part_number", part},
                            {"data", expected}});
      done += size;
    }
  }
  EXPECT_EQ(next, report.body.size()) << "nothing of other files";
  std::string hex;
  for (auto& line : seen.report(1).body) hex += unhex(line["data_hex"].str());
  EXPECT_EQ(hex, all);
  auto few = seen.report(2);
  EXPECT_EQ(few.body.size(), 8u) << "two of each, and no other process";
  expect_fields(few.ledger, {{"truncated", 3}, {"filtered", 1}});
  EXPECT_EQ(lines_with(seen.report(3).body, {{"data", "elsewhere\n"}}).size(), 1u)
      << "the other terminal";
  EXPECT_TRUE(safe_for_terminals(seen.text(4)));
  expect_contains(seen.text(4), {"hello"});
  EXPECT_EQ(seen.text(5), all);
}

TOOL_TEST(Ttysnoop, WrongWords) {
  require_tool("ttysnoop");
  for (auto* wrong : {"/dev/null", "pts/none", "4000000", "--raw", ""})
    expect_refused({"ttysnoop", wrong});
}

TESTS_OF(ttysnoop, .events = {"-T", "screen"},
         .stress = event_row("screen --writes {n}", 2000, "writes"));

}  // namespace coretap::tooltest
