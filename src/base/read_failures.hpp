// Why files could not be read. Readers of a damaged file return its readable part; a search for a
// name must distinguish a name that is absent from a file that could not be read.
#pragma once
#include <string>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap {

/// True if the file is not there, or may not be opened: no failure of this process or machine.
bool is_absence(int error);

/// Keeps the first failure of this thread's reads while it exists, and no inner one does.
class ReadFailures {
 public:
  explicit ReadFailures(std::string_view path = {});
  ~ReadFailures();
  ReadFailures(const ReadFailures&) = delete;
  ReadFailures& operator=(const ReadFailures&) = delete;

  /// Names the file that is read from now on.
  void in(std::string_view path) { path_ = path; }
  explicit operator bool() const { return failed_; }
  /// "cannot read PATH: Input/output error", in `why`. Only after a failure.
  Error error(std::string what) const;

  /// `error`: errno; 0: the file has not what its headers promise.
  static void note(int error);
  /// The same for open(); files that are not there are no failures.
  static void note_open(int error);

 private:
  ReadFailures* outer_;
  std::string path_, failed_path_;
  int error_ = 0;
  bool failed_ = false;
};

}  // namespace coretap
