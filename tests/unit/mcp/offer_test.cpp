#include "mcp/offer.hpp"

#include "all_tools.hpp"
#include "cli/parser.hpp"
#include "expect.hpp"

namespace coretap::mcp {
namespace {

Result<Call> call(std::string_view tool, const char* arguments) {
  rapidjson::Document document;
  document.Parse(arguments);
  return call_of(offer_of(tool), &document);
}

TEST(McpOffers, CommandLines) {
  auto c = call("runqlat", R"({"pid":"1,2","milliseconds":true,"pidnss":false,"seconds":2})");
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_EQ(c->words, (Words{"coretap", "runqlat", "--json", "--pid=1,2", "--milliseconds",
                             "--duration=2.000"}));
  EXPECT_EQ(c->seconds, 2);
  c = call("why", R"({"pid":12})");
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_EQ(c->words, (Words{"coretap", "why", "--json", "--pid=12", "5.000"}));
  c = call("funccount", R"({"words":["vfs_*","t:sched:*"]})");
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_EQ(c->words,
            (Words{"coretap", "funccount", "--json", "--duration=5.000", "vfs_*", "t:sched:*"}));
}

TEST(McpOffers, ValuesCannotBecomeOptions) {
  auto c = call("runqlat", R"({"comm":"--output=/tmp/x"})");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->words[3], "--comm=--output=/tmp/x");
  auto invocation =
      parse_command_line(build(*find_tool("runqlat")), {c->words.begin() + 2, c->words.end()});
  ASSERT_TRUE(invocation) << invocation.error().what;
  EXPECT_FALSE(invocation->config.given("output"));
  for (auto* bad : {R"({"words":["-o/tmp/x"]})", R"({"words":["--"]})", R"({"words":[""]})",
                    R"({"words":[["x"]]})", R"({"words":"x"})", R"({"words":["a\u0000b"]})"})
    EXPECT_FALSE(call("funccount", bad)) << bad;
}

TEST(McpOffers, WhatIsRefused) {
  for (auto* bad : {R"([])", R"({"seconds":0})", R"({"seconds":1e9})", R"({"seconds":null})",
                    R"({"output":"x"})", R"({"pid":{}})", R"({"pid":true})",
                    R"({"milliseconds":1})", R"({"words":["1"]})", R"({"":1})"})
    EXPECT_FALSE(call("runqlat", bad)) << bad;
  EXPECT_TRUE(call_of(offer_of("runqlat"), nullptr));
}

/// Each parameter alone is an option of the tool, and none has a path or a command.
TEST(McpOffers, OfAllTools) {
  for (auto& tool : registry()) {
    SCOPED_TRACE(tool.name);
    auto offer = offer_of(tool.name);
    EXPECT_FALSE(offer.options.empty());
    WordSet names{"seconds", "words"};
    for (auto& o : offer.options) {
      EXPECT_TRUE(names.insert(std::string(o.name)).second) << o.name;
      EXPECT_EQ(o.metavar.find("FILE"), o.metavar.npos) << o.name;
      EXPECT_NE(o.complete, Complete::command) << o.name;
    }
    for (auto* name : {"output", "svg", "pprof", "json", "duration"})
      EXPECT_FALSE(names.contains(name)) << name;
    JsonLine line;
    line.key("tool");
    describe(line, offer);
    rapidjson::Document document;
    document.Parse(std::string(line.finish()).c_str());
    ASSERT_FALSE(document.HasParseError());
    EXPECT_EQ(document["tool"]["inputSchema"]["properties"].MemberCount(),
              offer.options.size() + 1 + (offer.positionals.empty() ? 0 : 1));
  }
}

}  // namespace
}  // namespace coretap::mcp
