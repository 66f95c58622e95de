#include "program/last_file.hpp"

namespace coretap {

Result<void> LastFile::open(Session& s, const std::string& path) {
  if (path == "-") return {};
  auto file = NewFile::create(path);
  if (!file) return file.error();
  file_ = std::move(*file);
  // The file is renamed at the end, in a directory that may belong to another user.
  s.retained.add({Capability::dac_override, Capability::fowner});
  return {};
}

Result<void> LastFile::write(Session& s, std::string_view bytes) {
  if (file_) return file_->write(bytes);
  s.out.write(bytes);
  return {};
}

}  // namespace coretap
