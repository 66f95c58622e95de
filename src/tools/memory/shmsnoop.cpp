// shmsnoop: system calls for System V shared memory.
#include "memory/shmsnoop.h"

#include <fmt/format.h>
#include <sys/shm.h>

#include <span>

#include "coretap/errors.hpp"
#include "coretap/flags.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "shmsnoop.skel.h"

using namespace coretap;
using Event = shmsnoop_event;

namespace {

constexpr std::string_view kCalls[] = {"SHMGET", "SHMAT", "SHMDT", "SHMCTL"};
static_assert(std::size(kCalls) == SHMSNOOP_CALLS);

// Bits 26 and up hold the logarithm of the huge page size.
constexpr FlagWord kGetFlags[] = {{"IPC_CREAT", IPC_CREAT},
                                  {"IPC_EXCL", IPC_EXCL},
                                  {"SHM_HUGETLB", SHM_HUGETLB},
                                  {"SHM_NORESERVE", SHM_NORESERVE},
                                  {"SHM_HUGE_2MB", 21U << 26, 63U << 26},
                                  {"SHM_HUGE_1GB", 30U << 26, 63U << 26}};
constexpr FlagWord kAtFlags[] = {{"SHM_RDONLY", SHM_RDONLY},
                                 {"SHM_RND", SHM_RND},
                                 {"SHM_REMAP", SHM_REMAP},
                                 {"SHM_EXEC", SHM_EXEC}};
constexpr NumberedWord<std::uint32_t> kCommands[] = {
    {IPC_RMID, "IPC_RMID"}, {IPC_SET, "IPC_SET"},   {IPC_STAT, "IPC_STAT"},
    {IPC_INFO, "IPC_INFO"}, {SHM_LOCK, "SHM_LOCK"}, {SHM_UNLOCK, "SHM_UNLOCK"},
    {SHM_STAT, "SHM_STAT"}, {SHM_INFO, "SHM_INFO"}, {15, "SHM_STAT_ANY"}};

std::string flags(std::uint32_t value, std::span<const FlagWord> words) {
  return value ? fmt::format("{:#x} ({})", value, flag_words(words, value, "0{:o}")) : "0x0";
}

std::string arguments(const Event& e) {
  auto a = e.args;
  auto low = static_cast<std::uint32_t>(a[2]), command = static_cast<std::uint32_t>(a[1]),
       id = static_cast<std::uint32_t>(a[0]);
  switch (e.call) {
    case SHMSNOOP_GET:
      return fmt::format("key: {:#x}, size: {}, shmflg: {}", id, a[1], flags(low, kGetFlags));
    case SHMSNOOP_AT:
      return fmt::format("shmid: {:#x}, shmaddr: {:#x}, shmflg: {}", id, a[1],
                         flags(low, kAtFlags));
    case SHMSNOOP_DT:
      return fmt::format("shmaddr: {:#x}", a[0]);
    default:
      return fmt::format("shmid: {:#x}, cmd: {} ({}), buf: {:#x}", id, command,
                         word_of(kCommands, command, std::to_string(command)), a[2]);
  }
}

bool failed(const Event& e) { return e.ret < 0 && e.ret >= -4095; }
std::string result(const Event& e) {
  if (failed(e)) return error_name(static_cast<int>(-e.ret));
  return fmt::format("{:x}", e.ret);
}
Value returned(const Event& e) { return value_if(!failed(e), static_cast<std::uint64_t>(e.ret)); }
Value id_of(const Event& e) {
  if (e.call == SHMSNOOP_GET) return returned(e);
  return value_if(e.call != SHMSNOOP_DT, static_cast<std::uint32_t>(e.args[0]));
}
Value address(const Event& e) {
  if (e.call == SHMSNOOP_AT) return returned(e);
  return value_if(e.call == SHMSNOOP_DT, e.args[0]);
}
Value bytes(const Event& e) { return value_if(e.call == SHMSNOOP_GET, e.args[1]); }

}  // namespace

TOOL(shmsnoop) {
  return {
      .name = "shmsnoop",
      .summary = "calls for System V shared memory, with their arguments and results",
      .description =
          "One line per call to shmget, shmat, shmdt and shmctl, when it returns. RET is the "
          "return value in hexadecimal (the segment's id, or an address), or the name of the "
          "error. ARGs shows the arguments, with the names of flags and commands.\n\n"
          "Not seen: calls by 32-bit programs on a 64-bit kernel, and POSIX shared memory "
          "(shm_open), which consists of files: see opensnoop.",
      .overhead =
          "two hooks per call; a small cost on every other system call, because the kernel then "
          "takes its slow path",
      .examples = {{"shmsnoop", "all calls"},
                   {"shmsnoop -T -n postgres", "processes with this in their name, with times"},
                   {"shmsnoop -p 181 -d 10", "process 181, for ten seconds"}},
      .questions = {{"Which processes use System V shared memory, and which segments?", "shmsnoop"},
                    {"Why can a program not attach its shared memory?", "shmsnoop -T"}},
      .differs = {{Difference::bcc,
                   "A call that fails shows its error, such as ENOENT, instead of a number."}},
      .object = skeleton<shmsnoop_bpf>(),
      .options = {shared::timestamp(), shared::pid(), shared::tid(), shared::duration('d'),
                  shared::name('n'), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"shmget", {{{progs::on_shmget}}}},
                {"shmat", {{{progs::on_shmat}}}},
                {"shmdt", {{{progs::on_shmdt}}}},
                {"shmctl", {{{progs::on_shmctl}}}},
                {"results", {{{progs::on_exit}}}}},
      .report = events<Event>(
          {who<&Event::who>(id::pid.columns(-6).with("!tid"), id::tid.columns(-6).with("tid"),
                            id::comm),
           named<&Event::call, kCalls>("call", "SYS", as::wide(as::text, 6), "the call"),
           derived<Event, result>("ret", "RET", as::wide(as::text, 16), "what it returned")
               .in_text(),
           with(
               "json",
               {failure<&Event::ret>("why it failed; null: it succeeded"),
                derived<Event, id_of>("shmid", "SHMID", as::number, "id of the segment").or_null(),
                derived<Event, address>("address", "ADDRESS", as::number, "where it is attached"),
                derived<Event, bytes>("size_bytes", "SIZE", as::number, "size that shmget requests")
                    .or_null(),
                field<&Event::latency_ns>("latency_ns", "LAT(us)", as::microseconds,
                                          "time of the call"),
                who<&Event::who>(id::uid)}),
           who<&Event::who>(id::cgroup),
           derived<Event, arguments>("arguments_text", "ARGs", as::rest, "its arguments")}),
      .announce = "Tracing System V shared memory",
  };
}
