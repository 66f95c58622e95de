// What the supervisor tells the process that answers requests: tools that came and went, and their
// state. Datagrams over a socket; with a tool that came, the descriptors of its channels.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace coretap::serve {

struct News {
  enum What : char {
    came = '+',
    went = '-',
    events = 'e',  ///< of a tool that came, to be pushed
    state = 's',
    last = 'l',  ///< the service ends soon: metrics are to be pushed now; the answer is kDone
    end = '.',
  } what;
  /// The tool's key (Collector::add), the name of its entry if it has one, or the page of the
  /// state.
  std::string text;
  Fd channel = {};  ///< of a tool that came, or of its events
};

/// The answer to News::last.
inline constexpr char kDone = '!';

/// later: the reader is behind, or the kernel has no room; nothing was sent.
enum class Sending { done, later, closed };
/// Does not wait. Texts above 128 KiB cannot be sent: they count as closed.
Sending send_news(int socket, const News& news);
/// The next one; none: there is none now. The end of the connection is News::end.
std::optional<News> receive_news(int socket);

}  // namespace coretap::serve
