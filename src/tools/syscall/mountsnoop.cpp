// mountsnoop: system calls that mount and unmount file systems, with arguments and results.
#include "syscall/mountsnoop.h"

#include <fcntl.h>

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "coretap/errors.hpp"
#include "coretap/flags.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "mountsnoop.skel.h"

using namespace coretap;
using Event = mountsnoop_event;

namespace {

constexpr int kNone = -1;
constexpr int kMostErrno = 4095;

/// The types of a call's arguments: s string, d descriptor of a directory, n number, f flags or a
/// command by name, a struct mount_attr, v a value whose type depends on the command. The numbers
/// after it are the indices of the arguments in the JSON fields.
struct Call {
  std::string_view name, arguments;
  int fs_type = kNone, source = kNone, target = kNone, data = kNone, flags = kNone;
  std::string_view system_call = name;
};
constexpr Call kCalls[] = {
    {"mount", "sssfs", 2, 0, 1, 4, 3},
    {"umount", "sf", kNone, kNone, 0, kNone, 1, "umount2"},
    {"pivot_root", "ss", kNone, 0, 1},
    {"open_tree", "dsf", kNone, 1, kNone, kNone, 2},
    {"move_mount", "dsdsf", kNone, 1, 3, kNone, 4},
    {"fsopen", "sf", 0, kNone, kNone, kNone, 1},
    {"fsconfig", "nfsvn", kNone, kNone, kNone, 3, 1},
    {"fsmount", "nff", kNone, kNone, kNone, kNone, 2},
    {"fspick", "dsf", kNone, 1, kNone, kNone, 2},
    {"mount_setattr", "dsfan", kNone, kNone, 1, kNone, 2},
    {"open_tree_attr", "dsfan", kNone, 1, kNone, kNone, 2},
};
static_assert(std::size(kCalls) == MOUNTSNOOP_CALLS);

const Call& call_of(const Event& e) { return kCalls[e.call % MOUNTSNOOP_CALLS]; }

bool given(const Event& e, int i) { return i >= 0 && e.given & 1U << i; }

Value string(const Event& e, int i) {
  if (!given(e, i)) return {};
  return std::string(text_of(e, e.text[i])) + (e.cut & 1U << i ? "..." : "");
}

std::string words(const Event& e, int i) {
  const std::vector<std::uint64_t> all(std::begin(e.args), std::end(e.args));
  return argument_words(call_of(e).system_call, static_cast<std::size_t>(i), all)
      .value_or(fmt::format("{:#x}", e.args[i]));
}

std::string attributes(const Event& e) {
  if (!e.attr_given) return fmt::format("{:#x}", e.args[3]);
  std::string text;
  auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  };
  if (e.attr.set) add("attr_set", flag_words(mount_attribute_words(), e.attr.set));
  if (e.attr.clear) add("attr_clr", flag_words(mount_attribute_words(), e.attr.clear));
  if (std::uint64_t all[] = {0, 0, 0, e.attr.propagation}; e.attr.propagation)
    add("propagation", argument_words("mount", 3, all).value_or(""));
  if (e.attr.userns_fd) add("userns_fd", std::to_string(e.attr.userns_fd));
  return "{" + text + "}";
}

std::string argument(const Event& e, int i) {
  auto value = e.args[i];
  if (auto text = string(e, i); auto* known = std::get_if<std::string>(&text))
    return "\"" + *known + "\"";
  switch (call_of(e).arguments[static_cast<std::size_t>(i)]) {
    case 'f':
      return words(e, i);
    case 'd':
      if (static_cast<std::int32_t>(value) == AT_FDCWD) return "AT_FDCWD";
      [[fallthrough]];
    case 'n':
      return std::to_string(static_cast<std::int32_t>(value));
    case 'a':
      return attributes(e);
    default:
      return value ? fmt::format("{:#x}", value) : "NULL";
  }
}

bool failed(const Event& e) { return e.ret < 0 && e.ret >= -kMostErrno; }

std::string shown(const Event& e) {
  auto& call = call_of(e);
  auto all = std::string(call.name) + "(";
  for (int i = 0; i < static_cast<int>(call.arguments.size()); i++)
    all += (i ? ", " : "") + argument(e, i);
  return all + ") = " + (failed(e) ? error_name(static_cast<int>(-e.ret)) : std::to_string(e.ret));
}

std::string name(const Event& e) { return std::string(call_of(e).name); }
template <int Call::*Which>
Value part(const Event& e) {
  return string(e, call_of(e).*Which);
}
/// fsconfig() sets "size=1M" (key and value), or "ro".
Value data(const Event& e) {
  auto value = string(e, call_of(e).data);
  if (e.call != MOUNTSNOOP_FSCONFIG || !given(e, 2)) return value;
  auto key = std::get<std::string>(string(e, 2));
  auto* text = std::get_if<std::string>(&value);
  return text ? key + "=" + *text : key;
}
Value flags(const Event& e) {
  auto i = call_of(e).flags;
  return i == kNone ? Value() : Value(words(e, i));
}

}  // namespace

TOOL(mountsnoop) {
  return {
      .name = "mountsnoop",
      .summary = "calls that mount and unmount file systems, with arguments and result",
      .description =
          "One line per call to mount, umount and pivot_root, and of the newer interface: fsopen, "
          "fsconfig, fsmount, fspick, open_tree, open_tree_attr, move_mount and mount_setattr. "
          "CALL shows the arguments, with the names of flags and commands, and the result: 0, a "
          "descriptor, or the name of the error. MNT_NS is the mount namespace of the thread "
          "when the call returns.\n\n"
          "Strings are shown as the program passed them, up to 4095 bytes each; '...' marks a "
          "longer string, and an address one whose memory could not be read. Binary values of "
          "fsconfig are shown by their address.\n\n"
          "Not seen: mounts that the kernel makes itself (automounts, mounts that propagate to "
          "other namespaces, mounts of a new namespace), mounts that disappear when the last "
          "process of a namespace exits, and calls by 32-bit programs on a 64-bit kernel.",
      .overhead =
          "two hooks per such call, which is rare; a small cost on every other system call, "
          "because the kernel then takes its slow path",
      .examples = {{"mountsnoop", "all calls"},
                   {"mountsnoop -P -t", "with time, and the parent of the process"},
                   {"mountsnoop -- mount /mnt", "calls by a command"}},
      .questions = {{"Which process mounts file systems, and with which options?", "mountsnoop -P"},
                    {"Why does a mount fail?", "mountsnoop -- mount /mnt"}},
      .differs =
          {{Difference::both,
            "pivot_root, fspick, open_tree, open_tree_attr and mount_setattr are traced, too; "
            "flags and commands of the newer interface have names. Errors have no minus sign: "
            "ENOENT, not -ENOENT."}},
      .object = skeleton<mountsnoop_bpf>(),
      .options = {shared::pid(), shared::timestamp('t'),
                  flag('P', "parent-process", "print the parent process"), shared::tid(0),
                  shared::uid(), shared::comm(), shared::name('n'), shared::cgroup(),
                  shared::duration()},
      .elsewhere = {{'d', "detailed", "use --json, which has each argument by its name"},
                    {0, "cgroupmap", "use --cgroup"},
                    {0, "mntnsmap", "use --container or --cgroup"}},
      .hooks = {{"results", {{{progs::on_exit}}}},
                {"calls", {{{progs::on_enter2, progs::on_enter3, progs::on_enter5}}}}},
      .report =
          events<Event>(
              {who<&Event::who>(id::comm, id::pid, id::tid.with({})),
               field<&Event::pcomm>("pcomm", "PCOMM", as::comm, "command name of its parent")
                   .with("parent-process"),
               field<&Event::ppid>("ppid", "PPID", as::pid, "its parent").with("parent-process"),
               field<&Event::mount_ns>("mount_namespace", "MNT_NS", as::wide(as::number, -11),
                                       "mount namespace of the thread"),
               with("json",
                    {derived<Event, name>("call", "OP", as::text, "the call").bounded(),
                     field<&Event::ret>("ret", "RET", as::number, "what it returned"),
                     failure<&Event::ret>("error by name; null: it succeeded"),
                     field<&Event::latency_ns>("latency_ns", "LAT(us)", as::microseconds,
                                               "time of the call"),
                     derived<Event, part<&Call::fs_type>>("fs_type", "FS", as::text,
                                                          "type of the file system")
                         .bounded(),
                     derived<Event, part<&Call::source>>("source", "SOURCE", as::text,
                                                         "what is mounted, or moved from"),
                     derived<Event, part<&Call::target>>("mount_point", "TARGET", as::text,
                                                         "where it is mounted, or moved to"),
                     derived<Event, data>("data", "DATA", as::text, "options of the file system"),
                     derived<Event, flags>("flags_text", "FLAGS", as::text,
                                           "flags of the call, or its command, by name")
                         .or_null(),
                     derived<Event, shown>("arguments_text", "ARGUMENTS", as::text,
                                           "the call with its arguments and result"),
                     derived<Event, [](const Event& e) { return e.cut != 0; }>(
                         "incomplete", "CUT", as::small, "the end of a string is missing"),
                     who<&Event::who>(id::uid)}),
               who<&Event::who>(id::cgroup),
               derived<Event, shown>("text", "CALL", as::rest,
                                     "the call with its arguments and result")
                   .in_text()})
              .timed_at_begin()
              .timed({{TimeColumn::wall, "TIME", 12, "timestamp"}}),
      .announce = "Tracing mounts and unmounts",
  };
}
