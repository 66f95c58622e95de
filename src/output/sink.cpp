#include "output/sink.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace coretap {

void Sink::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !closed_ && !error_) {
    auto n = ::write(fd_, rest.data(), rest.size());
    if (n > 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      pollfd wait{fd_, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (n < 0 && errno == EPIPE) {
      closed_ = true;
    } else if (n < 0 && errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

Error Sink::error() const {
  return {"cannot write to standard output", strerror(error_),
          error_ == ENOSPC ? "make room, or write elsewhere" : ""};
}

}  // namespace coretap
