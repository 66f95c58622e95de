// OTLP pushes of `coretap serve`, against programs that know the number of their events, and
// receivers that refuse, stop and start late.
#include <poll.h>

#include <atomic>
#include <mutex>

#include "profile_reader.hpp"
#include "served.hpp"

namespace coretap::tooltest {
namespace {

/// Decodes requests by an independent reader: lines of a path and a body in hexadecimal.
const std::string kReadOtlp = kProtobuf + R"py(
def any(b):
    for number, (value,) in members(b).items():
        if number == 1: return value.decode()
        if number == 2: return bool(value)
        if number == 3: return value - (1 << 64 if value >> 63 else 0)
        if number == 4: return struct.unpack("<d", value)[0]
        if number == 5: return [any(v) for v in members(value).get(1, [])]
    return None

def pairs(all):
    pairs = [(p[1][0].decode(), any(p[2][0])) for p in map(members, all)]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)

def fixed(b):
    return struct.unpack("<Q", b)[0]

points, events, resources = [], [], []
for push, line in enumerate(open(sys.argv[1])):
    path, body = line.split()
    request = members(gzip.decompress(bytes.fromhex(body)))
    one = members(request[1][0])
    resources.append(pairs(members(one[1][0])[1]))
    for item in members(one[2][0])[2]:
        m = members(item)
        if path == "/v1/logs":
            events.append({"name": m[12][0].decode(), "time": fixed(m[1][0]), "body": any(m[5][0]),
                           "attributes": pairs(m[6])})
            continue
        assert path == "/v1/metrics"
        kind = [k for k in (5, 7, 9) if k in m][0]
        data = members(m[kind][0])
        for p in map(members, data[1]):
            value = fixed(p[4][0]) if kind == 9 else struct.unpack("<d", p[4][0])[0] if 4 in p \
                else struct.unpack("<q", p[6][0])[0]
            points.append({"push": push, "name": m[1][0].decode(), "kind": kind, "value": value,
                           "unit": m.get(3, [b""])[0].decode(), "labels": pairs(p.get(9 if kind == 9 else 7, [])),
                           "start": fixed(p[2][0]) if 2 in p else 0, "time": fixed(p[3][0]),
                           "temporality": data.get(2, [0])[0], "monotonic": data.get(3, [0])[0]})
print(json.dumps({"points": points, "events": events, "resources": resources}))
)py";

/// Receives pushes at a Unix socket.
class Receiver {
 public:
  explicit Receiver(std::vector<int> first = {}) : statuses_(std::move(first)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path().copy(at.sun_path, sizeof at.sun_path - 1);
    listening_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
        listen(listening_, 8) != 0)
      throw std::runtime_error("no socket for pushes");
    thread_ = std::thread([this] { serve(); });
  }
  ~Receiver() {
    ending_ = true;
    thread_.join();
    close(listening_);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string path() const { return dir_.path() + "/otlp"; }
  std::string config(int every) const {
    return "[otlp]\nendpoint = \"unix:" + path() + "\"\nevery = " + std::to_string(every) + "\n";
  }
  std::size_t refused() const {
    std::lock_guard lock(mutex_);
    return refused_;
  }
  /// All requests received.
  Json taken() const {
    TemporaryDirectory dir;
    auto file = dir.path() + "/requests";
    std::unique_lock lock(mutex_);
    std::ofstream(file) << taken_;
    lock.unlock();
    return read_by_python(kReadOtlp, file);
  }

 private:
  void serve() {
    while (!ending_) {
      pollfd wait{listening_, POLLIN, 0};
      if (poll(&wait, 1, 50) <= 0) continue;
      int fd = accept(listening_, nullptr, nullptr);
      if (fd < 0) continue;
      answer(fd);
      close(fd);
    }
  }

  void answer(int fd) {
    timeval patience{5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::string all;
    char buffer[65536];
    std::size_t body = std::string::npos, size = 0;
    while (body == std::string::npos || all.size() < body + size) {
      auto n = recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      all.append(buffer, static_cast<std::size_t>(n));
      if (body != std::string::npos) continue;
      auto end = all.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      body = end + 4;
      auto length = all.find("Content-Length: ");
      if (length > end) return;
      size = std::stoul(all.substr(length + 16));
    }
    int status = 200;
    std::lock_guard lock(mutex_);
    if (!statuses_.empty()) {
      status = statuses_.front();
      statuses_.erase(statuses_.begin());
    }
    if (status == 200) {
      taken_ += all.substr(5, all.find(' ', 5) - 5) + ' ';
      for (unsigned char c : all.substr(body)) {
        constexpr char kDigits[] = "0123456789abcdef";
        taken_ += {kDigits[c >> 4], kDigits[c & 15]};
      }
      taken_ += '\n';
    } else {
      refused_++;
    }
    auto reply = "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: 0\r\n\r\n";
    send(fd, reply.data(), reply.size(), MSG_NOSIGNAL);
  }

  TemporaryDirectory dir_;
  int listening_ = -1;
  std::atomic<bool> ending_ = false;
  mutable std::mutex mutex_;
  std::vector<int> statuses_;
  std::string taken_;
  std::size_t refused_ = 0;
  std::thread thread_;
};

/// Sum over all series in the last push that has the metric.
double last_sum(const Json& taken, const std::string& name) {
  double sum = 0;
  std::uint64_t push = 0;
  for (auto& p : taken["points"].items()) {
    if (p["name"].str() != name) continue;
    if (p["push"].u64() != push) sum = 0;
    push = p["push"].u64();
    sum += p["value"].real();
  }
  return sum;
}

/// Each occurs once: no two events of a tool have the same time.
std::set<std::uint64_t> times_of_events(const Json& taken) {
  std::set<std::uint64_t> times;
  for (auto& e : taken["events"].items())
    EXPECT_TRUE(times.insert(e["attributes"]["coretap.monotonic_ns"].u64()).second);
  return times;
}

constexpr char kName[] = "coretap_opensnoop_events_total";
constexpr char kPushed[] = "coretap.opensnoop.events";

TOOL_TEST(ServeOtlp, WhatIsPushedIsWhatHappened) {
  Receiver receiver({503, 503, 503});
  Workload workload("opener", "--count 500", kLinger);
  Server server(receiver.config(1) +
                entry("opensnoop -p " + workload.id(),
                      "name = \"opens\"\nlabels = [\"comm\"]\nevents = { otlp = true }") +
                entry("runqlat"));
  const auto opens = opens_of(workload);
  EXPECT_TRUE(server.await([&](auto& p) {
    return p.sum(kName) == opens &&
           p.sum("coretap_otlp_items_total", {{"kind", "events"}}) == opens;
  })) << server.process().err();
  EXPECT_EQ(receiver.refused(), 3u);
  auto page = server.page();
  EXPECT_EQ(page.sum("coretap_otlp_requests_total", {{"outcome", "failed"}}), 3);
  EXPECT_EQ(page.sum("coretap_otlp_dropped_total"), 0);
  EXPECT_TRUE(until([&] { return last_sum(receiver.taken(), kPushed) == opens; }));
  auto taken = receiver.taken();
  EXPECT_EQ(times_of_events(taken).size(), opens);
  for (auto& e : taken["events"].items()) {
    EXPECT_EQ(e["name"].str(), "coretap.opensnoop");
    auto line = Json::parse(e["body"].str());
    EXPECT_EQ(line["pid"].i64(), workload.pid());
    EXPECT_EQ(e["attributes"]["process.pid"].i64(), workload.pid());
    EXPECT_EQ(e["attributes"]["thread.name"].str(), "opener");
    EXPECT_EQ(e["attributes"]["coretap.entry"].str(), "opens");
  }
  for (auto& r : taken["resources"].items()) EXPECT_EQ(r["service.name"].str(), "coretap");

  // Each sample of the page has its point, and vice versa.
  std::set<std::string> pushed, shown;
  for (auto& p : taken["points"].items()) {
    auto name = p["name"].str();
    std::replace(name.begin(), name.end(), '.', '_');
    if (p["unit"].str() == "s") name += "_seconds";
    if (p["unit"].str() == "By") name += "_bytes";
    if (p["kind"].u64() == 7) name += "_total";
    pushed.insert(name);
    EXPECT_EQ(p["monotonic"].u64(), p["kind"].u64() == 7) << name;
    EXPECT_EQ(p["temporality"].u64(), p["kind"].u64() == 5 ? 0u : 2u) << name;
    EXPECT_GT(p["time"].u64(), p["start"].u64()) << name;
    EXPECT_EQ(p["start"].u64() == 0, p["kind"].u64() == 5) << name;
  }
  for (auto& [family, type] : page.types) shown.insert(family);
  EXPECT_EQ(pushed, shown);
}

TOOL_TEST(ServeOtlp, TheEndPushesTheRest) {
  Receiver receiver;
  Workload workload("opener", "--count 300", kLinger);
  double opens = 0;
  {
    Server server(receiver.config(3600) +
                  entry("opensnoop -p " + workload.id(), "events = { otlp = true }"));
    opens = opens_of(workload);
    EXPECT_TRUE(receiver.taken()["points"].items().empty());
  }
  auto taken = receiver.taken();
  EXPECT_EQ(last_sum(taken, kPushed), opens);
  EXPECT_EQ(times_of_events(taken).size(), opens);
}

// A stopped process receives nothing: events without room count as limited, all others arrive.
TOOL_TEST(ServeOtlp, EventsThatAreNotTakenInTimeAreCounted) {
  Receiver receiver;
  Workload workload("opener", "--count 8000", kLinger);
  Server server(receiver.config(3600) +
                entry("opensnoop --ring-size 16M -p " + workload.id(),
                      "max_events_per_second = 0\nevents = { otlp = true }"));
  auto listener = server.listener();
  kill(listener, SIGSTOP);
  workload.release();
  const auto opens = static_cast<double>(workload.truth()["bulk"].u64());
  std::this_thread::sleep_for(1s);  // so that the ring is read
  kill(listener, SIGCONT);
  auto outcome = [](const Metrics& p, const std::string& name) {
    return p.sum("coretap_events_total", {{"outcome", name}});
  };
  EXPECT_TRUE(server.await([&](auto& p) {
    return outcome(p, "shown") + outcome(p, "limited") + outcome(p, "lost") == opens &&
           p.sum("coretap_otlp_items_total", {{"kind", "events"}}) == outcome(p, "shown");
  })) << server.process().err();
  auto page = server.page();
  EXPECT_GT(outcome(page, "limited"), 0);
  EXPECT_GT(outcome(page, "shown"), 0);
  EXPECT_EQ(page.sum(kName), outcome(page, "shown"));
  EXPECT_EQ(static_cast<double>(times_of_events(receiver.taken()).size()), outcome(page, "shown"));
}

TOOL_TEST(ServeOtlp, AListenerThatComesAgainPushesOn) {
  Receiver receiver;
  Workload workload("opener", "--count 200", kLinger);
  Server server(receiver.config(1) +
                entry("opensnoop -p " + workload.id(), "events = { otlp = true }"));
  kill(server.listener(), SIGKILL);
  const auto opens = opens_of(workload);
  EXPECT_TRUE(until([&] {
    auto taken = receiver.taken();
    return taken["events"].items().size() == opens && last_sum(taken, kPushed) == opens;
  })) << server.process().err();
}

TOOL_TEST(ServeOtlp, ReadsItsFileAgain) {
  Receiver first, second;
  Workload workload("opener", "--count 50", kLinger);
  auto tool = entry("opensnoop -p " + workload.id(), "events = { otlp = true }");
  Server server(first.config(1) + tool);
  EXPECT_TRUE(until([&] { return !first.taken()["points"].items().empty(); }));
  auto tracer = server.tool();
  server.write(second.config(1) + tool);
  server.process().signal(SIGHUP);
  EXPECT_TRUE(until([&] { return !second.taken()["points"].items().empty(); }))
      << server.process().err();
  EXPECT_EQ(server.tool(), tracer) << "the tool goes on";
  const auto opens = opens_of(workload);
  EXPECT_TRUE(until([&] { return times_of_events(second.taken()).size() == opens; }))
      << server.process().err();
}

TOOL_TEST(ServeOtlp, WithoutASocketNothingIsPushed) {
  require_tool("runqlat");
  Receiver receiver;
  TemporaryDirectory dir;
  auto file = dir.path() + "/serve.toml";
  std::ofstream(file) << receiver.config(1) << entry("runqlat");
  auto once = result_of("coretap serve --once --every 2.5 " + file);
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(parse_page(once.out).count("coretap_otlp_items_total"), 0u);
  EXPECT_TRUE(receiver.taken()["resources"].items().empty());
}

}  // namespace
}  // namespace coretap::tooltest
