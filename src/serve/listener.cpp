// Uses libevent's evhttp. The process parses untrusted network data, so it has minimal privileges.
#include "serve/listener.hpp"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/memory.hpp"
#include "coretap/clock.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/version.hpp"
#include "kernel/capabilities.hpp"
#include "serve/channel.hpp"
#include "serve/collector.hpp"
#include "serve/endpoint.hpp"
#include "serve/event.hpp"
#include "serve/pusher.hpp"
#include "text/gzip.hpp"

namespace coretap::serve {

namespace {

constexpr int kIdleSeconds = 5;
constexpr int kHeaderBytes = 4096, kBodyBytes = 1 << 20;
constexpr rlim_t kConnections = 16;
constexpr int kBacklog = 64;
constexpr std::size_t kProfiles = 4;        // pending at once; others are refused
constexpr std::uint64_t kMostSeconds = 60;  // longest profile
constexpr int kLateSeconds = 15;            // after a profile's end, until it is given up
constexpr std::size_t kDumps = 4;           // requests pending at once
constexpr int kConflict = 409, kForbidden = 403, kGatewayTimeout = 504;
constexpr std::uint64_t kShareNs = 1'000'000'000;  // requests within one second share a page

struct Waiting;

struct Listener {
  Collector collector;
  Fd news;
  event_base* base = nullptr;
  Event told;  ///< news are readable
  std::string page;
  std::uint64_t made_ns = 0;
  std::size_t profiles = 0;     ///< requests that wait for a profile
  std::vector<Event> channels;  ///< of tools with a pending profile
  rlim_t own_files = 0;         ///< descriptors other than channels and connections
  std::optional<Pusher> pusher;
  DumpAccess dump_access;
  uid_t user = 0;                                           ///< of this process
  std::map<std::uint32_t, std::shared_ptr<Waiting>> dumps;  ///< requests for dumps, by number
  std::uint32_t last_dump = 0;

  /// Lets the kernel refuse connections above the limit.
  void limit_connections() const {
    auto most = own_files + collector.sources() + kConnections;
    if (pusher) most += pusher->descriptors();
    rlimit limit{most, RLIM_INFINITY};
    rlimit now{};
    if (getrlimit(RLIMIT_NOFILE, &now) == 0) limit.rlim_max = now.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  const std::string& current() {
    auto now = monotonic_ns();
    if (!made_ns || now - made_ns >= kShareNs) {
      page = collector.page();
      made_ns = monotonic_ns();
    }
    return page;
  }
};

constexpr char kText[] = "text/plain; charset=utf-8", kBytes[] = "application/octet-stream",
               kJson[] = "application/json";

void reply(evhttp_request* request, int status, const char* type, std::string_view text) {
  auto* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", type);
  auto* accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept-Encoding");
  std::string zipped;
  if (type != kBytes && accept && strstr(accept, "gzip") && text.size() > 1024)
    zipped = gzip(text, Compression::fast);
  if (!zipped.empty()) {
    evhttp_add_header(headers, "Content-Encoding", "gzip");
    text = zipped;
  }
  evbuffer* body = evbuffer_new();
  if (!body || evbuffer_add(body, text.data(), text.size()) != 0) status = 500;
  evhttp_send_reply(request, status, nullptr, body);
  if (body) evbuffer_free(body);
}

void end_connection(evhttp_request* request) {
  evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
}

/// Watches tools with a pending profile.
void watch_channels(Listener& l) {
  l.channels.clear();
  for (int channel : l.collector.owing())
    l.channels.push_back(Event::readable(l.base, channel, [&l, channel] {
      l.collector.read(channel);
      watch_channels(l);
    }));
}

/// A request that waits for its profile or dump.
struct Waiting {
  evhttp_request* request;  ///< null: answered
  std::size_t* pending = nullptr;
  Event late = {};

  void answer(int status, const char* type, std::string_view text) {
    if (!request) return;
    if (pending) --*pending;
    reply(std::exchange(request, nullptr), status, type, text);
  }
};

std::string profile_paths(const Listener& l) {
  std::string text;
  for (auto name : l.collector.profiles()) text += fmt::format("/debug/pprof/{}\n", name);
  return text.empty() ? "none of the tools has profiles\n" : text;
}

/// `seconds`: length of the profile; empty: since the tool started.
void answer_profile(evhttp_request* request, Listener& l, const std::string& name,
                    std::string_view seconds) {
  auto number = seconds.empty() ? 0 : parse_unsigned(seconds).value_or(UINT64_MAX);
  if (number > kMostSeconds)
    return reply(request, HTTP_BADREQUEST, kText,
                 fmt::format("seconds: a whole number of up to {}\n", kMostSeconds));
  if (l.profiles >= kProfiles)
    return reply(request, HTTP_SERVUNAVAIL, kText, "too many profiles are waited for\n");
  auto waiting = std::make_shared<Waiting>(Waiting{request, &l.profiles});
  l.profiles++;
  auto take = [waiting](const std::string& profile) {
    if (profile.empty())
      waiting->answer(HTTP_SERVUNAVAIL, kText, "the tool has ended\n");
    else if (waiting->request) {
      // Clients wait before they request more, and would find this connection closed.
      end_connection(waiting->request);
      waiting->answer(HTTP_OK, kBytes, profile);
    }
  };
  if (!l.collector.ask_profile(name, static_cast<std::uint32_t>(number * 1000), take))
    return waiting->answer(HTTP_NOTFOUND, kText, profile_paths(l));
  waiting->late = Event::after(
      l.base, static_cast<double>(number + kLateSeconds),
      [w = waiting.get()] { w->answer(kGatewayTimeout, kText, "the tool does not answer\n"); });
  watch_channels(l);
}

// ---- dumps ----

enum class Asks { nobody, local, user };

/// Compares in a time that does not depend on the place of a difference.
bool same_token(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() != b.size();
  for (std::size_t i = 0; i < a.size() && i < b.size(); i++)
    differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return !differs;
}

bool is_loopback(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(from).sin_addr.s_addr) >> 24 == 127;
  if (from.ss_family != AF_INET6) return false;
  auto& address = reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) ||
         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

/// By the address or the user of the other end, or by the token.
Asks asks(evhttp_request* request, const Listener& l) {
  auto* headers = evhttp_request_get_input_headers(request);
  constexpr std::string_view kBearer = "Bearer ";
  if (auto* given = evhttp_find_header(headers, "Authorization")) {
    std::string_view token = given;
    if (!token.starts_with(kBearer) || l.dump_access.token.empty()) return Asks::nobody;
    token.remove_prefix(kBearer.size());
    return same_token(token, l.dump_access.token) ? Asks::user : Asks::nobody;
  }
  // A page in a browser of this machine, or a proxy, asks for others.
  for (auto* header : {"Origin", "Forwarded", "X-Forwarded-For"})
    if (evhttp_find_header(headers, header)) return Asks::nobody;
  auto* connection = evhttp_request_get_connection(request);
  auto* stream = connection ? evhttp_connection_get_bufferevent(connection) : nullptr;
  const int fd = stream ? bufferevent_getfd(stream) : -1;
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&from), &size) != 0) return Asks::nobody;
  if (from.ss_family != AF_UNIX) return is_loopback(from) ? Asks::local : Asks::nobody;
  ucred peer{};
  size = sizeof peer;
  const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  return known && (peer.uid == 0 || peer.uid == l.user) ? Asks::user : Asks::local;
}

/// Of "last=2m": milliseconds; 0: there is no query.
Result<std::uint64_t> last_of(const evhttp_uri* uri) {
  const std::string hint = "POST /dump?last=2m saves the last two minutes";
  auto* query = evhttp_uri_get_query(uri);
  if (!query || !*query) return std::uint64_t{0};
  evkeyvalq values{};
  if (evhttp_parse_query_str(query, &values) != 0)
    return usage("the words after ? are not NAME=VALUE", hint);
  std::optional<std::string> last;
  std::string other;
  for (auto* one = values.tqh_first; one; one = one->next.tqe_next) {
    if (std::string_view(one->key) == "last" && !last)
      last = one->value;
    else
      other = one->key;
  }
  evhttp_clear_headers(&values);
  if (!other.empty())
    return usage(fmt::format("'{}' is not known here, or given twice", printable(other)), hint);
  const auto seconds = parse_seconds(last.value_or(""));
  constexpr double kLeast = 0.001, kMost = 1e9;
  if (!seconds || !(*seconds >= kLeast) || *seconds > kMost)
    return usage(fmt::format("last: '{}' is not a time", printable(last.value_or(""))), hint);
  return static_cast<std::uint64_t>(*seconds * 1e3);
}

void answer_dump(evhttp_request* request, Listener& l) {
  if (evhttp_request_get_command(request) != EVHTTP_REQ_POST) {
    evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "POST");
    return reply(request, HTTP_BADMETHOD, kText, "a dump is made by POST\n");
  }
  const auto who = asks(request, l);
  if (who == Asks::nobody)
    return reply(request, kForbidden, kText,
                 "dumps are for requests from this machine, or with the token of token_file\n");
  if (!l.dump_access.any)
    return reply(request, kConflict, kText,
                 "nothing is recorded: the configuration has no [hindsight]\n");
  if (l.dumps.size() >= kDumps)
    return reply(request, HTTP_SERVUNAVAIL, kText, "too many dumps are waited for\n");
  const auto last_ms = last_of(evhttp_request_get_evhttp_uri(request));
  if (!last_ms)
    return reply(request, HTTP_BADREQUEST, kText,
                 fmt::format("{}; {}\n", last_ms.error().what, last_ms.error().hint));
  const auto id = ++l.last_dump;
  const auto text = fmt::format("{}{} {} {}", kWantsDump, id, who == Asks::user ? 1 : 0, *last_ms);
  if (send(l.news.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return reply(request, HTTP_SERVUNAVAIL, kText, "the service is busy\n");
  auto waiting = std::make_shared<Waiting>(Waiting{request});
  waiting->late = Event::after(l.base, kLateSeconds, [&l, id] {
    auto node = l.dumps.extract(id);
    if (node) node.mapped()->answer(kGatewayTimeout, kText, "the service does not answer\n");
  });
  l.dumps.emplace(id, std::move(waiting));
}

/// "ID 1 JSON" or "ID 0 words".
void take_dumped(Listener& l, std::string_view text) {
  const auto id = parse_unsigned(take_until(text, ' '));
  const bool good = take_until(text, ' ') == "1";
  auto found = l.dumps.find(static_cast<std::uint32_t>(id.value_or(0)));
  if (found == l.dumps.end()) return;
  found->second->answer(good ? HTTP_OK : HTTP_SERVUNAVAIL, good ? kJson : kText,
                        fmt::format("{}\n", text));
  l.dumps.erase(found);
}

constexpr std::string_view kDumpPath = "/dump";
constexpr std::string_view kProfilePath = "/debug/pprof/", kSymbolPath = "/debug/pprof/symbol";

std::string decoded(std::string_view part) {
  std::unique_ptr<char, decltype(&free)> plain(
      evhttp_uridecode(std::string(part).c_str(), 0, nullptr), free);
  return plain ? plain.get() : "";
}

std::string seconds_of(const evhttp_uri* uri) {
  evkeyvalq values{};
  auto* query = evhttp_uri_get_query(uri);
  if (!query || evhttp_parse_query_str(query, &values) != 0) return "";
  auto* seconds = evhttp_find_header(&values, "seconds");
  std::string text = seconds ? seconds : "";
  evhttp_clear_headers(&values);
  return text;
}

void answer(evhttp_request* request, void* context) {
  auto& l = *static_cast<Listener*>(context);
  auto* uri = evhttp_request_get_evhttp_uri(request);
  auto* path = uri ? evhttp_uri_get_path(uri) : nullptr;
  std::string_view at = path ? path : "";
  if (at == kSymbolPath) {
    // pprof requests names for functions without one, and rejects the profile without an answer.
    // It opens a connection for each file, and keeps all of them open.
    end_connection(request);
    return reply(request, HTTP_OK, kText, "num_symbols: 0\n");
  }
  if (at == kDumpPath) return answer_dump(request, l);
  if (evhttp_request_get_command(request) == EVHTTP_REQ_POST)
    return reply(request, HTTP_BADMETHOD, kText, "there is nothing to post\n");
  if (at == "/metrics")
    reply(request, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
          l.pusher ? l.current() + l.pusher->page() : l.current());
  else if (at == "/" || at.empty())
    reply(request, HTTP_OK, kText,
          "coretap: metrics are at /metrics, profiles at /debug/pprof/NAME?seconds=N\n");
  else if (at == kProfilePath || at == kProfilePath.substr(0, kProfilePath.size() - 1))
    reply(request, HTTP_OK, kText, profile_paths(l));
  else if (at.starts_with(kProfilePath))
    answer_profile(request, l, decoded(at.substr(kProfilePath.size())), seconds_of(uri));
  else
    reply(request, HTTP_NOTFOUND, kText, "there are only /metrics and /debug/pprof/\n");
}

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "";
}

void end(Listener& l) {
  auto stop = [&l] { event_base_loopbreak(l.base); };
  if (!l.pusher) return stop();
  l.told = {};
  l.pusher->finish(stop);
}

void take_news(Listener& l) {
  while (auto news = receive_news(l.news.get())) {
    switch (news->what) {
      case News::came:
      case News::state:
        l.collector.take(std::move(*news));
        break;
      case News::went:
        l.channels.clear();  // one of them will be closed
        l.collector.take(std::move(*news));
        watch_channels(l);
        break;
      case News::dumped:
        take_dumped(l, news->text);
        continue;
      case News::events:
        if (l.pusher) l.pusher->add_source(std::move(news->text), std::move(news->channel));
        break;
      case News::last:
        // Twice: the first push of a new series is 0.
        for (int i = 0; i < 2 && l.pusher; i++) {
          l.made_ns = 0;
          l.pusher->push_metrics();
        }
        send(l.news.get(), &kDone, sizeof kDone, MSG_NOSIGNAL | MSG_DONTWAIT);
        break;
      default:
        end(l);
        return;
    }
    l.made_ns = 0;
    l.limit_connections();
  }
}

/// At the limit of connections, further ones wait in the kernel.
void too_many(evconnlistener* accepting, void*) {  // the context belongs to libevent
  evconnlistener_disable(accepting);
  timeval wait{0, 100'000};
  event_base_once(
      evconnlistener_get_base(accepting), -1, EV_TIMEOUT,
      [](evutil_socket_t, short, void* c) {
        evconnlistener_enable(static_cast<evconnlistener*>(c));
      },
      accepting, &wait);
}

constexpr std::string_view kAllowedCalls =
    "read write readv writev recvfrom recvmsg sendto sendmsg sendfile lseek fstat newfstatat fcntl "
    "ioctl close accept accept4 shutdown getsockname getpeername getsockopt setsockopt "
    "poll ppoll epoll_wait epoll_pwait epoll_pwait2 epoll_ctl "
    "brk mmap munmap mremap madvise mprotect futex "
    "clock_gettime gettimeofday clock_nanosleep getrandom getpid prlimit64 getrlimit setrlimit "
    "exit exit_group rt_sigreturn rt_sigaction rt_sigprocmask restart_syscall";

/// All other system calls fail with EPERM, and the process continues.
void confine(const std::optional<Otlp>& otlp) {
  auto* filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (!filter) return;
  for (auto rest = kAllowedCalls; !rest.empty();) {
    const std::string name(take_until(rest, ' '));
    if (int number = seccomp_syscall_resolve_name(name.c_str()); number != __NR_SCMP_ERROR)
      seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
  }
  if (otlp) {
    const auto family = parse_endpoint(otlp->endpoint)->get()->sa_family;
    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(connect), 0);
  }
  seccomp_load(filter);
  seccomp_release(filter);
}

}  // namespace

Result<Fd> listening_socket(const std::string& address) {
  constexpr int kFirstPassed = 3;
  auto* pid = getenv("LISTEN_PID");
  auto* count = getenv("LISTEN_FDS");
  if (pid && count && parse_unsigned(pid) == static_cast<std::uint64_t>(getpid()) &&
      parse_unsigned(count).value_or(0) >= 1)
    return Fd(kFirstPassed);
  auto fail = [&](std::string_view what) -> Error {
    return {fmt::format("cannot {} {}", what, address), strerror(errno), {}, kFailed};
  };
  constexpr std::string_view kUnix = "unix:";
  const bool is_unix = address.starts_with(kUnix);
  const auto path = is_unix ? address.substr(kUnix.size()) : std::string();
  auto to = is_unix ? unix_address(path) : ip_address(address);
  if (!to && is_unix)
    return usage(fmt::format("listen: '{}' is no absolute path of a socket", address));
  if (!to)
    return usage(fmt::format("listen: '{}' is no address and port", address),
                 "127.0.0.1:9961, [::1]:9961 or unix:/run/coretap/metrics");
  struct stat old {};
  if (is_unix && lstat(path.c_str(), &old) == 0 && S_ISSOCK(old.st_mode)) {
    Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(probe.get(), to->get(), to->size) == 0 || errno == EAGAIN)
      return Error{fmt::format("cannot listen at {}", address), "another process listens there",
                   "give another address, or end that process"};
    unlink(path.c_str());  // the process that made it has ended
  }
  Fd fd(socket(to->get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail("open a socket for");
  int one = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd.get(), to->get(), to->size) != 0) return fail("listen at");
  if (is_unix) chmod(path.c_str(), 0660);
  if (listen(fd.get(), kBacklog) != 0) return fail("listen at");
  return fd;
}

void run_listener(Fd socket, Fd news, const std::optional<Otlp>& otlp, const DumpAccess& dumps,
                  std::uint64_t served_since_ns) {
  Listener l;
  l.dump_access = dumps;
  l.user = geteuid();
  l.news = std::move(news);
  l.base = event_base_new();
  auto* http = l.base ? evhttp_new(l.base) : nullptr;
  if (!http) _exit(kFailed);
  evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
  evhttp_set_max_headers_size(http, kHeaderBytes);
  evhttp_set_max_body_size(http, kBodyBytes);
  evhttp_set_timeout(http, kIdleSeconds);
  evhttp_set_gencb(http, answer, &l);
  evutil_make_socket_nonblocking(socket.get());
  auto* bound = evhttp_accept_socket_with_handle(http, socket.get());
  if (!bound) _exit(kFailed);
  evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), too_many);
  l.told = Event::readable(l.base, l.news.get(), [&l] { take_news(l); });
  if (!l.told) _exit(kFailed);
  Fd next(dup(l.news.get()));
  l.own_files = static_cast<rlim_t>(next.get());
  next.reset();
  if (otlp)
    l.pusher.emplace(l.base, Pusher::How{.otlp = *otlp,
                                         .resource = {kVersion, host_name()},
                                         .served_since_ns = served_since_ns,
                                         .page = [&l] { return l.current(); },
                                         .descriptors_change = [&l] { l.limit_connections(); }});
  l.limit_connections();
  retain_capabilities({});
  give_memory_back();
  confine(otlp);
  event_base_dispatch(l.base);
  _exit(kOk);
}

}  // namespace coretap::serve
