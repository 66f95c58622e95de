#include "text/sink.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace coretap {

bool Sink::wait_for_reader() {
  pollfd wait[] = {{fd_, POLLOUT, 0}, {signals_, POLLIN, 0}};
  int ready = poll(wait, 2, -1);
  if (ready < 0 || wait[0].revents) return true;
  // The user wants to end, and there is no reader. One that has stalled gets a moment; one that
  // reads page by page may take all the time, until the user asks again.
  if (!ending_ && poll(wait, 1, kPatienceMs) != 0) return true;
  closed_ = true;
  return false;
}

void Sink::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !closed_ && !error_) {
    if (!wait_for_reader()) break;
    // What a pipe that is ready takes at once; more might block, with the signals blocked too. In
    // whole lines: what a command after -- writes into the same pipe then comes between lines.
    auto part = rest.substr(0, PIPE_BUF);
    if (auto end = part.rfind('\n'); end != part.npos) part = part.substr(0, end + 1);
    auto n = ::write(fd_, part.data(), part.size());
    if (n > 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      continue;
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
