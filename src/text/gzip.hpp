// Compression of text and profiles.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace coretap {

enum class Compression { fast, usual };

/// As a gzip file; empty: failed.
std::string gzip(std::string_view bytes, Compression how);
/// A gzip file in parts, for data that does not fit into memory.
class GzipStream {
 public:
  explicit GzipStream(Compression how);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  /// Appends to `out` what is ready. False: failed.
  bool add(std::string_view bytes, std::string& out);
  bool finish(std::string& out);

 private:
  bool deflate(std::string_view bytes, int flush, std::string& out);

  struct State;
  std::unique_ptr<State> state_;  ///< null: failed
};

bool is_gzip(std::string_view bytes);
/// The contents of a gzip file; nothing: it is broken, or has more than `most` bytes.
std::optional<std::string> gunzip(std::string_view bytes, std::size_t most);

}  // namespace coretap
