// Asks running tools for their pages of metrics, with a deadline, and makes one page of them.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"

namespace coretap::serve {

class Collector {
 public:
  /// One that has not answered by then is left out, and not asked again before it has.
  static constexpr int kDeadlineMs = 1000;
  /// A longer reply is none of ours: the tool is left out from then on.
  static constexpr std::size_t kMostBytes = 16 << 20;

  /// A tool that runs: a number that no other has, and its name.
  static std::string key(std::uint64_t number, bool profiles, std::string_view name);
  /// `channel` is this end of its requests and replies.
  void add(std::string key, Fd channel);
  void remove(std::string_view key);
  /// What the supervisor says of all tools, a page of its own.
  void set_state(std::string page) { state_ = std::move(page); }

  /// The page of all tools that answer in time, and what is known of the others.
  std::string page(int deadline_ms = kDeadlineMs);

  /// Asks for a profile of the time from now on (0 ms: since the start), in pprof's format. `take`
  /// gets it, or nothing: the tool has gone. False: no tool of this name has profiles.
  using TakeProfile = std::function<void(const std::string& profile)>;
  bool ask_profile(std::string_view name, std::uint32_t ms, TakeProfile take);
  /// Channels of tools that owe a profile; read() is for when one can be read.
  std::vector<int> owing() const;
  void read(int channel);

  /// Of the tools that have profiles.
  std::vector<std::string_view> profiles() const;
  std::size_t sources() const { return sources_.size(); }

 private:
  struct Source {
    std::string key, name;
    Fd channel;
    std::uint32_t asked = 0;  // id of the request that is under way; 0: none
    std::uint64_t asked_ns = 0;
    double seconds = 0;  // that the last reply took
    std::string partial, page;
    bool fresh = false;  // the page answers the request at hand
    bool broken = false;
    bool has_profiles = false;
    struct Owed {
      std::uint32_t id;
      TakeProfile take;
    };
    std::vector<Owed> profiles;
  };

  bool send(Source& source, std::uint32_t what, std::uint32_t ms);
  static void give_up(Source& source);
  bool ask(Source& source);
  void read(Source& source);

  std::list<Source> sources_;
  std::string state_;
  std::uint32_t last_id_ = 0;
};

}  // namespace coretap::serve
