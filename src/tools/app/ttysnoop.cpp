// ttysnoop: output that programs write to a terminal.
#include "app/ttysnoop.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "coretap/config.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "tools/app/ttysnoop/report_raw.hpp"
#include "ttysnoop.skel.h"

using namespace coretap;
using Event = ttysnoop_event;
using Opt = rodata_of<ttysnoop_bpf>;

namespace {

// UNIX98_PTY_SLAVE_MAJOR: each file system of type devpts has separate terminals.
constexpr unsigned kFirstPty = 136, kLastPty = 143;

const dev_t kOwnTerminal = makedev(5, 0);  // /dev/tty: the terminal of each process

bool is_pty(dev_t device) { return major(device) >= kFirstPty && major(device) <= kLastPty; }

/// The kernel's encoding of device numbers.
std::uint64_t in_kernel(dev_t device) { return std::uint64_t{major(device)} << 20 | minor(device); }

bool is_terminal(const struct stat& file) {
  if (!S_ISCHR(file.st_mode)) return false;
  if (is_pty(file.st_rdev)) return true;
  std::error_code error;
  auto link =
      fmt::format("/sys/dev/char/{}:{}/subsystem", major(file.st_rdev), minor(file.st_rdev));
  return std::filesystem::read_symlink(link, error).filename() == "tty";
}

/// The parsed command line.
struct Settings {
  std::string terminal;  ///< empty: all
};

Result<void> take_terminal(Config& c, std::string_view text) {
  if (text.empty()) return usage("TTY: the name is empty");
  c.own<Settings>().terminal = text;
  if (!c.holds("raw|lines|json|csv"))
    c.notes.emplace_back(
        "a line for each write; --raw mirrors the terminal as in bcc, with its control sequences "
        "(--lines: without this note)");
  return {};
}

Result<void> find_terminal(Config& c, const std::string& text) {
  auto path = parse_unsigned(text)    ? fmt::format("/dev/pts/{}", text)
              : text.starts_with('/') ? text
                                      : fmt::format("/dev/{}", text);
  struct stat file {
  }, own{};
  auto failed = [&](std::string_view why) {
    return Error{fmt::format("TTY: '{}' is not a terminal", text), fmt::format("{}: {}", path, why),
                 "name it as ps(1) and who(1) do: pts/3, tty1; or by its path", kUsage};
  };
  if (stat(path.c_str(), &file)) return failed(strerror(errno));
  if (!is_terminal(file)) return failed("it is another kind of file");
  if (file.st_rdev == kOwnTerminal) return failed("it is a different terminal for each process");
  if (!fstat(STDOUT_FILENO, &own) && S_ISCHR(own.st_mode) && own.st_rdev == file.st_rdev &&
      own.st_dev == file.st_dev)
    return usage(fmt::format("TTY: {} is where the output goes", path),
                 "run it in another terminal, or write to a file");
  c.set(setting(&Opt::wanted_terminal), in_kernel(file.st_rdev));
  if (is_pty(file.st_rdev)) c.set(setting(&Opt::wanted_instance), in_kernel(file.st_dev));
  return {};
}

/// The controlling terminal of this process; 0: none.
dev_t controlling_terminal() {
  constexpr std::size_t kTerminal = 7;  // tty_nr
  auto text = read_file("/proc/self/stat").value_or("");
  auto fields = stat_fields(text);
  if (fields.size() <= kTerminal) return 0;
  auto number = parse_unsigned(fields[kTerminal]).value_or(0);
  return makedev(number >> 8 & 0xfff, (number & 0xff) | (number >> 12 & 0xfff00));
}

/// Without TTY, excludes terminals that this process writes to: its output would be traced again.
Result<void> look_up(Config& c) {
  if (auto& terminal = c.own<Settings>().terminal; !terminal.empty())
    return find_terminal(c, terminal);
  struct stat own {};
  c.set(setting(&Opt::own_terminal), in_kernel(controlling_terminal()));
  if (!fstat(STDOUT_FILENO, &own) && is_terminal(own))
    c.set(setting(&Opt::own_output), in_kernel(own.st_rdev));
  return {};
}

Result<void> check(const Config& c) {
  if (!c.given("raw") || !c.own<Settings>().terminal.empty()) return {};
  return usage("--raw needs TTY, a single terminal");
}

std::uint64_t bytes(const Event& e) { return e.data.bytes; }

std::string terminal(const Event& e) {
  constexpr unsigned kVirtual = 4, kFirstSerial = 64, kMinorBits = 20;
  auto major = e.terminal >> kMinorBits, minor = e.terminal & ((1U << kMinorBits) - 1);
  if (major >= kFirstPty && major <= kLastPty) return fmt::format("pts/{}", minor);
  if (major == kVirtual && minor < kFirstSerial) return fmt::format("tty{}", minor);
  if (major == kVirtual) return fmt::format("ttyS{}", minor - kFirstSerial);
  std::error_code error;
  auto link =
      std::filesystem::read_symlink(fmt::format("/sys/dev/char/{}:{}", major, minor), error);
  return error ? fmt::format("{}:{}", major, minor) : link.filename().string();
}

}  // namespace

TOOL(ttysnoop) {
  return {
      .name = "ttysnoop",
      .summary = "what programs write to a terminal, as it is written",
      .description =
          "One line per write to the terminal TTY: the process, the number of bytes, and what it "
          "wrote, with control characters made visible, so that they cannot change the reader's "
          "terminal. TTY is a number of a pseudo-terminal (3), a name (pts/3, tty1) or a path "
          "(/dev/pts/3). Writes to /dev/tty by programs on this terminal count. Without TTY, "
          "writes to all terminals are shown, except those of ttysnoop itself: its controlling "
          "terminal, and the one to which it writes.\n\n"
          "With --raw, only the bytes are printed, unchanged, so that the reader's terminal shows "
          "what the other one shows. It obeys all control sequences in them. With --json or --csv, "
          "they are in hexadecimal.\n\n"
          "What users type is seen only if a program writes it back: the kernel's own echo is not "
          "a write. Also not seen: writes by splice, sendfile and io_uring, and by 32-bit programs "
          "on a 64-bit kernel.",
      .overhead =
          "two hooks per write to anything, tens of nanoseconds if it is not a terminal; a small "
          "cost on every other system call, because the kernel then takes its slow path",
      .examples = {{"ttysnoop", "what is written to any other terminal"},
                   {"ttysnoop pts/3", "what is written to this terminal, by which process"},
                   {"ttysnoop --raw 3", "the same screen"},
                   {"ttysnoop --raw -C tty1 > session", "into a file"},
                   {"ttysnoop --json /dev/ttyS0", "what is sent over a serial line"}},
      .questions = {{"What does another terminal show?", "ttysnoop --raw pts/3"},
                    {"Which process writes to a terminal?", "ttysnoop pts/3"}},
      .differs =
          {{Difference::bcc,
            "Without --raw, each line names the process and has no control characters. All bytes "
            "are shown, up to 64 KiB of a write, from all parts of writev. In bcc it is 4096 "
            "bytes, from the first part."}},
      .object = skeleton<ttysnoop_bpf>(),
      .positionals = {{"TTY", "only this terminal: 3, pts/3, tty1 or a path", Positional::optional,
                       take_terminal, Complete::file}},
      .options = joined(
          {{flag(0, "raw", "only the bytes, unchanged"),
            flag(0, "lines", "a line for each write, as without it, and no note that says so"),
            flag('C', "keep-screen", "with --raw: do not clear the screen first").also("noclear"),
            number('s', "datasize", "BYTES", "at most this many bytes in a line (default: 4096)",
                   {.least = 1, .most = TTYSNOOP_PART}, setting(&Opt::part_bytes)),
            number('c', "datacount", "N", "at most this many lines of a write (default: 16)",
                   {.least = 1, .most = TTYSNOOP_PARTS}, setting(&Opt::most_parts)),
            shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(0),
            shared::duration('d')},
           belonging_to("!raw", {shared::timestamp(), shared::print_uid()})}),
      .hooks = {{"results", {{{progs::on_exit}}}},
                {"write", {{{progs::on_write}}}},
                {"writev", {{{progs::on_writev}}}}},
      .report = events<Event>(
          {derived<Event, terminal>("tty", "TTY", as::wide(as::text, -8), "the terminal"),
           who<&Event::who>(id::uid, id::pid, id::comm, id::tid, id::cgroup),
           derived<Event, bytes>("bytes", "BYTES", as::wide(as::small, 6), "number of bytes"),
           field<&Event::part>("part_number", "PART", as::small,
                               "part of a write that has several lines, from 0")
               .with("json"),
           text_field<&Event::data>("data", "DATA", as::rest, "what was written")}),
      .other_reports = {{"raw", RawReport{}}},
      .announce = "Tracing writes to terminals",
      .check = check,
      .look_up = look_up,
  };
}
