// Messages of the supervisor to the process that answers requests: tools that were added and
// removed, their state, and answers to its requests. Datagrams over a socket; an added tool comes
// with its descriptors.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "coretap/fd.hpp"

namespace coretap::serve {

struct News {
  enum What : char {
    came = '+',
    went = '-',
    events = 'e',  ///< of an added tool, to be pushed
    state = 's',
    dumped = 'd',  ///< answers kWantsDump: "ID 1 JSON", or "ID 0 words"
    last = 'l',    ///< the service ends soon: push metrics now; the answer is kDone
    end = '.',
  } what;
  /// The tool's key (Collector::key), the name of its entry if it has one, or the state
  /// page.
  std::string text;
  Fd channel = {};  ///< of an added tool, or for its events
};

/// The answer to News::last.
inline constexpr char kDone = '!';
/// A request for a dump: "?ID 0 MS", or "?ID 1 MS" if at_most does not limit it. MS: milliseconds
/// before it that are wanted; 0: all that is kept.
inline constexpr char kWantsDump = '?';

/// later: the reader is behind, or the kernel has no memory; nothing was sent.
enum class Sending { done, later, closed };
/// Does not block. Texts above 128 KiB cannot be sent, and return closed.
Sending send_news(int socket, const News& news);
/// The next message; none: there is none now. The end of the connection gives News::end.
std::optional<News> receive_news(int socket);

}  // namespace coretap::serve
