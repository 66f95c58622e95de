#include "serve/channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace coretap::serve {

namespace {

constexpr std::size_t kMostBytes = 128 << 10;

/// A datagram with room for one descriptor.
struct Datagram {
  explicit Datagram(std::string& text) : part{text.data(), text.size()} {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control;
    head.msg_controllen = sizeof control;
  }

  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr head{};
};

}  // namespace

Sending send_news(int socket, const News& news) {
  std::string text(1, news.what);
  text += news.text;
  if (text.size() > kMostBytes) return Sending::closed;
  Datagram message(text);
  if (news.channel) {
    auto* head = CMSG_FIRSTHDR(&message.head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    int fd = news.channel.get();
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  } else {
    message.head.msg_controllen = 0;
  }
  while (true) {
    if (sendmsg(socket, &message.head, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sending::done;
    for (int passing : {EAGAIN, ENOBUFS, ENOMEM, ETOOMANYREFS})
      if (errno == passing) return Sending::later;
    if (errno != EINTR) return Sending::closed;
  }
}

std::optional<News> receive_news(int socket) {
  std::string text(kMostBytes, '\0');
  Datagram message(text);
  auto n = recvmsg(socket, &message.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (n <= 0) return News{News::end, {}};
  News news{static_cast<News::What>(text[0]), text.substr(1, static_cast<std::size_t>(n) - 1)};
  for (auto* head = CMSG_FIRSTHDR(&message.head); head; head = CMSG_NXTHDR(&message.head, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    news.channel.reset(fd);
  }
  return news;
}

}  // namespace coretap::serve
