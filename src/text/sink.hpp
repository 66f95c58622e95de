// Standard output, or the file in its place: only data, in whole reports; and the state at its end:
// closed, dropped or failed.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/colour.hpp"
#include "coretap/result.hpp"

namespace coretap {

class OutputFile;

class Sink {
 public:
  explicit Sink(int fd = 1) : fd_(fd) {}
  /// Writes to this file and to those that follow it.
  explicit Sink(OutputFile& file);

  void write(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= flush_at_) flush();
  }
  void line(std::string_view text) {
    buffer_ += text;
    write("\n");
  }

  /// Prints column titles.
  void title(std::string_view text) { line(painted(fd_, Paint::title, text)); }

  /// Writes the buffer. After the first failure drops everything. `whole`: it is one report, which
  /// goes into one file if it fits.
  void flush(bool whole = false);

  /// The data until now are titles: each file starts with them. A file is written only after this.
  void keep_header();
  /// Continues in the file that has the name now.
  void reopen();

  /// A descriptor that is readable when the run must end: then stops waiting for a stalled reader,
  /// and leaves the rest to ending(). -1: there is none, nor one for signals.
  void wait_no_longer_than(int ends) {
    ends_ = ends;
    signals_ = -1;
  }
  /// The run has ended: writes the rest. `signals` is readable when a signal is pending;
  /// `asked`: one was received already; `say` prints a message.
  void ending(int signals, bool asked, std::function<void(std::string_view)> say);
  void reader_has_gone() { closed_ = true; }

  bool on_terminal() const { return ::isatty(fd_) == 1; }
  bool closed() const { return closed_; }      ///< the reader has closed: end quietly
  bool dropped() const { return dropped_; }    ///< the reader has stalled; the end is missing
  bool failed() const { return error_ != 0; }  ///< anything else, such as a full disk
  Error error() const;

 private:
  static constexpr std::size_t kFlushAt = 64 << 10;
  // After a signal: with a reader that has taken nothing since, and with one that has. On a machine
  // without idle time the latter may not run for longer than the former.
  static constexpr int kPatienceMs = 100, kReadersPatienceMs = 2000;

  bool wait_for_reader();
  std::string_view put(std::string_view text);
  std::string_view fill_files(std::string_view text, bool whole);
  bool next_file();
  void begin_file();

  int fd_, ends_ = -1, signals_ = -1;
  OutputFile* file_ = nullptr;
  std::size_t flush_at_ = kFlushAt;
  std::string buffer_, header_;
  std::function<void(std::string_view)> say_ = [](std::string_view) {};
  bool fresh_ = true;     ///< the file has at most its header
  bool in_line_ = false;  ///< the last line written is incomplete
  bool closed_ = false, asked_ = false, told_ = false, dropped_ = false;
  bool reads_ = false;  ///< the reader has made room since the signal
  int error_ = 0;
};

}  // namespace coretap
