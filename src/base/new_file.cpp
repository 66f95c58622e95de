#include "base/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace coretap {

namespace {

Error failure(const std::string& path, int error) {
  auto hint = error == ENOSPC   ? "make room, or write elsewhere"
              : error == ENXIO  ? "a named pipe needs a reader"
              : error == ENOENT ? "its directory must be there"
              : error == EISDIR ? "name a file"
              : error == ELOOP  ? "it is a symbolic link: name the file itself"
                                : "name a file in a directory that can be written";
  return {fmt::format("cannot write {}", path), strerror(error), hint};
}

}  // namespace

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      beside_(std::exchange(other.beside_, {})),
      fd_(std::move(other.fd_)),
      begun_(other.begun_) {}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(beside_, other.beside_);
  std::swap(fd_, other.fd_);
  std::swap(begun_, other.begun_);
  return *this;
}

NewFile::~NewFile() {
  if (!beside_.empty()) unlink(beside_.c_str());
}

Result<NewFile> NewFile::create(const std::string& path, For readers) {
  const bool secret = readers == For::owner;
  const mode_t mode = secret ? 0600 : 0666;
  NewFile file;
  file.path_ = path;
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    // Without O_NONBLOCK, opening a pipe without a reader would block.
    file.fd_.reset(open(
        path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (secret ? 0 : O_CREAT), mode));
    if (!file.fd_) return failure(path, errno);
    // A link in a directory of others may lead to any file.
    if (secret && fstat(file.fd_.get(), &there) == 0 && S_ISREG(there.st_mode))
      return failure(path, ELOOP);
    if (!secret) fcntl(file.fd_.get(), F_SETFL, 0);
    return file;
  }
  for (int attempt = 0; attempt < 100 && !file.fd_; attempt++) {
    auto name = fmt::format("{}.{}.{}", path, getpid(), attempt);
    file.fd_.reset(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.fd_) file.beside_ = name;
    if (!file.fd_ && errno != EEXIST) return failure(path, errno);
  }
  if (!file.fd_) return failure(path, EEXIST);
  return file;
}

Result<void> NewFile::write(std::string_view text) {
  if (auto r = add(text); !r) return r;
  return finish();
}

Result<void> NewFile::add(std::string_view part) {
  struct stat there {};
  // The target of a symbolic link may be longer.
  if (!std::exchange(begun_, true) && beside_.empty() && fstat(fd_.get(), &there) == 0 &&
      S_ISREG(there.st_mode) && ftruncate(fd_.get(), 0))
    return failure(path_, errno);
  while (!part.empty()) {
    auto n = ::write(fd_.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure(path_, errno);
    part.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> NewFile::add_now(std::string_view& part) {
  while (!part.empty()) {
    auto n = ::write(fd_.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return {};
    if (n < 0) return failure(path_, errno);
    part.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> NewFile::finish() {
  // Some file systems report lack of space only here.
  if (close(fd_.release())) return failure(path_, errno);
  if (beside_.empty()) return {};
  if (rename(beside_.c_str(), path_.c_str())) return failure(path_, errno);
  beside_.clear();
  return {};
}

}  // namespace coretap
