// The format of recordings: zstd frames, so that `zstd -dc FILE` gives the stream, after a
// skippable frame that names the format. The stream is one protobuf message; each part is a field
// with its length, so a reader passes over parts that it does not know.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"
#include "record/layout.hpp"

namespace coretap::record {

inline constexpr std::uint32_t kMajor = 1;  ///< other than the reader's: not readable

/// Fields of the stream. Numbers are never reused; those below kMayBePassedOver are needed.
enum class Part : std::uint32_t {
  head = 1,
  map = 2,       ///< number, name and layout of a map
  clock = 3,     ///< the wall clock's offset
  answer = 4,    ///< base/recall.hpp
  records = 5,   ///< of the ring buffer: length and bytes of each
  reading = 6,   ///< what changed in a map's counters since the previous reading
  entries = 7,   ///< what changed in a map's entries
  ledger = 8,    ///< counts of the kernel programs until now
  mark = 9,      ///< the run handled the parts before it (Did)
  stack = 10,    ///< a stack by its id
  pass = 11,     ///< records of an iterator program
  removed = 12,  ///< counters of keys that were removed from a map
};
inline constexpr std::uint32_t kMayBePassedOver = 64;

/// Kinds of Part::mark.
enum class Did : std::uint32_t {
  begin = 1,   ///< all was attached
  sample = 2,  ///< read what a report would have read
  report = 3,
  ends = 4,    ///< Reporter::ends
  last = 5,    ///< the report at the end
  finish = 6,  ///< the run ended; without this mark the recording was cut
  hurry = 7,   ///< Reporter::hurry
  split = 8,   ///< a segment ends here; the run goes on in the next one
  base = 9,    ///< the parts before it are of the time before this segment
};

struct Head {
  std::string coretap, tool, called;
  std::vector<std::string> words;  ///< options that select what is traced, and arguments
  std::string host, kernel, machine;
  std::int64_t zone_seconds = 0;  ///< of the recorder's local time east of UTC
  std::string zone;
  std::uint64_t record_bytes = 0;  ///< of one record or row
  std::vector<std::string>
      files;  ///< options of files that it wrote: they may decide what is traced
  /// Of a segment: the same for all segments of a run, and its place among these. A segment can be
  /// shown alone. Its counters begin at 0: those of several segments are added up.
  std::uint64_t run = 0, segment = 0;
  Layout layout = {};      ///< of one record of the ring buffer or of an iterator; or not known
  bool anonymous = false;  ///< it has tokens instead of names

  std::string bytes() const;
  static Head of(std::string_view bytes);
};

/// The space that files may take.
class Room {
 public:
  virtual ~Room() = default;
  /// A file grows by that much. False: there is no space.
  virtual bool take(std::uint64_t bytes) = 0;
  /// The file has not grown by that much.
  virtual void give_back(std::uint64_t bytes) = 0;
};

/// Space is taken in blocks.
inline std::uint64_t in_blocks(std::uint64_t bytes) {
  constexpr std::uint64_t kBlock = 4096;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

/// Writes a recording. After the first failure nothing is written, and error() says why.
class Writer {
 public:
  Writer();
  ~Writer();
  /// Creates or replaces the file, which only its owner may read.
  Result<void> open(const std::string& path);
  /// Makes a file that did not exist; what was open before is forgotten. `room` must outlive this
  /// object.
  Result<void> open_new(int directory, const std::string& name, Room& room);
  void put(Part part, std::string_view bytes);
  /// Writes all parts until now to the file, which then has them even if this process is killed.
  void flush();
  void close();
  bool failed() const { return error_ != 0; }
  Error error() const;
  std::uint64_t bytes() const { return written_; }
  const std::string& path() const { return path_; }

 private:
  struct Compressor;
  void begin();
  void compress(std::string_view bytes, bool end_of_frame);
  void write(std::string_view bytes);

  std::unique_ptr<Compressor> to_;
  Fd fd_;
  std::string path_, pending_;
  std::uint64_t written_ = 0, in_frame_ = 0;
  Room* room_ = nullptr;
  int error_ = 0;
};

/// Reads a recording, which may come from any user.
class Reader {
 public:
  Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();
  Result<void> open(const std::string& path);
  /// Reads parts that are in memory, not packed.
  void use(std::string parts);
  /// The next part; false: there is none. `bytes` is valid until the next call.
  Result<bool> next(Part& part, std::string_view& bytes);
  /// True after the last part if the file ends within a frame or a part.
  bool cut() const { return cut_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t unpacked_bytes() const { return unpacked_; }

 private:
  struct Decompressor;
  bool more();  ///< unpacks more; false: there is nothing left

  std::unique_ptr<Decompressor> from_;
  Fd fd_;
  std::string path_, buffer_;
  std::size_t at_ = 0;
  std::uint64_t file_bytes_ = 0, unpacked_ = 0;
  bool cut_ = false, failed_ = false;
};

}  // namespace coretap::record
