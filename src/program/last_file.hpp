// A file that a run writes when it ends, such as a picture or a profile.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/new_file.hpp"
#include "program/session.hpp"

namespace coretap {

class LastFile {
 public:
  /// Fails if the file cannot be written. "-" is standard output.
  Result<void> open(Session& s, const std::string& path);
  bool keeps_file() const { return file_.has_value(); }
  Result<void> write(Session& s, std::string_view bytes);

 private:
  std::optional<NewFile> file_;
};

}  // namespace coretap
