// What the supervisor tells the process that answers requests: tools that came and went, and their
// state. Datagrams over a socket; with a tool that came, the descriptor of its channel.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace coretap::serve {

struct News {
  enum What : char { came = '+', went = '-', state = 's', end = '.' } what;
  std::string text;  ///< the tool's key (Collector::add), or the page of the state
  Fd channel = {};   ///< of a tool that came
};

/// False: the other end is closed.
bool send_news(int socket, const News& news);
/// The next one; none: there is none now. The end of the connection is News::end.
std::optional<News> receive_news(int socket);

}  // namespace coretap::serve
