#include "serve/pusher.hpp"

#include <event2/buffer.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/version.hpp"
#include "metrics/page.hpp"
#include "text/gzip.hpp"

namespace coretap::serve {

namespace {

constexpr std::size_t kMostQueued = 1 << 20;   // bytes of requests, compressed
constexpr std::size_t kMostAnswer = 64 << 10;  // bytes
constexpr std::size_t kBatchBytes = 128 << 10;
constexpr double kBatchSeconds = 1;  // maximum delay of an event, to form batches
constexpr double kPatience = 10;     // seconds for one request
constexpr double kShortestWait = 1, kLongestWait = 300;
constexpr double kLastSeconds = 2;  // for all remaining data at the end

std::uint64_t now_ns() { return static_cast<std::uint64_t>(since_1970_ns(monotonic_ns())); }

/// Spreads reconnects: many hosts may lose one server at the same time.
double spread(double seconds) {
  return seconds * (1 - static_cast<double>(monotonic_ns() / 1000 % 256) / 1024);
}

bool may_succeed_later(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

Pusher::Pusher(event_base* base, How how)
    : base_(base),
      how_(std::move(how)),
      endpoint_(*parse_endpoint(how_.otlp.endpoint)),
      since_ns_(now_ns()),
      metrics_{*this, "metrics", "/v1/metrics"},
      events_{*this, "events", "/v1/logs"},
      logs_(how_.resource) {
  for (auto* signal : {&metrics_, &events_}) close(*signal);
  every_ = Event::after(
      base_, static_cast<double>(how_.otlp.every), [this] { push_metrics(); }, true);
}

Pusher::~Pusher() {
  for (auto* signal : {&metrics_, &events_}) close(*signal);
}

void Pusher::say(std::string_view text) const {
  fputs(fmt::format("coretap serve: {}: {}\n", how_.otlp.endpoint, text).c_str(), stderr);
}

// ---- pushed data ----

void Pusher::push_metrics() {
  metrics::OtlpMetrics all(how_.resource);
  auto tools = how_.page();
  auto now = now_ns();
  all.add(tools, now, how_.served_since_ns);
  all.add(page(), now, since_ns_);
  metrics_.dropped.malformed += all.malformed();
  add(metrics_, all.finish(), all.points());
}

void Pusher::add_source(std::string entry, Fd events) {
  evutil_make_socket_nonblocking(events.get());
  auto& source = sources_.emplace_back(Source{std::move(entry), std::move(events)});
  source.readable = Event::readable(base_, source.events.get(), [this, &source] { read(source); });
}

void Pusher::read(Source& source) {
  char buffer[64 << 10];
  auto n = recv(source.events.get(), buffer, sizeof buffer, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) {
    source.partial.append(buffer, static_cast<std::size_t>(n));
    take_lines(source);
    return;
  }
  if (!source.partial.empty()) events_.dropped.malformed++;
  sources_.remove_if([&](auto& s) { return &s == &source; });
  how_.descriptors_change();
  check_finished();
}

void Pusher::take_lines(Source& source) {
  std::string_view rest = source.partial;
  auto now = now_ns();
  for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    if (!std::exchange(source.too_long, false) &&
        !logs_.add(rest.substr(0, end), source.entry, now))
      events_.dropped.malformed++;
    rest.remove_prefix(end + 1);
    if (logs_.bytes() >= kBatchBytes) push_events();
  }
  source.partial.erase(0, source.partial.size() - rest.size());
  if (source.partial.size() > metrics::OtlpLogs::kLongestLine) {
    if (!std::exchange(source.too_long, true)) events_.dropped.malformed++;
    source.partial.clear();
  }
  if (logs_.records() && !batch_)
    batch_ = Event::after(base_, done_ ? 0 : kBatchSeconds, [this] { push_events(); });
}

void Pusher::push_events() {
  batch_ = {};
  auto records = logs_.records();
  if (records) add(events_, logs_.take(), records);
  check_finished();
}

// ---- the queue ----

std::size_t Pusher::queued() const {
  std::size_t bytes = 0;
  for (auto* signal : {&metrics_, &events_})
    for (auto& request : signal->queue) bytes += request.body.size();
  return bytes;
}

/// Drops the oldest requests; keeps the one in progress.
bool Pusher::make_room(Signal& signal, std::size_t bytes) {
  for (auto* of : {&signal, &signal == &metrics_ ? &events_ : &metrics_}) {
    while (queued() + bytes > kMostQueued) {
      auto oldest = of->queue.begin();
      if (of->connection && oldest != of->queue.end()) ++oldest;
      if (oldest == of->queue.end()) break;
      of->dropped.queue += oldest->items;
      of->queue.erase(oldest);
      if (!std::exchange(of->told_queue, true))
        say(fmt::format("{} are dropped, the oldest first: too many wait", of->kind));
    }
  }
  return queued() + bytes <= kMostQueued;
}

void Pusher::add(Signal& signal, std::string_view message, std::uint64_t items) {
  auto body = gzip(message, Compression::fast);
  if (body.empty() || !make_room(signal, body.size())) {
    signal.dropped.queue += items;
    if (!std::exchange(signal.told_queue, true))
      say(fmt::format("{} of {} bytes are dropped: there is no room", signal.kind, body.size()));
    return;
  }
  signal.queue.push_back({std::move(body), items});
  begin(signal);
}

// ---- requests ----

void Pusher::begin(Signal& signal) {
  if (signal.connection || signal.again || signal.queue.empty()) return;
  if (!connect(signal)) failed(signal, strerror(errno));
}

bool Pusher::connect(Signal& signal) {
  signal.place.reset();
  int fd = socket(endpoint_.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  signal.connection = bufferevent_socket_new(base_, fd, BEV_OPT_CLOSE_ON_FREE);
  if (!signal.connection) {
    ::close(fd);
    return false;
  }
  bufferevent_setcb(
      signal.connection,
      [](bufferevent*, void* r) {
        auto& signal = *static_cast<Signal*>(r);
        signal.pusher.look_at_answer(signal, false);
      },
      nullptr,
      [](bufferevent*, short what, void* r) {
        auto& signal = *static_cast<Signal*>(r);
        if (what & BEV_EVENT_EOF)
          signal.pusher.look_at_answer(signal, true);
        else if (what & BEV_EVENT_ERROR)
          signal.pusher.failed(signal, strerror(EVUTIL_SOCKET_ERROR()));
      },
      &signal);
  auto& body = signal.queue.front().body;
  auto* out = bufferevent_get_output(signal.connection);
  auto head = fmt::format(
      "POST {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: coretap/{}\r\n"
      "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n"
      "Connection: close\r\n",
      endpoint_.path, signal.path, endpoint_.host, kVersion, body.size());
  for (auto& [name, value] : how_.otlp.headers) head += fmt::format("{}: {}\r\n", name, value);
  head += "\r\n";
  evbuffer_add(out, head.data(), head.size());
  evbuffer_add_reference(out, body.data(), body.size(), nullptr, nullptr);
  bufferevent_enable(signal.connection, EV_READ | EV_WRITE);
  if (bufferevent_socket_connect(signal.connection, endpoint_.get(),
                                 static_cast<int>(endpoint_.size)) != 0)
    return false;
  signal.late =
      Event::after(base_, kPatience, [this, &signal] { failed(signal, "no answer in time"); });
  return true;
}

/// Reserves its descriptor: clients' connections count against the same limit.
void Pusher::close(Signal& signal) {
  if (signal.connection) bufferevent_free(std::exchange(signal.connection, nullptr));
  signal.late = {};
  if (!signal.place) signal.place.reset(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
}

void Pusher::look_at_answer(Signal& signal, bool ended) {
  auto* in = bufferevent_get_input(signal.connection);
  auto size = std::min(evbuffer_get_length(in), kMostAnswer);
  auto* bytes = evbuffer_pullup(in, static_cast<ev_ssize_t>(size));
  auto answer = parse_answer({reinterpret_cast<const char*>(bytes), bytes ? size : 0}, ended);
  if (answer)
    answered(signal, *answer);
  else if (ended || size == kMostAnswer)
    failed(signal, "it is no answer of an HTTP server");
}

void Pusher::answered(Signal& signal, const HttpAnswer& answer) {
  if (may_succeed_later(answer.status))
    return failed(signal, fmt::format("status {}", answer.status), answer.retry_after.value_or(0));
  close(signal);
  signal.pause = 0;
  auto items = signal.queue.front().items;
  signal.queue.pop_front();
  std::uint64_t refused = 0;
  if (answer.status / 100 == 2) {
    signal.taken++;
    refused = std::min(metrics::otlp_rejected(answer.body), items);
    signal.items += items - refused;
    if (std::exchange(signal.told_failed, false))
      say(fmt::format("{} are taken again", signal.kind));
    signal.told_queue = false;
  } else {
    signal.refused++;
    refused = items;
  }
  signal.dropped.refused += refused;
  if (refused && !std::exchange(signal.told_refused, true))
    say(fmt::format("{} are refused and dropped: status {}{}{}", signal.kind, answer.status,
                    answer.body.empty() ? "" : ": ",
                    printable(std::string_view(answer.body).substr(0, 200))));
  begin(signal);
  check_finished();
}

void Pusher::failed(Signal& signal, std::string_view why, std::uint64_t least_seconds) {
  std::string reason(why);  // copied before another system call
  close(signal);
  signal.failed++;
  if (!std::exchange(signal.told_failed, true))
    say(fmt::format("{} are not taken, which is tried again: {}", signal.kind, reason));
  if (done_) {
    signal.pause = kLongestWait;
    check_finished();
    return;
  }
  signal.pause = std::clamp(2 * signal.pause, kShortestWait, kLongestWait);
  auto wait = std::clamp(static_cast<double>(least_seconds), spread(signal.pause), kLongestWait);
  signal.again = Event::after(base_, wait, [this, &signal] {
    signal.again = {};
    begin(signal);
  });
}

// ---- the end ----

void Pusher::finish(std::function<void()> done) {
  done_ = std::move(done);
  every_ = {};
  last_ = Event::after(base_, kLastSeconds, [this] { end(); });
  push_events();
  for (auto* signal : {&metrics_, &events_}) {
    signal->again = {};
    signal->pause = 0;
    begin(*signal);
  }
  check_finished();
}

void Pusher::check_finished() {
  if (!done_ || !sources_.empty() || logs_.records()) return;
  for (auto* signal : {&metrics_, &events_})
    if (signal->connection || (!signal->queue.empty() && signal->pause < kLongestWait)) return;
  end();
}

void Pusher::end() {
  std::uint64_t left = logs_.records();
  for (auto& request : events_.queue) left += request.items;
  if (left) say(fmt::format("{} events are dropped at the end", left));
  done_();
}

std::string Pusher::page() const {
  using metrics::Type;
  metrics::Page page;
  using Values = std::vector<std::pair<std::string_view, std::uint64_t>>;
  auto counters = [&](std::string_view name, std::string_view help, std::string_view key,
                      auto values_of) {
    page.family(name, Type::counter, help);
    for (auto* signal : {&metrics_, &events_})
      for (auto& [word, value] : values_of(*signal)) {
        std::vector<std::pair<std::string_view, std::string>> labels{
            {"kind", std::string(signal->kind)}};
        if (!key.empty()) labels.emplace_back(key, word);
        page.sample(name, metrics::labels_text(labels), value);
      }
  };
  counters("coretap_otlp_requests_total",
           "requests that pushed metrics or events, by what became of them; failed ones are made "
           "again",
           "outcome", [](auto& s) {
             return Values{{"taken", s.taken}, {"refused", s.refused}, {"failed", s.failed}};
           });
  counters("coretap_otlp_items_total", "values of metrics and events that were pushed and taken",
           {}, [](auto& s) {
             return Values{{{}, s.items}};
           });
  counters("coretap_otlp_dropped_total",
           "values of metrics and events that were not pushed: no room to wait (queue), refused, "
           "or malformed",
           "reason", [](auto& s) {
             auto& d = s.dropped;
             return Values{{"queue", d.queue}, {"refused", d.refused}, {"malformed", d.malformed}};
           });
  page.one("coretap_otlp_queued_bytes", Type::gauge, "requests that wait, compressed", {},
           std::uint64_t{queued()});
  return page.take();
}

}  // namespace coretap::serve
