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

  /// The readers of a file that is made.
  enum class For {
    all,    ///< as the umask says
    owner,  ///< only its owner; no link to a file; add_now() does not wait for a pipe's reader
  };
  /// Fails at once if writing is impossible.
  static Result<NewFile> create(const std::string& path, For readers = For::all);

  /// Writes the whole text and renames the file into place; call it once.
  Result<void> write(std::string_view text);
  /// The same in parts: add() any number of times, then finish().
  Result<void> add(std::string_view part);
  Result<void> finish();
  /// Writes what is possible without waiting for a reader, and takes it off `part`.
  Result<void> add_now(std::string_view& part);
  /// Whether finish() renames it, which may need rights to its directory.
  bool is_renamed() const { return !beside_.empty(); }
  int fd() const { return fd_.get(); }

 private:
  std::string path_, beside_;  ///< beside_: empty if the path itself is open
  Fd fd_;
  bool begun_ = false;
};

}  // namespace coretap
