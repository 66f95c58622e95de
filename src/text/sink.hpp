// Standard output, or the file in its place: data only, whole reports at once, and an end that
// tells how it ended.
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

  /// Titles of columns.
  void title(std::string_view text) { line(painted(fd_, Paint::title, text)); }

  /// Writes what waits. After the first failure everything is dropped. `whole`: it is one report,
  /// and goes into one file if it fits.
  void flush(bool whole = false);

  /// What was written until now is titles: each file begins with them. A file waits for this.
  void keep_header();
  /// Goes on in the file that has its name now.
  void reopen();

  /// A descriptor that can be read when the run is to end: what a reader that has stalled does not
  /// take then waits for ending(). -1: there is none, nor one for signals.
  void wait_no_longer_than(int ends) {
    ends_ = ends;
    signals_ = -1;
  }
  /// The run has ended, what is left is written. `signals` can be read when a signal waits;
  /// `asked`: one has come already; `say` tells the user.
  void ending(int signals, bool asked, std::function<void(std::string_view)> say);
  void reader_has_gone() { closed_ = true; }

  bool on_terminal() const { return ::isatty(fd_) == 1; }
  bool closed() const { return closed_; }      ///< the reader has gone: end quietly
  bool dropped() const { return dropped_; }    ///< it has stalled, and the end was not written
  bool failed() const { return error_ != 0; }  ///< anything else, such as a full disk
  Error error() const;

 private:
  static constexpr std::size_t kFlushAt = 64 << 10;
  static constexpr int kPatienceMs = 100;  ///< after a signal, with a reader that takes nothing

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
  bool fresh_ = true;     ///< the file has its header at most
  bool in_line_ = false;  ///< what was written last does not end its line
  bool closed_ = false, asked_ = false, told_ = false, dropped_ = false;
  int error_ = 0;
};

}  // namespace coretap
