// Asks running tools for their pages of metrics, with a deadline, and makes one page of them.
#pragma once
#include <cstdint>
#include <list>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace coretap::serve {

class Collector {
 public:
  /// One that has not answered by then is left out, and not asked again before it has.
  static constexpr int kDeadlineMs = 1000;
  /// A longer reply is none of ours: the tool is left out from then on.
  static constexpr std::size_t kMostBytes = 16 << 20;

  /// A tool that runs; `channel` is this end of its requests and replies. `key`: "7/biolatency", a
  /// number that no other has, and the name.
  void add(std::string key, Fd channel);
  void remove(std::string_view key);
  /// What the supervisor says of all tools, a page of its own.
  void set_state(std::string page) { state_ = std::move(page); }

  /// The page of all tools that answer in time, and what is known of the others.
  std::string page(int deadline_ms = kDeadlineMs);

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
  };

  bool ask(Source& source);
  void read(Source& source);

  std::list<Source> sources_;
  std::string state_;
  std::uint32_t last_id_ = 0;
};

}  // namespace coretap::serve
