// --perfetto: the events of a report as a trace for Perfetto, on the tracks of threads.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coretap/result.hpp"
#include "perfetto/trace_file.hpp"
#include "perfetto/trace_writer.hpp"

namespace coretap {

struct Field;
struct Session;

/// Which slices a track has, so that a new one does not overlap one of them in part. Slices inside
/// others are fine.
class SliceNest {
 public:
  /// True: it fits, and is taken.
  bool take(std::uint64_t begin_ns, std::uint64_t end_ns);
  /// Slices that begin before this moment do not fit.
  explicit SliceNest(std::uint64_t not_before = 0) : not_before_(not_before) {}

 private:
  struct Slice {
    std::uint64_t begin, end;
  };
  std::vector<Slice> outermost_;  ///< those that are in no other, in their order
  std::uint64_t not_before_;
};

struct TracedEvent {
  std::uint64_t begin_ns = 0, end_ns = 0;  ///< equal: a moment
  std::optional<std::uint64_t> pid = {}, tid = {};
  std::string_view comm = {};
  std::string_view name = {};  ///< besides the tool's
  std::vector<perfetto::Argument> arguments = {};
};

/// Reads an event from the fields of its record.
class TracedFields {
 public:
  /// `span`: key of the field with its duration; `from_begin`: its time is that of its begin, not
  /// of its end.
  void choose(const Session& s, const std::vector<Field>& fields, std::string_view span,
              bool from_begin);
  /// Valid until the next call.
  TracedEvent read(const Session& s, std::uint64_t time_ns, const void* record);

 private:
  const Field* find(std::string_view key) const;

  std::vector<Field> fields_;
  const Field *pid_ = nullptr, *tid_ = nullptr, *comm_ = nullptr, *span_ = nullptr,
              *named_by_ = nullptr;
  bool from_begin_ = false;
  std::vector<std::string> texts_;
};

class EventTrace {
 public:
  /// Before capabilities are dropped. Nothing is written unless the command line wants it, or the
  /// session has a file for several tools.
  Result<void> open(Session& s);
  explicit operator bool() const { return writer_.has_value(); }
  void add(Session& s, const TracedEvent& event);
  /// Events that were lost since the last call, as the ledger says, become a gap.
  void check(Session& s);
  void lost(std::uint64_t from_ns, std::uint64_t until_ns, std::uint64_t count);
  /// When the ledger is complete.
  void finish(Session& s);

 private:
  struct Thread {
    std::size_t comm = 0;  ///< its hash
    std::vector<SliceNest> lanes;
  };
  perfetto::Track owner(const TracedEvent& event);
  perfetto::Track lane(const perfetto::Track& of, std::size_t number) const;
  void tell(Session& s);

  std::string tool_;
  perfetto::TraceFile file_;
  std::optional<perfetto::TraceWriter> writer_;
  std::unordered_map<std::uint64_t, Thread> threads_;
  perfetto::Clocks clocks_;
  std::uint64_t newest_ns_ = 0, forgotten_ns_ = 0;  ///< earlier slices are not known any more
  std::uint64_t checked_ns_ = 0, known_lost_ = 0;
  const perfetto::TracePart* part_ = nullptr;
  SliceNest gaps_;
  std::size_t generation_ = 0;  ///< of lanes: those of earlier ones are full
  bool told_ = false;
};

}  // namespace coretap
