// The file of a trace: compressed as it is written, complete or not there at all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/new_file.hpp"
#include "coretap/result.hpp"
#include "perfetto/trace_writer.hpp"
#include "text/gzip.hpp"

namespace coretap::perfetto {

/// The clocks now, or, while a recording is shown, those of its clock.
Clocks read_clocks();
/// The same, also in the recording of this run: while it is shown, those of then.
Clocks recorded_clocks(const Clocks& now);
/// The system now, or the recorded one.
System this_system();

/// Is a new snapshot due? After some seconds, and when a clock was set or the machine has slept.
bool differ(const Clocks& last, const Clocks& now);

/// A part of a file that has those of several tools.
struct TracePart {
  NewFile& file;
  std::uint32_t number;  ///< from 0
};

/// After the first failure nothing is written, and failed() says why. Does not wait for the reader
/// of a pipe: what it does not take is kept, up to a limit.
class TraceFile {
 public:
  void open(const std::string& path);
  /// A part of a file that has several, each compressed alone; finish() does not rename it. `file`
  /// must outlive this object.
  void open_part(NewFile& file);

  void add(std::string_view bytes);
  void finish();
  /// If the file is finished with the rights of its directory's owner.
  bool is_renamed() const { return own_ && own_->is_renamed(); }
  std::uint64_t bytes() const { return bytes_; }
  const std::optional<Error>& failed() const { return failed_; }

 private:
  void write(bool all);

  std::optional<NewFile> own_;
  NewFile* to_ = nullptr;
  std::optional<GzipStream> gzip_;  ///< only of an open file: it needs 0.3 MB
  std::string packed_;
  std::uint64_t bytes_ = 0;
  std::optional<Error> failed_;
};

}  // namespace coretap::perfetto
