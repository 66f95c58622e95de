// Requests pages of metrics from running tools, with a deadline, and joins them to one page.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fd.hpp"
#include "serve/channel.hpp"

namespace coretap::serve {

class Collector {
 public:
  /// A tool that has not answered by then is left out, and not asked again before it has answered.
  static constexpr int kDeadlineMs = 1000;
  /// A longer reply is invalid: the tool is left out from then on.
  static constexpr std::size_t kMostBytes = 16 << 20;

  /// The key of a running tool: a unique number, and its name.
  static std::string key(std::uint64_t number, bool profiles, std::string_view name);
  /// Takes tools that came or went, and the supervisor's page about all tools.
  void take(News news);

  /// The page of all tools that answer in time, and the state of the others.
  std::string page(int deadline_ms = kDeadlineMs);

  /// Requests a profile of the time from now on (0 ms: since the start), in pprof's format. `take`
  /// gets it, or nothing if the tool has gone. False: no tool of this name has profiles.
  using TakeProfile = std::function<void(const std::string& profile)>;
  bool ask_profile(std::string_view name, std::uint32_t ms, TakeProfile take);
  /// Channels of tools with a pending profile; call read() when one is readable.
  std::vector<int> owing() const;
  void read(int channel);

  /// Names of tools that have profiles.
  std::vector<std::string_view> profiles() const;
  std::size_t sources() const { return sources_.size(); }

 private:
  struct Source {
    std::string key, name;
    Fd channel;
    std::uint32_t asked = 0;  // id of the pending request; 0: none
    std::uint64_t asked_ns = 0;
    double seconds = 0;  // duration of the last reply
    std::string partial, page;
    bool fresh = false;  // the page answers the current request
    bool broken = false;
    bool has_profiles = false;
    struct Owed {
      std::uint32_t id;
      TakeProfile take;
    };
    std::vector<Owed> profiles;
  };

  void add(std::string key, Fd channel);
  void remove(std::string_view key);
  bool send(Source& source, std::uint32_t what, std::uint32_t ms);
  static void give_up(Source& source);
  void ask(Source& source);
  void read(Source& source);

  std::list<Source> sources_;
  std::string state_;
  std::uint32_t last_id_ = 0;
};

}  // namespace coretap::serve
