#include "mcp/mcp.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/uninterrupted.hpp"
#include "cli/naming.hpp"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "coretap/tool.hpp"
#include "coretap/version.hpp"
#include "mcp/message.hpp"
#include "mcp/offer.hpp"
#include "mcp/running.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace mcp {
namespace {

constexpr std::string_view kVersions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
constexpr std::size_t kMostCalls = 4;
constexpr std::string_view kInstructions =
    "Tools that observe this Linux machine and change nothing. Each call observes for some seconds "
    "and answers with one JSON object per line; the last one, ledger, tells what was lost. Begin "
    "with why: it names causes and the tool that shows more.";

class Server {
 public:
  explicit Server(std::vector<std::string> names) : names_(std::move(names)) {}

  int run() {
    sigset_t ends;
    sigemptyset(&ends);
    for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    signals_ = Fd(signalfd(-1, &ends, SFD_CLOEXEC));
    if (!signals_) return print_error("coretap", system_error("mcp: cannot wait", errno));
    while (!ended_ || !calls_.empty()) wait();
    return failed_ ? kFailed : kOk;
  }

 private:
  void wait() {
    std::vector<pollfd> all;
    if (!ended_) {
      all.push_back({STDIN_FILENO, POLLIN, 0});
      all.push_back({signals_.get(), POLLIN, 0});
    }
    auto now = monotonic_ns(), next = UINT64_MAX;
    for (auto& call : calls_) {
      next = std::min(next, call.hurry(now));
      for (int fd : {call.output(), call.errors(), call.end()})
        if (fd >= 0) all.push_back({fd, POLLIN, 0});
    }
    constexpr std::uint64_t kMillisecond = 1'000'000;
    const auto timeout =
        next == UINT64_MAX ? -1 : static_cast<int>((next - std::min(next, now)) / kMillisecond + 1);
    if (poll(all.data(), all.size(), timeout) < 0 && errno != EINTR) {
      print_error("coretap", system_error("mcp: cannot wait", errno));
      failed_ = true;
      end();
    }
    if (!ended_ && all[1].revents) end();
    if (!ended_ && all[0].revents) read();
    for (auto call = calls_.begin(); call != calls_.end();) {
      call->read();
      if (!call->is_over()) {
        ++call;
        continue;
      }
      if (!call->cancelled) write(call->answer());
      call = calls_.erase(call);
    }
  }

  /// The client waits for no answers any more.
  void end() {
    ended_ = true;
    for (auto& call : calls_) cancel(call);
  }
  static void cancel(Running& call) {
    call.cancelled = true;
    call.stop(monotonic_ns());
  }

  void read() {
    char bytes[1 << 16];
    auto got = uninterrupted([&] { return ::read(STDIN_FILENO, bytes, sizeof bytes); });
    if (got <= 0) {
      if (!pending_.empty()) take(std::exchange(pending_, {}));
      return end();
    }
    std::string_view rest(bytes, static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const auto size = std::min(rest.find('\n'), rest.size());
      const bool whole = size < rest.size();
      auto part = rest.substr(0, size);
      rest.remove_prefix(size + (whole ? 1 : 0));
      // One byte more than allowed is kept, so that the message is refused.
      pending_ += part.substr(0, kMostBytes + 1 - std::min(kMostBytes + 1, pending_.size()));
      if (whole) take(std::exchange(pending_, {}));
    }
  }

  void take(const std::string& line) {
    if (line.find_first_not_of(" \t\r") == line.npos) return;
    auto message = message_in(line);
    if (auto* wrong = std::get_if<Failure>(&message)) return write(failure(*wrong));
    if (auto* request = std::get_if<Request>(&message)) answer(*request);
  }

  void answer(const Request& request) {
    if (request.is_notification()) {
      if (request.method == "notifications/cancelled") {
        const auto id = id_in(member(request.params(), "requestId"));
        for (auto& call : calls_)
          if (call.id == id && !std::holds_alternative<std::monostate>(id)) cancel(call);
      }
      return;
    }
    if (request.method == "initialize") return initialize(request);
    if (request.method == "ping") return empty(request);
    if (request.method == "tools/list") return list(request);
    if (request.method == "tools/call") return call(request);
    refuse(request, kNoMethod, "there is no such method");
  }

  void refuse(const Request& request, int code, std::string words) {
    write(failure({request.id, code, std::move(words)}));
  }
  void empty(const Request& request) {
    JsonLine line;
    begin_answer(line, request.id);
    line.key("result").begin_object().end_object();
    write(line.finish());
  }

  void initialize(const Request& request) {
    auto version = kVersions[0];
    if (auto* wanted = member(request.params(), "protocolVersion"); wanted && wanted->IsString())
      for (auto known : kVersions)
        if (known == wanted->GetString()) version = known;
    JsonLine line;
    begin_answer(line, request.id);
    line.key("result").begin_object().text("protocolVersion", version);
    line.key("capabilities").begin_object().key("tools").begin_object().end_object().end_object();
    line.key("serverInfo").begin_object().text("name", "coretap").text("version", kVersion);
    line.end_object().text("instructions", kInstructions).end_object();
    write(line.finish());
  }

  void list(const Request& request) {
    JsonLine line;
    begin_answer(line, request.id);
    line.key("result").begin_object().key("tools").begin_array();
    for (auto& name : names_) describe(line, offer_of(name));
    line.end_array().end_object();
    write(line.finish());
  }

  void call(const Request& request) {
    auto* name = member(request.params(), "name");
    if (!name || !name->IsString())
      return refuse(request, kInvalidParams, "the name of a tool is missing");
    if (std::ranges::find(names_, std::string_view(name->GetString())) == names_.end())
      return refuse(request, kInvalidParams, "there is no such tool");
    if (std::ranges::count(calls_, request.id, &Running::id))
      return refuse(request, kInvalidRequest, "a call of this id is under way");
    auto call = call_of(offer_of(name->GetString()), member(request.params(), "arguments"));
    if (!call)
      return refuse(request, kInvalidParams,
                    call.error().what +
                        (call.error().hint.empty() ? "" : fmt::format(" ({})", call.error().hint)));
    if (calls_.size() >= kMostCalls)
      return refuse(request, kBusy,
                    fmt::format("{} calls are under way: try again later", kMostCalls));
    calls_.emplace_back(request.id, call->seconds);
    if (auto r = calls_.back().start(*call); !r) {
      calls_.pop_back();
      refuse(request, kBusy, fmt::format("{}: {}", r.error().what, r.error().why));
    }
  }

  /// A client that does not read its answers must not keep signals from ending this.
  void write(std::string_view message) {
    std::string line(message);
    line += '\n';
    for (std::string_view rest = line; !rest.empty() && !failed_;) {
      pollfd ready[] = {{STDOUT_FILENO, POLLOUT, 0}, {signals_.get(), POLLIN, 0}};
      if (poll(ready, 2, -1) < 0 && errno == EINTR) continue;
      const bool told = ready[1].revents && !(ready[0].revents & POLLOUT);
      // That much a pipe takes at once if it takes anything.
      auto part = rest.substr(0, PIPE_BUF);
      auto put =
          told ? 0
               : uninterrupted([&] { return ::write(STDOUT_FILENO, part.data(), part.size()); });
      if (put <= 0) {
        failed_ = true;
        end();
        return;
      }
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
  }

  std::vector<std::string> names_;
  Fd signals_;
  std::list<Running> calls_;
  std::string pending_;
  bool ended_ = false, failed_ = false;
};

}  // namespace
}  // namespace mcp

int run_mcp(const Config&, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  if (words.empty()) {
    names.emplace_back(mcp::kWhyTool);
    for (auto& tool : registry()) names.emplace_back(tool.name);
  }
  for (auto& word : words) {
    if (word != mcp::kWhyTool && !find_tool(word)) {
      auto error = no_such_tool(word);
      error.what = "mcp: " + error.what;
      return print_error("coretap", error);
    }
    if (std::ranges::find(names, word) == names.end()) names.push_back(word);
  }
  return mcp::Server(std::move(names)).run();
}

}  // namespace coretap
