#include "serve/channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace coretap::serve {

namespace {

constexpr std::size_t kMostBytes = 128 << 10;

}  // namespace

Sending send_news(int socket, const News& news) {
  std::string text(1, news.what);
  text += news.text;
  if (text.size() > kMostBytes) return Sending::closed;
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (news.channel) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    int fd = news.channel.get();
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  while (true) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sending::done;
    for (int passing : {EAGAIN, ENOBUFS, ENOMEM, ETOOMANYREFS})
      if (errno == passing) return Sending::later;
    if (errno != EINTR) return Sending::closed;
  }
}

std::optional<News> receive_news(int socket) {
  std::string text(kMostBytes, '\0');
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (n <= 0) return News{News::end, {}};
  News news{static_cast<News::What>(text[0]), text.substr(1, static_cast<std::size_t>(n) - 1)};
  for (auto* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    news.channel.reset(fd);
  }
  return news;
}

}  // namespace coretap::serve
