// A file that appears whole, or not at all.
#pragma once
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// Written beside its place and renamed into it. Where the path is no regular file (a device, a
/// pipe, a symbolic link) it is written to as a shell's > would do.
class NewFile {
 public:
  NewFile() = default;
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();

  /// Fails at once if writing is impossible.
  static Result<NewFile> create(const std::string& path);

  /// Writes all of it and puts it in place; once.
  Result<void> write(std::string_view text);

 private:
  std::string path_, beside_;  ///< beside_: empty where the path itself is open
  Fd fd_;
};

}  // namespace coretap
