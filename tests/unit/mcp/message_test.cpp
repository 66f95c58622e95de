#include "mcp/message.hpp"

#include "expect.hpp"

namespace coretap::mcp {
namespace {

int code_of(std::string_view line) {
  auto message = message_in(line);
  auto* failure = std::get_if<Failure>(&message);
  return failure ? failure->code : 0;
}

TEST(McpMessages, Requests) {
  auto message = message_in(R"({"jsonrpc":"2.0","id":"a\"b","method":"m","params":{"x":[1,2]}})");
  auto* request = std::get_if<Request>(&message);
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<std::string>(request->id), "a\"b");
  EXPECT_EQ(request->method, "m");
  ASSERT_TRUE(request->params());
  EXPECT_EQ(member(request->params(), "x")->Size(), 2u);
  EXPECT_FALSE(member(request->params(), "y"));
  EXPECT_FALSE(member(member(request->params(), "x"), "y"));
  message = message_in(R"({"jsonrpc":"2.0","method":"m"})");
  EXPECT_TRUE(std::get<Request>(message).is_notification());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      message_in(R"({"jsonrpc":"2.0","id":1,"result":{}})")));
}

TEST(McpMessages, WhatIsRefused) {
  EXPECT_EQ(code_of("{"), kParseError);
  EXPECT_EQ(code_of(""), kParseError);
  EXPECT_EQ(code_of("{} {}"), kParseError);
  EXPECT_EQ(code_of("\"\xff\""), kParseError);
  EXPECT_EQ(code_of(std::string(kMostBytes + 1, ' ')), kParseError);
  EXPECT_EQ(code_of(std::string(kMostDepth + 1, '[') + std::string(kMostDepth + 1, ']')),
            kParseError);
  EXPECT_EQ(code_of("[]"), kInvalidRequest);
  EXPECT_EQ(code_of("5"), kInvalidRequest);
  EXPECT_EQ(code_of(R"({"jsonrpc":"1.0","id":1,"method":"m"})"), kInvalidRequest);
  EXPECT_EQ(code_of(R"({"jsonrpc":"2.0","id":1})"), kInvalidRequest);
  EXPECT_EQ(code_of(R"({"jsonrpc":"2.0","id":null,"method":"m"})"), kInvalidRequest);
  EXPECT_EQ(code_of(R"({"jsonrpc":"2.0","id":")" + std::string(kLongestId + 1, 'x') +
                    R"(","method":"m"})"),
            kInvalidRequest);
  // Brackets in strings are not deep.
  EXPECT_EQ(code_of(R"({"jsonrpc":"2.0","id":1,"method":"\"[[)" + std::string(200, '[') + "\"}"),
            0);
}

TEST(McpMessages, Failures) {
  EXPECT_EQ(failure({std::string("x"), kNoMethod, "no \"such\""}),
            R"({"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no \"such\""}})");
  EXPECT_EQ(failure({{}, kParseError, "bad"}),
            R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}})");
}

}  // namespace
}  // namespace coretap::mcp
