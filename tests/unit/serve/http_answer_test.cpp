// Answers of HTTP servers, whole, in parts and broken.
#include "serve/http_answer.hpp"
#include "expect.hpp"

namespace coretap::serve {
TEST(HttpAnswer, Whole) {
  struct {
    std::string text;
    bool ended;
    int status;
    std::string body;
  } const kGood[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", false, 200, "ab"},
      {"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", false, 200, ""},
      {"HTTP/1.0 404 Not Found\r\n\r\nno", true, 404, "no"},
      {"HTTP/1.1 204 No Content\r\n\r\n", false, 204, ""},
      {"HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n", false, 503, ""},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\nA \r\n0123456789\r\n"
       "0\r\n\r\n",
       false, 200, "abc0123456789"},
  };
  for (auto& good : kGood) {
    auto answer = parse_answer(good.text, good.ended);
    ASSERT_TRUE(answer) << good.text;
    EXPECT_EQ(answer->status, good.status);
    EXPECT_EQ(answer->body, good.body);
    EXPECT_EQ(answer->retry_after, std::nullopt);
    // Nothing is one before its head is whole.
    for (std::size_t n = 0; n < good.text.find("\r\n\r\n"); n++)
      EXPECT_FALSE(parse_answer(std::string_view(good.text).substr(0, n), false)) << n;
  }
}

TEST(HttpAnswer, RetryAfter) {
  auto after = [](const std::string& value) {
    return parse_answer(
               "HTTP/1.1 429 x\r\nretry-AFTER: " + value + " \r\nContent-Length: 0\r\n\r\n", false)
        ->retry_after;
  };
  EXPECT_EQ(after("7"), 7u);
  EXPECT_EQ(after("Wed, 21 Oct 2026 07:28:00 GMT"), std::nullopt);
  EXPECT_EQ(after("-1"), std::nullopt);
}

TEST(HttpAnswer, NoneYetOrNever) {
  for (std::string_view bad :
       {"", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 007 OK\r\n\r\n", "hello\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nab\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n"})
    EXPECT_FALSE(parse_answer(bad, true)) << bad;
  EXPECT_FALSE(parse_answer("HTTP/1.1 200 OK\r\n\r\nab", false)) << "its end is the connection's";
}

}  // namespace coretap::serve
