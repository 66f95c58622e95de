// Records a run: what its reports get from kernel programs (program/source.hpp) and what they ask
// the system (base/recall.hpp). The data go through unchanged.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/recall.hpp"
#include "program/source.hpp"
#include "record/format.hpp"

namespace coretap::record {

class Recorder : public Recall {
 public:
  Result<void> open(const std::string& path) { return out_.open(path); }
  /// First.
  void head(const Head& head) { put(Part::head, head.bytes()); }
  /// A source that records what it gets from `live`; this object must outlive it.
  std::unique_ptr<Source> over(std::unique_ptr<Source> live);

  bool replays() const override { return false; }
  std::string answer(Ask what, std::string_view question,
                     const std::function<std::string()>& live) override;

  /// The clock stands still from now until did(): reports have the times that are recorded.
  void moment();
  /// As it was at the last moment().
  std::uint64_t now() const { return now_; }
  /// Says how the run handled the data since the last call.
  void did(Did what, std::uint64_t missed = 0);
  /// While this is true, maps are read for the recording, not for a report.
  bool sampling = false;

  void put(Part part, std::string_view bytes) {
    write_records();
    out_.put(part, bytes);
  }
  /// A record from the ring buffer, after the report has taken it: answers that it needed come
  /// before it, and after the records before it.
  void record(const void* data, std::size_t size);
  void flush() {
    write_records();
    out_.flush();
  }
  void close() {
    write_records();
    out_.close();
  }
  const Writer& file() const { return out_; }

 private:
  void set_clock();
  void write_records();

  Writer out_;
  std::string batch_;                                     ///< of records
  std::unordered_map<std::string, std::size_t> answers_;  ///< hash of the last one, by question
  std::int64_t ahead_ = 0;
  std::uint64_t now_ = 0;
};

/// The number of a map in the recording, and how its data are laid out.
struct MapLayout {
  enum Kind : std::uint64_t { counters = 0, entries = 1 };
  std::uint64_t number = 0;
  std::string name;
  std::uint64_t kind = counters, key_bytes = 0, value_bytes = 0, largest = 0;

  std::size_t words() const { return (value_bytes + 7) / 8; }
  std::string bytes() const;
  static MapLayout of(std::string_view bytes);
};

}  // namespace coretap::record
