// Records a run: what its reports get from kernel programs (program/source.hpp) and what they ask
// the system (base/recall.hpp). The data go through unchanged.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/recall.hpp"
#include "program/source.hpp"
#include "record/anonymous.hpp"
#include "record/format.hpp"
#include "record/segments.hpp"

namespace coretap::record {

class Recorder : public Recall {
 public:
  Result<void> open(const std::string& path) { return out_.open(path); }
  /// Instead: into segments; next_segment() ends one and begins the next.
  Result<void> open(Segments& segments);
  /// First.
  void head(const Head& head) {
    head_ = head;
    if (segments_) {
      head_.run = segments_->run();
      head_.segment = segments_->number();
    }
    put(Part::head, head_.bytes());
  }
  /// Of the kernel object; to be written with its maps. It must outlive this object.
  void use(const ObjectLayouts& layouts) { layouts_ = &layouts; }
  const ObjectLayouts* layouts() const { return layouts_; }
  /// Before head(): tokens are written instead of names (record/anonymous.hpp). `cgroups`:
  /// Anonymous::fields.
  const Anonymous& make_anonymous(bool cgroups) {
    cgroups_ = cgroups;
    return anonymous_.emplace();
  }
  /// Keys, values and iterators' records as they are written. -> false: their form is not known
  bool hide(const Layout& layout, std::string& bytes) const;
  bool is_anonymous() const { return anonymous_.has_value(); }
  void rows_have(const Layout& key) { row_key_ = key; }  ///< of texts for rows
  const Layout& record_layout() const { return head_.layout; }
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

  /// After did(Did::split), at the same moment: what has been read until now is not in the next
  /// segment, which begins with all answers.
  void next_segment();
  bool segment_due() const { return segments_ && segments_->due(out_, monotonic_now()); }
  bool segment_too_large() const {
    return segments_ && !out_.failed() && segments_->too_large(out_);
  }
  Segments* segments() const { return segments_; }
  void report_to(ToolState& state) { state_ = &state; }
  /// To report_to()'s state, if there is one.
  void say_counts(std::uint64_t events, std::uint64_t shown);
  /// Writes to a segment what it needs to be shown alone.
  class Carrier {
   public:
    virtual ~Carrier() = default;
    virtual void begin_segment() = 0;
  };
  void carry(Carrier& one) { carriers_.push_back(&one); }
  void forget(const Carrier& one) { std::erase(carriers_, &one); }

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
    if (!out_.failed()) unwritten_ = 0;
  }
  void close() {
    write_records();
    out_.close();
  }
  const Writer& file() const { return out_; }
  /// True once, if the file could not be written.
  bool tells_failure() { return out_.failed() && !std::exchange(told_, true); }

 private:
  struct Known {
    std::size_t hash = 0;
    std::string answer = {};    ///< if there are segments
    std::uint64_t segment = 0;  ///< where it was asked last
  };
  static std::uint64_t monotonic_now();
  void set_clock();
  void write_records();
  std::string hidden_record(std::string_view record) const;
  void put_answer(std::string_view key, std::string_view answer);
  void forget_answers();

  Writer out_;
  const ObjectLayouts* layouts_ = nullptr;
  std::optional<Anonymous> anonymous_;
  bool cgroups_ = false;
  Layout row_key_;
  Segments* segments_ = nullptr;
  ToolState* state_ = nullptr;
  std::vector<Carrier*> carriers_;
  Head head_;
  std::string batch_;                               ///< of records
  std::uint64_t unwritten_ = 0;                     ///< records since the last flush()
  std::unordered_map<std::string, Known> answers_;  ///< the last one, by question
  std::size_t answer_bytes_ = 0;
  std::int64_t ahead_ = 0;
  std::uint64_t now_ = 0;
  bool told_ = false;  ///< that the file has failed
};

/// The number of a map in the recording, and how its data are laid out.
struct MapLayout {
  enum Kind : std::uint64_t { counters = 0, entries = 1 };
  std::uint64_t number = 0;
  std::string name;
  std::uint64_t kind = counters, key_bytes = 0, value_bytes = 0, largest = 0;
  std::uint64_t sums = 0;   ///< entries: the first words of a value that only grow, as counters do
  std::uint64_t owner = 0;  ///< bytes of the owner at the end of keys; 0: they have none
  std::vector<std::uint64_t> largest_at = {};  ///< offsets of the largest values in the value
  Layout key = {}, value = {};                 ///< or not known; the key's without the owner

  bool operator==(const MapLayout&) const = default;
  std::size_t words() const { return (value_bytes + 7) / 8; }
  std::string bytes() const;
  static MapLayout of(std::string_view bytes);
};

}  // namespace coretap::record
