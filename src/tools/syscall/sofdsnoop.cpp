// sofdsnoop: descriptors of files that are passed over Unix sockets.
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
Value peer(const Event& e) { return e.peer ? Value(std::uint64_t{e.peer}) : Value(); }
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
          "One line per file descriptor that a process sends over a Unix socket, or receives by "
          "one (SCM_RIGHTS in sendmsg, sendmmsg, recvmsg and recvmmsg; see unix(7)), when the call "
          "returns. SOCKET is the descriptor of the socket and its inode, FD the descriptor that is "
          "passed, as the sender or the receiver numbers it, and NAME the path of its file; '-': it "
          "is closed already.\n\n"
          "Not seen: calls through io_uring, those of 32-bit programs on a 64-bit kernel, and "
          "descriptors that are taken by pidfd_getfd(2).",
      .overhead =
          "two hooks per call of sendmsg and recvmsg on any socket; what passes no descriptor costs "
          "a read of the control data; a little on every other system call, which the kernel then "
          "takes the longer way",
      .examples = {{"sofdsnoop", "all descriptors that are passed"},
                   {"sofdsnoop -T -p 181", "those of process 181, with times"},
                   {"sofdsnoop -n systemd -d 10", "of processes with this in their name"}},
      .questions = {{"Which process passes open files to another one?", "sofdsnoop"},
                    {"Where does a process have that open file from?", "sofdsnoop -p 1234"}},
      .differs = {{Difference::bcc,
                   "NAME is the path of the file in both directions, taken during the call. There "
                   "it is looked up later, and unknown for what is received."}},
      .object = skeleton<sofdsnoop_bpf>(),
      .options = {shared::timestamp(), shared::pid(), shared::tid(), shared::name('n'),
                  shared::duration('d'), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"results", {{{"on_exit"}}}},
                {"sendmsg", {{{"on_sendmsg"}}}},
                {"sendmmsg", {{{"on_sendmmsg"}}}},
                {"recvmsg", {{{"on_recvmsg"}}}},
                {"recvmmsg", {{{"on_recvmmsg"}}}}},
      .report = events<Event>(
          {derived<Event, action>("action", "ACTION", as::wide(as::text, -6),
                                  "which way it goes: SEND or RECV")
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
