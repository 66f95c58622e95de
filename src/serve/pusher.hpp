// Pushes metrics and events by OTLP over HTTP, in the process that answers requests. Nothing waits
// for it: data that cannot be pushed is queued up to a limit, and counted when it is dropped.
//
// It does not use the client of evhttp: in libevent 2.1 that cannot connect to Unix sockets, and
// calls the resolver, which blocks.
#pragma once
#include <event2/bufferevent.h>

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>

#include "coretap/fd.hpp"
#include "metrics/otlp.hpp"
#include "serve/config.hpp"
#include "serve/endpoint.hpp"
#include "serve/event.hpp"
#include "serve/http_answer.hpp"

namespace coretap::serve {

class Pusher {
 public:
  struct How {
    Otlp otlp;
    metrics::OtlpResource resource;
    std::uint64_t served_since_ns;             ///< start of the service, in ns since 1970
    std::function<std::string()> page;         ///< of all tools, current
    std::function<void()> descriptors_change;  ///< their number may have changed
  };
  Pusher(event_base* base, How how);
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  /// Reads lines of events from `events` until its other end is closed.
  void add_source(std::string entry, Fd events);
  /// The maximum number of open descriptors.
  std::size_t descriptors() const { return sources_.size() + 2; }

  /// Its metrics about itself, as a page.
  std::string page() const;
  void push_metrics();

  /// Sends pending data once; calls back when it is sent, or when the time is over.
  void finish(std::function<void()> done);

 private:
  struct Source {
    std::string entry;
    Fd events;
    Event readable = {};
    std::string partial = {};
    bool too_long = false;  ///< the bytes up to the next newline belong to a line that is too long
  };
  struct Request {
    std::string body;
    std::uint64_t items;  ///< data points or records
  };
  struct Dropped {
    std::uint64_t queue = 0, refused = 0, malformed = 0;
  };
  /// Metrics or events, which OpenTelemetry calls signals: each has its own connection, so that
  /// neither waits for the other.
  struct Signal {
    Pusher& pusher;
    std::string_view kind, path;
    std::list<Request> queue = {};  ///< the first one is in progress, if there is a connection
    bufferevent* connection = nullptr;
    Fd place = {};  ///< a descriptor reserved against clients
    Event late = {}, again = {};
    double pause = 0;  ///< seconds before the next attempt after a failure
    std::uint64_t taken = 0, refused = 0, failed = 0, items = 0;  ///< requests; items of the taken
    Dropped dropped = {};
    bool told_failed = false, told_refused = false, told_queue = false;
  };

  void say(std::string_view text) const;

  void read(Source& source);
  void take_lines(Source& source);
  void push_events();

  void add(Signal& signal, std::string_view message, std::uint64_t items);
  bool make_room(Signal& signal, std::size_t bytes);
  std::size_t queued() const;
  void begin(Signal& signal);
  bool connect(Signal& signal);
  void close(Signal& signal);
  void look_at_answer(Signal& signal, bool ended);
  void answered(Signal& signal, const HttpAnswer& answer);
  void failed(Signal& signal, std::string_view why, std::uint64_t least_seconds = 0);
  void check_finished();
  void end();

  event_base* base_;
  How how_;
  Endpoint endpoint_;
  std::uint64_t since_ns_;
  std::list<Source> sources_;
  Signal metrics_, events_;
  metrics::OtlpLogs logs_;
  Event every_, batch_, last_;
  std::function<void()> done_;  ///< set: it is to end
};

}  // namespace coretap::serve
