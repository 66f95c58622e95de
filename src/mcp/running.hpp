// A call under way: the tool as a process, its bounded output, and its end.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "coretap/fd.hpp"
#include "mcp/message.hpp"
#include "mcp/offer.hpp"

namespace coretap::mcp {

inline constexpr std::size_t kMostOutput = 256 << 10, kMostErrors = 16 << 10;

class Running {
 public:
  Running(Id id, double seconds) : id(std::move(id)), seconds_(seconds) {}
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  Result<void> start(const Call& call);
  int output() const { return output_.get(); }  ///< -1: at its end
  int errors() const { return errors_.get(); }
  int end() const { return end_.get(); }
  /// Reads without waiting.
  void read();
  /// The process has ended, and all of its output was read.
  bool is_over();
  /// Asks it to end.
  void stop(std::uint64_t now_ns);
  /// Ends it if it takes too long; -> when to call again.
  std::uint64_t hurry(std::uint64_t now_ns);
  /// The result of the call.
  std::string answer() const;

  Id id;
  bool cancelled = false;  ///< the client waits for no answer

 private:
  struct Text {
    std::string kept;
    std::size_t dropped = 0;  ///< bytes
    void add(std::string_view bytes, std::size_t most);
  };
  static void read(Fd& from, Text& to, std::size_t most);

  double seconds_;
  pid_t pid_ = -1;
  Fd output_, errors_, end_;
  Text out_, err_;
  std::uint64_t interrupt_at_ = 0, kill_at_ = 0;
  int status_ = -1;  ///< as a shell has it; -1: it runs
  bool killed_ = false;
};

}  // namespace coretap::mcp
