// Gives the data of a recording to the reports that got them when it was recorded. Files may come
// from any user: sizes and counts are checked here, so that reports can trust what they get.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/recall.hpp"
#include "coretap/lacking.hpp"
#include "program/source.hpp"
#include "record/format.hpp"

namespace coretap::record {

class Replay : public Recall {
 public:
  Replay();
  ~Replay() override;
  /// Reads the head.
  Result<void> open(const std::string& path);
  /// The same for segments of one run, in their order.
  Result<void> open(const std::vector<std::string>& paths);
  Result<void> use(std::string parts, std::string next_segment = {});  ///< Reader::use
  const Head& head() const { return head_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t unpacked_bytes() const { return unpacked_ + in_.unpacked_bytes(); }
  /// How often a segment was missing, or without its end, before another one.
  std::uint64_t gaps() const { return gaps_; }
  /// Have histograms fine slots?
  bool fine() const;
  /// After begin(): data of the time before the recording are there; a report of them is not to be
  /// shown, and those after it have what changed.
  bool has_base() const { return has_base_; }

  struct Mark {
    Did did;
    std::uint64_t monotonic_ns = 0;
    std::uint64_t missed = 0;
  };
  /// Reads to the next mark, and gives the records before it to the report; nothing:
  /// there is no further mark.
  Result<std::optional<Mark>> next();

  /// Before begin(): what the tool's records and maps are here. Those of the recording become
  /// such. `record_type`: ReportKind::record_type.
  void use(const ObjectLayouts& own, std::string_view record_type);
  /// After begin(): the recording has other layouts.
  bool moves() const;
  /// After begin(): what the recording does not have.
  std::vector<Lacking> lacks() const;

  /// The first mark.
  Result<Mark> begin();

  /// The source of the report's data; this object must outlive it.
  std::unique_ptr<Source> source();
  /// The reading before the last mark is not shown: iterators' records of it are passed over.
  void pass_over();
  std::uint64_t records() const { return records_; }

  bool replays() const override { return true; }
  std::string answer(Ask what, std::string_view question,
                     const std::function<std::string()>& live) override;

 private:
  class Counters;
  class FromFile;
  struct State;

  std::string moved_record(std::string_view record) const;
  Result<void> read_head();
  Result<bool> next_file();
  Result<void> take(Part part, std::string_view bytes);
  Result<void> give_records(std::string_view bytes);
  Error damaged() const;
  Error no_begin() const;

  Reader in_;
  std::deque<std::pair<std::string, Reader>> later_;  ///< the files after that
  std::size_t segments_ = 0;                          ///< until now
  bool was_split_ = false, has_base_ = false;
  std::uint64_t file_bytes_ = 0, unpacked_ = 0, gaps_ = 0;
  std::string path_;
  Head head_;
  std::unordered_map<std::string, std::string> answers_;
  std::size_t answer_bytes_ = 0;
  std::unique_ptr<State> state_;
  std::uint64_t records_ = 0;
};

}  // namespace coretap::record
