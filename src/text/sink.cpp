#include "text/sink.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "text/output_file.hpp"

namespace coretap {

namespace {

/// The whole lines within this number of bytes.
std::string_view whole_lines(std::string_view text, std::uint64_t bytes) {
  auto part = text.substr(0, bytes);
  return part.substr(0, part.rfind('\n') + 1);
}

std::string_view first_line(std::string_view text) {
  auto end = text.find('\n');
  return end == text.npos ? text : text.substr(0, end + 1);
}

}  // namespace

Sink::Sink(OutputFile& file)
    : fd_(file.fd()), file_(&file), flush_at_(SIZE_MAX), fresh_(file.empty()) {}

void Sink::ending(int signals, bool asked, std::function<void(std::string_view)> say) {
  say_ = std::move(say);
  ends_ = -1;
  signals_ = signals;
  asked_ = asked;
}

/// False: the rest is not written, for now or at all.
bool Sink::wait_for_reader() {
  bool full = false;
  while (true) {
    // A user at a terminal may read page by page (less), and can press Ctrl-C again.
    const bool patient = !asked_ || ::isatty(STDERR_FILENO) == 1;
    int limit = -1;
    if (!patient || (asked_ && !told_)) limit = reads_ ? kReadersPatienceMs : kPatienceMs;
    pollfd wait[] = {{fd_, POLLOUT, 0}, {ends_, POLLIN, 0}, {signals_, POLLIN, 0}};
    int ready = poll(wait, 3, full ? limit : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && !std::exchange(full, true)) continue;
    if (ready < 0 || wait[0].revents) {
      reads_ |= full && asked_;
      return true;
    }
    if (wait[1].revents) return false;
    if (!asked_) {  // a signal
      signalfd_siginfo info{};
      (void)!::read(signals_, &info, sizeof info);
      asked_ = true;
    } else if (!patient || wait[2].revents) {
      closed_ = true;
      return false;
    } else if (!std::exchange(told_, true)) {
      say_("waiting for the reader of the output; Ctrl-C ends without the rest");
    }
  }
}

void Sink::flush(bool whole) {
  std::string_view rest = buffer_;
  if (file_ && rest.size() > file_->room()) rest = fill_files(rest, whole);
  rest = put(rest);
  if (closed_ && asked_ && !rest.empty() && !std::exchange(dropped_, true))
    say_("the end of the output was not written: its reader has stalled");
  buffer_.erase(0, closed_ || error_ ? buffer_.npos : buffer_.size() - rest.size());
}

/// Returns the rest, which is for the last file.
std::string_view Sink::fill_files(std::string_view rest, bool whole) {
  if (whole && !fresh_ && !in_line_ && header_.size() + rest.size() <= file_->room_of_new())
    next_file();
  while (rest.size() > file_->room() && !closed_ && !error_) {
    auto part = whole_lines(rest, file_->room());
    // A line that exceeds a file's size gets a separate file.
    if (part.empty() && (in_line_ || fresh_ || !next_file())) part = first_line(rest);
    auto left = put(part);
    rest.remove_prefix(part.size() - left.size());
    if (!left.empty()) break;
  }
  return rest;
}

bool Sink::next_file() {
  if (!file_->rotate()) return false;
  begin_file();
  return true;
}

void Sink::begin_file() {
  fd_ = file_->fd();
  const bool fresh = file_->empty();
  put(header_);
  fresh_ = fresh;
  // Long lists of attach points must leave room for data.
  if (header_.size() > file_->room_of_new() / 2) file_->extend();
}

void Sink::keep_header() {
  if (!file_) return;
  flush_at_ = kFlushAt;
  header_.swap(buffer_);
  if (header_.size() > file_->room() && !file_->empty()) file_->rotate();
  begin_file();
}

void Sink::reopen() {
  flush();
  if (file_ && file_->reopen()) begin_file();
}

/// -> the bytes not written
std::string_view Sink::put(std::string_view rest) {
  if (rest.empty()) return rest;
  in_line_ = rest.back() != '\n';
  fresh_ = false;
  const bool at_once = file_ && file_->regular();
  while (!rest.empty() && !closed_ && !error_) {
    auto part = rest;
    if (!at_once) {
      if (!wait_for_reader()) break;
      // A ready pipe takes this much without blocking; to block would delay signals, too. Writes
      // whole lines: output of a command after -- to the same pipe then comes between lines.
      part = rest.substr(0, PIPE_BUF);
      if (auto end = part.rfind('\n'); end != part.npos) part = part.substr(0, end + 1);
    }
    auto n = ::write(fd_, part.data(), part.size());
    if (n > 0) {
      if (file_) file_->wrote(static_cast<std::size_t>(n));
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      continue;
    } else if (n < 0 && errno == EPIPE) {
      closed_ = true;
    } else if (n < 0 && errno != EINTR) {
      error_ = errno;
    }
  }
  return rest;
}

Error Sink::error() const {
  return {fmt::format("cannot write to {}", file_ ? file_->path() : "standard output"),
          strerror(error_), error_ == ENOSPC ? "make room, or write elsewhere" : ""};
}

}  // namespace coretap
