// Data that are pushed, kept, retried and dropped, with a libevent server in the same loop.
#include "serve/pusher.hpp"

#include <event2/buffer.h>
#include <event2/http.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <deque>

#include "expect.hpp"

namespace coretap::serve {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{20};

constexpr char kPage[] = "# TYPE coretap_x_total counter\ncoretap_x_total 1\n";

std::string event_line(int number) {
  return fmt::format(
      R"({{"type":"event","tool":"x","time":"2026-11-25T15:16:08.123456+01:00","n":{}}})", number);
}

class PusherTest : public testing::Test {
 protected:
  struct Answer {
    int status = 200;
    std::string body = {}, retry_after = {};
    bool none = false;  ///< the connection is closed
  };
  struct Got {
    std::string path, encoding, type, header;
    std::size_t bytes;
    Clock::time_point at;
  };

  ~PusherTest() override {
    pusher_.reset();
    stop_serving();
    event_base_free(base_);
  }

  void serve() {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    memcpy(at.sun_path, path().data(), path().size());
    unlink(path().c_str());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(listen(fd, 8), 0);
    http_ = evhttp_new(base_);
    evhttp_set_gencb(
        http_, [](evhttp_request* r, void* t) { static_cast<PusherTest*>(t)->answer(r); }, this);
    ASSERT_EQ(evhttp_accept_socket(http_, fd), 0);
  }
  void stop_serving() {
    if (http_) evhttp_free(std::exchange(http_, nullptr));
  }

  void answer(evhttp_request* request) {
    auto header = [&](const char* name) {
      auto* value = evhttp_find_header(evhttp_request_get_input_headers(request), name);
      return std::string(value ? value : "");
    };
    got_.push_back({evhttp_request_get_uri(request), header("Content-Encoding"),
                    header("Content-Type"), header("X-Mine"),
                    evbuffer_get_length(evhttp_request_get_input_buffer(request)), Clock::now()});
    Answer with;
    if (!answers_.empty()) {
      with = answers_.front();
      answers_.pop_front();
    }
    if (with.none) {
      evhttp_connection_free(evhttp_request_get_connection(request));
      return;
    }
    if (!with.retry_after.empty())
      evhttp_add_header(evhttp_request_get_output_headers(request), "Retry-After",
                        with.retry_after.c_str());
    auto* body = evbuffer_new();
    evbuffer_add(body, with.body.data(), with.body.size());
    evhttp_send_reply(request, with.status, nullptr, body);
    evbuffer_free(body);
  }

  Pusher& pusher(std::uint64_t every = 3600) {
    pusher_.emplace(base_, Pusher::How{.otlp = {"unix:" + path(), every, {{"X-Mine", "yes"}}},
                                       .resource = {"1.2", "here"},
                                       .served_since_ns = 1,
                                       .page = [this] { return page_; },
                                       .descriptors_change = [] {}});
    return *pusher_;
  }

  /// Runs until the condition holds; false: timeout.
  bool run(const std::function<bool()>& condition) {
    auto end = Clock::now() + kPatience;
    while (!condition() && Clock::now() < end) {
      timeval turn{0, 20'000};
      event_base_loopexit(base_, &turn);
      event_base_dispatch(base_);
    }
    return condition();
  }
  double value(const std::string& sample) const {
    auto page = pusher_->page();
    auto at = page.find("\n" + sample + " ");
    return at == page.npos ? -1 : strtod(page.c_str() + at + sample.size() + 2, nullptr);
  }
  double requests(std::string_view kind, std::string_view how) const {
    return value(
        fmt::format("coretap_otlp_requests_total{{kind=\"{}\",outcome=\"{}\"}}", kind, how));
  }
  double dropped(std::string_view kind, std::string_view why) const {
    return value(fmt::format("coretap_otlp_dropped_total{{kind=\"{}\",reason=\"{}\"}}", kind, why));
  }
  void expect_soon(std::string_view kind, std::string_view outcome, double count) {
    ASSERT_TRUE(run([&] { return requests(kind, outcome) == count; })) << kind << ' ' << outcome;
  }
  void expect_items(std::string_view kind, double count) {
    ASSERT_TRUE(run([&] { return items(kind) == count; })) << kind << ' ' << items(kind);
  }
  double items(std::string_view kind) const {
    return value(fmt::format("coretap_otlp_items_total{{kind=\"{}\"}}", kind));
  }
  /// Duration of the last push; `meanwhile` is called after its start.
  Clock::duration finish(const std::function<void()>& meanwhile = [] {}) {
    bool done = false;
    auto began = Clock::now();
    pusher_->finish([&] { done = true; });
    meanwhile();
    EXPECT_TRUE(run([&] { return done; }));
    return Clock::now() - began;
  }
  /// A page with this many counters, with labels that compress badly.
  void fill_page(int counters, int letters) {
    std::mt19937 random(1);
    page_ = "# TYPE coretap_x_total counter\n";
    for (int i = 0; i < counters; i++) {
      std::string name;
      while (name.size() < static_cast<std::size_t>(letters)) {
        const char c = static_cast<char>('!' + random() % 90);
        name += c == '"' || c == '\\' ? '~' : c;
      }
      page_ += fmt::format("coretap_x_total{{n=\"{}\"}} 1\n", name);
    }
  }
  std::string path() const { return dir_.in("socket"); }

  ScratchDirectory dir_;
  std::string page_ = kPage;
  event_base* base_ = event_base_new();
  evhttp* http_ = nullptr;
  std::optional<Pusher> pusher_;
  std::deque<Answer> answers_;
  std::vector<Got> got_;
};

/// A source of a tool's events.
struct Tool {
  Fd ours;

  explicit Tool(Pusher& pusher) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours.reset(ends[0]);
    pusher.add_source("entry", Fd(ends[1]));
  }
  void say(const std::string& text) const {
    ASSERT_EQ(write(ours.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
};

TEST_F(PusherTest, MetricsComeByThemselves) {
  serve();
  pusher(1);
  ASSERT_TRUE(run([&] { return got_.size() >= 2; }));
  EXPECT_EQ(got_[0].path, "/v1/metrics");
  EXPECT_EQ(got_[0].encoding, "gzip");
  EXPECT_EQ(got_[0].type, "application/x-protobuf");
  EXPECT_EQ(got_[0].header, "yes");
  EXPECT_TRUE(run([&] { return requests("metrics", "taken") >= 2; }));
  // One of the page, and the pusher's own metrics.
  EXPECT_EQ(items("metrics"), 16 * requests("metrics", "taken"));
}

TEST_F(PusherTest, EventsComeOnceEach) {
  serve();
  auto& p = pusher();
  Tool tool(p), other(p);
  for (int i = 0; i < 100; i++) tool.say(event_line(i) + "\n");
  auto line = event_line(100) + "\n";
  other.say(line.substr(0, 30));
  expect_items("events", 100);
  other.say(line.substr(30));
  expect_items("events", 101);
  EXPECT_EQ(got_.back().path, "/v1/logs");
  EXPECT_EQ(p.descriptors(), 4u);
  tool.ours.reset();
  EXPECT_TRUE(run([&] { return p.descriptors() == 3; }));
  EXPECT_EQ(dropped("events", "malformed"), 0);
}

TEST_F(PusherTest, LinesThatAreNoEventsAreCounted) {
  serve();
  auto& p = pusher();
  Tool tool(p);
  tool.say("what\n");
  for (int i = 0; i < 5; i++) {  // one line
    tool.say(std::string(30'000, 'x'));
    run([end = Clock::now() + std::chrono::milliseconds(50)] { return Clock::now() >= end; });
  }
  tool.say("\n" + event_line(1) + "\nhalf");
  expect_items("events", 1);
  tool.ours.reset();
  EXPECT_TRUE(run([&] { return dropped("events", "malformed") == 3; }))
      << dropped("events", "malformed");
}

TEST_F(PusherTest, WhatMaySucceedLaterIsTriedAgain) {
  serve();
  answers_ = {{.status = 429, .retry_after = "2"}, {.none = true}};
  pusher().push_metrics();
  expect_soon("metrics", "taken", 1);
  EXPECT_EQ(requests("metrics", "failed"), 2);
  EXPECT_EQ(dropped("metrics", "refused"), 0);
  ASSERT_EQ(got_.size(), 3u);
  auto pause = [&](std::size_t i) {
    return std::chrono::duration<double>(got_[i].at - got_[i - 1].at).count();
  };
  EXPECT_GE(pause(1), 1.9) << "as it was told, not a second";
  EXPECT_GE(pause(2), 1.4) << "twice as long as the first time";
  EXPECT_EQ(got_[2].bytes, got_[0].bytes) << "the same request";
}

TEST_F(PusherTest, AServerThatComesLater) {
  pusher().push_metrics();
  expect_soon("metrics", "failed", 1);
  serve();
  expect_soon("metrics", "taken", 1);
}

TEST_F(PusherTest, WhatIsRefusedIsDropped) {
  serve();
  answers_ = {{.status = 400, .body = "no"},
              {.status = 200, .body = std::string("\x0a\x02\x08\x03", 4)}};
  auto& p = pusher();
  p.push_metrics();
  expect_soon("metrics", "refused", 1);
  auto all = dropped("metrics", "refused");
  EXPECT_EQ(all, 16);
  p.push_metrics();
  expect_soon("metrics", "taken", 1);
  EXPECT_EQ(dropped("metrics", "refused"), all + 3) << "it took some";
  EXPECT_EQ(items("metrics"), 13);
  EXPECT_EQ(got_.size(), 2u);
}

TEST_F(PusherTest, TheQueueIsBounded) {
  fill_page(3000, 60);  // there is no server
  auto& p = pusher();
  Tool tool(p);
  tool.say(event_line(1) + "\n");
  EXPECT_TRUE(run([&] { return requests("events", "failed") >= 1; }));
  for (int i = 0; i < 30; i++) {
    p.push_metrics();
    EXPECT_LE(value("coretap_otlp_queued_bytes"), 1 << 20);
  }
  auto lost = dropped("metrics", "queue");
  EXPECT_GT(lost, 0);
  EXPECT_EQ(dropped("events", "queue"), 0) << "metrics make room for metrics first";
  serve();
  ASSERT_TRUE(run([&] { return value("coretap_otlp_queued_bytes") == 0; }));
  EXPECT_EQ(items("metrics") + lost, 30 * 3015.);
  EXPECT_EQ(items("events"), 1);
}

TEST_F(PusherTest, ARequestThatFitsNowhereIsDropped) {
  fill_page(30'000, 100);
  serve();
  auto& p = pusher();
  p.push_metrics();
  EXPECT_EQ(dropped("metrics", "queue"), 30'015);
  page_ = kPage;
  p.push_metrics();
  expect_items("metrics", 16);
}

TEST_F(PusherTest, TheLastPush) {
  serve();
  answers_ = {{.status = 503}};
  auto& p = pusher();
  Tool tool(p);
  p.push_metrics();
  expect_soon("metrics", "failed", 1);
  tool.say(event_line(1) + "\n");
  auto took = finish([&] {
    tool.say(event_line(2) + "\n");
    tool.ours.reset();
  });
  EXPECT_LT(took, std::chrono::milliseconds(1500)) << "it did not wait for long";
  EXPECT_EQ(items("events"), 2);
  EXPECT_EQ(requests("metrics", "taken"), 1);
}

TEST_F(PusherTest, TheLastPushWaitsForNobody) {
  auto& p = pusher();
  Tool tool(p);  // must exist until the end
  p.push_metrics();
  EXPECT_LT(finish(), std::chrono::seconds(4));
}

}  // namespace
}  // namespace coretap::serve
