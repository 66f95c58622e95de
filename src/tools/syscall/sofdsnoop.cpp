// sofdsnoop: file descriptors passed over Unix sockets.
#include "syscall/sofdsnoop.h"

#include <fmt/format.h>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "sofdsnoop.skel.h"

using namespace coretap;
using Event = sofdsnoop_event;

namespace {

std::string action(const Event& e) { return e.sends ? "SEND" : "RECV"; }
std::string socket_name(const Event& e) {
  return fmt::format("{}:socket:[{}]", e.socket_fd, std::uint64_t{e.socket_inode});
}
Value peer(const Event& e) { return unless_0(e.peer); }
Value file(const Event& e) {
  if (!e.mode) return {};
  return file_name(e.mode, e.inode, file_path(text_of(e, e.path), e.path_kind));
}

}  // namespace

TOOL(sofdsnoop) {
  return {
      .name = "sofdsnoop",
      .summary = "file descriptors that are passed over Unix sockets",
      .description =
          "One line per file descriptor that a process sends or receives over a Unix socket "
          "(SCM_RIGHTS in sendmsg, sendmmsg, recvmsg and recvmmsg; see unix(7)), when the call "
          "returns. SOCKET is the descriptor of the socket and its inode, FD the passed descriptor "
          "as numbered in the sender or the receiver, and NAME the path of its file; '-': it is "
          "already closed.\n\n"
          "Not seen: calls through io_uring, calls by 32-bit programs on a 64-bit kernel, and "
          "descriptors obtained by pidfd_getfd(2).",
      .overhead =
          "two hooks per call to sendmsg and recvmsg on any socket; a call that passes no "
          "descriptor costs a read of the control data; a small cost on every other system call, "
          "because the kernel then takes its slow path",
      .examples = {{"sofdsnoop", "all descriptors that are passed"},
                   {"sofdsnoop -T -p 181", "process 181, with times"},
                   {"sofdsnoop -n systemd -d 10", "processes with this in their name"}},
      .questions = {{"Which process passes open files to another one?", "sofdsnoop"},
                    {"Where did a process get that open file from?", "sofdsnoop -p 1234"}},
      .differs = {{Difference::bcc,
                   "NAME is the path of the file in both directions, read during the call. There, "
                   "it is looked up later, and not known for received descriptors."}},
      .object = skeleton<sofdsnoop_bpf>(),
      .options = {shared::timestamp(), shared::pid(), shared::tid(), shared::name('n'),
                  shared::duration('d'), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"results", {{{progs::on_exit}}}},
                {"sendmsg", {{{progs::on_sendmsg}}}},
                {"sendmmsg", {{{progs::on_sendmmsg}}}},
                {"recvmsg", {{{progs::on_recvmsg}}}},
                {"recvmmsg", {{{progs::on_recvmmsg}}}}},
      .report = events<Event>(
          {derived<Event, action>("action", "ACTION", as::wide(as::text, -6),
                                  "direction: SEND or RECV")
               .bounded(),
           who<&Event::who>(id::pid.with("json"), id::tid.with(""), id::comm),
           derived<Event, socket_name>("socket", "SOCKET", as::wide(as::text, -22),
                                       "the socket: descriptor and inode")
               .in_text(),
           with("json", {field<&Event::socket_fd>("socket_fd", "SOCKFD", as::small,
                                                  "descriptor of the socket"),
                         field<&Event::socket_inode>("socket_inode", "SOCKINO", as::number,
                                                     "inode of the socket"),
                         derived<Event, peer>("peer_pid", "PEER", as::pid,
                                              "process at its other end when it was connected")}),
           field<&Event::fd>("fd", "FD", as::wide(as::small, -5), "descriptor that is passed"),
           who<&Event::who>(id::uid.with("json"), id::cgroup),
           derived<Event, file>("file", "NAME", as::rest, "path of its file")}),
      .announce = "Tracing passed file descriptors",
  };
}
