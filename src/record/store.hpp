// The directory of a flight recorder: a ring of segments, of which the oldest are removed, and
// dumps: directories of links to the segments around a trigger. All of it has a limit of size.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"
#include "record/segments.hpp"

namespace coretap::record {

inline constexpr std::string_view kRingDirectory = "ring", kDumpReason = "why.json";

struct StoreOptions {
  std::string directory;
  double last = 300, after = 30;   ///< seconds around a trigger
  std::uint64_t most = 256 << 20;  ///< bytes of ring and dumps together
  std::uint64_t keep = 20;         ///< dumps
  /// Bytes that stay free in the file system; 0: 64 MB or a twentieth of it.
  std::uint64_t free = 0;
  std::uint64_t dumps = 1;                    ///< by triggers other than the user's ...
  double per = 600;                           ///< ... in this number of seconds
  std::function<void(std::string_view)> say;  ///< prints a message
  /// The reason of a dump has neither the host nor the tools' command lines.
  bool anonymous = false;
};

/// Why a dump is made.
struct Trigger {
  std::string name;      ///< "psi memory some 150ms/1s"
  std::string value;     ///< what was measured, with unit; or empty
  bool of_user = false;  ///< asked for by the user: it is never one too many
  double last = 0;       ///< seconds before it that are wanted; 0: all that the ring has
};

class Store {
 public:
  Store() = default;
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Creates, checks and locks the directory. Segments of a run that was killed become a dump.
  Result<void> open(StoreOptions options);
  /// A tool that is recorded, as `name`. -> its number
  std::size_t add(std::string name, std::string command);
  /// After the last add().
  Result<void> check() const;
  /// For the process of that tool, after fork: it does not hold the lock.
  void leave_to_child() { lock_.reset(); }
  /// The descriptors that this process needs.
  std::pair<Fd*, Fd*> descriptors() { return {&ring_, &wake_}; }
  std::unique_ptr<Segments> segments(std::size_t tool);
  ToolState& state(std::size_t tool) { return shared_->tools[tool]; }
  /// Its last segment is complete. `why` for people; empty: it ended because it was to.
  void ended(std::size_t tool, std::string why);
  /// It runs again, perhaps with other options.
  void began(std::size_t tool, std::string command) {
    tools_[tool].down.clear();
    tools_[tool].command = std::move(command);
  }

  /// Readable when settle() is to be called.
  int wakes() const { return wake_.get(); }
  /// Notices new segments; removes what is too old or too much. Also call it once a second.
  void settle();
  /// Saves the ring in a new dump; a trigger soon after another one goes into the same dump.
  /// -> its path; empty: there is none, and refusal() says why.
  std::string dump(const Trigger& why);
  const std::string& refusal() const { return refusal_; }
  /// Completes the last dump; the ring is removed.
  void end();

  std::uint64_t dumps_made() const { return made_; }
  std::uint64_t dumps_refused() const { return refused_; }
  /// Of ring and dumps.
  std::uint64_t bytes() const {
    return options_.most - static_cast<std::uint64_t>(shared_->left.load());
  }
  std::size_t tools() const { return tools_.size(); }
  double slowest_dump_ms() const { return slowest_ms_; }

 private:
  struct Segment {
    std::size_t tool;
    std::uint64_t number, bytes, ended_ns;  ///< ended_ns 0: it is the current one
    bool in_ring;
    unsigned dumps;
    std::uint64_t last_dump;  ///< the newest one that has it, as counted by made_
  };
  struct Tool {
    std::string name, command, down;
    std::uint64_t known = 0;  ///< number of the newest segment in segments_
  };
  struct Dump {
    std::string name;
    std::uint64_t bytes;  ///< besides segments_
    std::vector<std::list<Segment>::iterator> segments;
  };
  struct Told {
    std::string time, name, value;
  };

  std::uint64_t now() const;
  Result<void> open_ring();
  Result<void> find_dumps();
  void save_leftovers();
  void notice();
  void finished(Segment& segment, std::uint64_t now_ns);
  void leave_ring(std::list<Segment>::iterator segment);
  void release(std::list<Segment>::iterator segment);
  bool remove_oldest_segment();
  bool remove_oldest_dump();
  void remove_dump(std::size_t number);
  void make_room();
  void look_at_file_system();
  bool link(std::list<Segment>::iterator segment);
  void link_new();
  void close_dump();
  Result<void> write_reason(bool complete);
  std::uint64_t ring_bytes() const;
  std::string unused_name(const std::string& wanted) const;
  std::string path(std::string_view name) const;

  StoreOptions options_;
  Fd root_, ring_, lock_, wake_;
  Shared* shared_ = nullptr;
  std::vector<Tool> tools_;
  std::list<Segment> segments_;      ///< the oldest first
  std::deque<Dump> dumps_;           ///< the oldest first
  std::deque<std::uint64_t> times_;  ///< of dumps that count for options_.dumps
  // The dump that is being made:
  Fd open_;
  std::uint64_t open_until_ns_ = 0, dump_bytes_ = 0;
  std::uint64_t dump_from_ns_ = 0;  ///< segments that ended before are not in it
  bool cut_ = false;
  std::vector<Told> told_;
  std::uint64_t made_ = 0, refused_ = 0;
  double slowest_ms_ = 0;
  std::string refusal_;
  bool said_small_ = false, said_full_ = false, said_refused_ = false;
};

}  // namespace coretap::record
