// --record: a recording of the run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/recall.hpp"
#include "coretap/result.hpp"
#include "record/recorder.hpp"

namespace coretap {

struct Session;

/// Options that name a file of an output. Some tools make it from data that they record only then.
inline constexpr std::string_view kFileOptions[] = {"dot",      "dump-graph", "heatmap",
                                                    "perfetto", "pprof",      "svg"};
bool is_file_option(std::string_view name);
/// Does the option decide where the output goes and what form it has? A recording has none of them.
bool is_output_option(std::string_view name);

/// Where a run is recorded that prints nothing (`coretap record`).
struct RecordTo {
  std::string file;                      ///< empty: to segments
  record::Segments* segments = nullptr;  ///< the last ones are kept
  record::ToolState* state = nullptr;    ///< what has been recorded until now is written to it
};

/// From begin() on, the session's data and answers of the system are written, too, if the user
/// wants that.
class Recording {
 public:
  explicit Recording(Session& s, const RecordTo* to = nullptr) : s_(s), to_(to) {}
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  Result<void> begin();

 private:
  /// Makes the recording anonymous.
  Result<void> hide_names(record::Head& head);

  Session& s_;
  const RecordTo* to_;
  std::optional<record::ObjectLayouts> layouts_;
  record::Recorder recorder_;
  std::optional<Recalling> recalling_;
};

/// Once, if the recording could not be written.
void tell_failure(Session& s);

/// When everything has been counted. `missed`: events that no kernel program counts.
void end_recording(Session& s, std::uint64_t missed);

}  // namespace coretap
