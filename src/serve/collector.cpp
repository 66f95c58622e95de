#include "serve/collector.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/uninterrupted.hpp"
#include "coretap/clock.hpp"
#include "metrics/exporter.hpp"
#include "metrics/page.hpp"

namespace coretap::serve {

std::string Collector::key(std::uint64_t number, bool profiles, std::string_view name) {
  return fmt::format("{}{}/{}", number, profiles ? "+" : "", name);
}

void Collector::take(News news) {
  if (news.what == News::came) add(std::move(news.text), std::move(news.channel));
  if (news.what == News::went) remove(news.text);
  if (news.what == News::state) state_ = std::move(news.text);
}

void Collector::add(std::string key, Fd channel) {
  auto slash = key.find('/');
  auto name = key.substr(slash + 1);
  bool profiles = slash > 0 && key[slash - 1] == '+';
  sources_.push_back({.key = std::move(key),
                      .name = std::move(name),
                      .channel = std::move(channel),
                      .has_profiles = profiles});
}

void Collector::remove(std::string_view key) {
  for (auto& s : sources_)
    if (s.key == key) give_up(s);
  std::erase_if(sources_, [&](auto& s) { return s.key == key; });
}

/// Marks the source as broken; its pending profiles get no data.
void Collector::give_up(Source& s) {
  s.broken = true;
  for (auto& owed : std::exchange(s.profiles, {})) owed.take({});
}

bool Collector::send(Source& s, std::uint32_t what, std::uint32_t ms) {
  metrics::Request request{++last_id_, static_cast<metrics::Request::What>(what), ms};
  auto sent = uninterrupted([&] {
    return ::send(s.channel.get(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
  if (sent == static_cast<ssize_t>(sizeof request)) return true;
  give_up(s);
  return false;
}

void Collector::ask(Source& s) {
  s.fresh = false;
  // If an answer is still pending, it may be readable.
  if (s.broken || s.asked || !send(s, metrics::Request::page, 0)) return;
  s.asked = last_id_;
  s.asked_ns = monotonic_ns();
}

void Collector::read(Source& s) {
  char buffer[64 << 10];
  auto n = recv(s.channel.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return give_up(s);
  s.partial.append(buffer, static_cast<std::size_t>(n));
  metrics::ReplyHead head{};
  while (s.partial.size() >= sizeof head) {
    memcpy(&head, s.partial.data(), sizeof head);
    if (head.bytes > kMostBytes) return give_up(s);
    if (s.partial.size() < sizeof head + head.bytes) return;
    if (head.id == s.asked) {
      s.page = s.partial.substr(sizeof head, head.bytes);
      s.seconds = static_cast<double>(monotonic_ns() - s.asked_ns) / 1e9;
      s.asked = 0;
      s.fresh = true;
    }
    auto owed = std::ranges::find(s.profiles, head.id, &Source::Owed::id);
    TakeProfile take;
    std::string profile;
    if (owed != s.profiles.end()) {
      take = std::move(owed->take);
      profile = s.partial.substr(sizeof head, head.bytes);
      s.profiles.erase(owed);
    }
    s.partial.erase(0, sizeof head + head.bytes);
    if (take) take(profile);
  }
}

bool Collector::ask_profile(std::string_view name, std::uint32_t ms, TakeProfile take) {
  for (auto& s : sources_) {
    if (s.name != name || !s.has_profiles || s.broken || !send(s, metrics::Request::profile, ms))
      continue;
    s.profiles.push_back({last_id_, std::move(take)});
    return true;
  }
  return false;
}

std::vector<int> Collector::owing() const {
  std::vector<int> channels;
  for (auto& s : sources_)
    if (!s.profiles.empty()) channels.push_back(s.channel.get());
  return channels;
}

void Collector::read(int channel) {
  for (auto& s : sources_)
    if (s.channel.get() == channel) return read(s);
}

std::vector<std::string_view> Collector::profiles() const {
  std::vector<std::string_view> all;
  for (auto& s : sources_)
    if (s.has_profiles) all.push_back(s.name);
  return all;
}

std::string Collector::page(int deadline_ms) {
  auto deadline = monotonic_ns() + static_cast<std::uint64_t>(deadline_ms) * 1'000'000;
  // Sources with an overdue answer are read, but not waited for.
  auto waits = [&](const Source& s) {
    return !s.fresh && !s.broken && s.asked &&
           s.asked_ns + static_cast<std::uint64_t>(deadline_ms) * 1'000'000 >= monotonic_ns();
  };
  for (auto& s : sources_) {
    ask(s);
    read(s);
  }
  while (true) {
    std::vector<pollfd> wait;
    std::vector<Source*> which;
    for (auto& s : sources_)
      if (waits(s)) {
        wait.push_back({s.channel.get(), POLLIN, 0});
        which.push_back(&s);
      }
    auto now = monotonic_ns();
    if (wait.empty() || now >= deadline) break;
    auto ms = static_cast<int>((deadline - now) / 1'000'000 + 1);
    if (::poll(wait.data(), wait.size(), ms) <= 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < wait.size(); i++)
      if (wait[i].revents) read(*which[i]);
  }
  metrics::MergedPage all;
  metrics::Page up;
  up.family("coretap_tool_up", metrics::Type::gauge, "1: the tool runs and answered this request");
  for (auto& s : sources_)
    up.sample("coretap_tool_up", metrics::labels_text({{"tool", s.name}}), std::uint64_t{s.fresh});
  up.family("coretap_tool_collect_seconds", metrics::Type::gauge,
            "time until the tool answered this request");
  for (auto& s : sources_)
    if (s.fresh)
      up.sample("coretap_tool_collect_seconds", metrics::labels_text({{"tool", s.name}}),
                fmt::format("{:.6f}", s.seconds));
  for (auto& s : sources_)
    if (s.fresh) all.add(s.page);
  all.add(up.take());
  all.add(state_);
  return all.text();
}

}  // namespace coretap::serve
