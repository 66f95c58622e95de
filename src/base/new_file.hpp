// A file that appears complete or not at all.
#pragma once
#include <string>
#include <string_view>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// Written to a temporary file in the same directory and renamed. If the path is not a regular file
/// (a device, a pipe, a symbolic link), it is written to directly, as by a shell's >.
class NewFile {
 public:
  NewFile() = default;
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();

  /// Fails at once if writing is impossible.
  static Result<NewFile> create(const std::string& path);

  /// Writes the whole text and renames the file into place; call it once.
  Result<void> write(std::string_view text);
  /// The same in parts: add() any number of times, then finish().
  Result<void> add(std::string_view part);
  Result<void> finish();
  /// Whether finish() renames it, which may need rights to its directory.
  bool is_renamed() const { return !beside_.empty(); }

 private:
  std::string path_, beside_;  ///< beside_: empty if the path itself is open
  Fd fd_;
  bool begun_ = false;
};

}  // namespace coretap
