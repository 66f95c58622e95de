#include "record/store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/clock.hpp"
#include "coretap/json.hpp"
#include "coretap/parse.hpp"

namespace coretap::record {

namespace {

constexpr std::string_view kEnding = ".ctr";
constexpr std::uint64_t kOverhead = 2 * 4096;  // of a dump: its directory and its reason
// Parts of the limit, so that the ring and one dump of it always fit.
constexpr std::uint64_t kRingEighths = 3;
constexpr std::uint64_t kUsualFree = 64 << 20;
constexpr std::uint64_t kDumpSixteenths = 7;
constexpr double kSegmentSeconds = 10;
constexpr std::uint64_t kLeastSegment = 64 << 10;  // limit of its size

bool is_segment(std::string_view name) { return name.ends_with(kEnding); }

/// "2026-11-26T14:26:57-...", which no other program is likely to make.
bool is_dump(std::string_view name) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00-";
  if (name.size() <= kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); i++)
    if (kForm[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != kForm[i]) return false;
  return true;
}

std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  auto* all = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!all) return names;
  while (auto* entry = ::readdir(all))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..")
      names.emplace_back(entry->d_name);
  ::closedir(all);
  std::ranges::sort(names);
  return names;
}

Fd directory_at(int parent, const std::string& name) {
  return Fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::uint64_t bytes_at(int directory, const std::string& name) {
  struct stat file {};
  return ::fstatat(directory, name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
                 S_ISREG(file.st_mode)
             ? in_blocks(static_cast<std::uint64_t>(file.st_size))
             : 0;
}

/// Fails unless it is this user's, and no other user can write there.
Result<void> check_owner(const Fd& directory, const std::string& path) {
  struct stat found {};
  const auto what = fmt::format("cannot record into {}", path);
  if (!directory || ::fstat(directory.get(), &found) != 0) {
    const int error = errno;
    if (error == ENOTDIR || error == ELOOP)
      return Error{what, "it is a symbolic link or no directory", {}, kUsage};
    return system_error(what, error, kUsage);
  }
  if (found.st_uid != ::geteuid())
    return Error{what, fmt::format("it belongs to user {}", found.st_uid),
                 "name a directory of your own", kUsage};
  if (found.st_mode & (S_IWGRP | S_IWOTH))
    return Error{what, "others may write there", "chmod go-w it", kUsage};
  return {};
}

/// "2026-11-26T14:26:57", in this machine's zone.
std::string local_time() { return iso_time(monotonic_ns()).substr(0, 19); }

/// "psi memory some 150ms/1s" -> "psi-memory".
std::string word_of(std::string_view trigger) {
  std::string word;
  int words = 0;
  for (char c : trigger) {
    if (c == ' ' && ++words == 2) break;
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain)
      word += c;
    else if (!word.empty() && word.back() != '-')
      word += '-';
  }
  while (word.ends_with('-')) word.pop_back();
  return word;
}

}  // namespace

Store::~Store() {
  if (shared_) ::munmap(shared_, sizeof *shared_);
}

std::uint64_t Store::now() const { return monotonic_ns(); }

std::string Store::path(std::string_view name) const {
  return fmt::format("{}/{}", options_.directory, name);
}

Result<void> Store::open(StoreOptions options) {
  options_ = std::move(options);
  auto& path = options_.directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const auto what = fmt::format("cannot record into {}", path);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error(what, errno, kUsage);
  root_ = directory_at(AT_FDCWD, path);
  if (auto r = check_owner(root_, path); !r) return r;
  lock_.reset(
      ::openat(root_.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!lock_) return system_error(what, errno);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{what, "another coretap records there", "name another directory", kUsage};
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  auto* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!wake_ || memory == MAP_FAILED) return system_error(what, errno);
  shared_ = new (memory) Shared{};
  struct statvfs system {};
  if (::fstatvfs(root_.get(), &system) == 0)
    if (const auto all = static_cast<std::uint64_t>(system.f_blocks) * system.f_frsize / 10 * 9;
        all && all < options_.most) {
      options_.most = all;
      options_.say(fmt::format("{} MB are the limit, as the file system of {} has no more",
                               all >> 20, path));
    }
  shared_->left = static_cast<std::int64_t>(options_.most);
  shared_->reserve = static_cast<std::int64_t>(options_.most / 16);
  if (auto r = find_dumps(); !r) return r;
  if (auto r = open_ring(); !r) return r;
  save_leftovers();
  make_room();
  look_at_file_system();
  return {};
}

Result<void> Store::open_ring() {
  const std::string name(kRingDirectory);
  if (::mkdirat(root_.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error(fmt::format("cannot make {}", path(name)), errno);
  ring_ = directory_at(root_.get(), name);
  return check_owner(ring_, path(name));
}

/// Those of earlier runs.
Result<void> Store::find_dumps() {
  for (auto& name : names_in(root_.get())) {
    if (!is_dump(name)) continue;
    const auto directory = directory_at(root_.get(), name);
    if (!directory) continue;
    Dump dump{name, kOverhead, {}};
    for (auto& file : names_in(directory.get())) dump.bytes += bytes_at(directory.get(), file);
    shared_->left -= static_cast<std::int64_t>(dump.bytes);
    dumps_.push_back(std::move(dump));
  }
  return {};
}

/// The last minutes before a run was killed are what one wants to see.
void Store::save_leftovers() {
  std::vector<std::string> left;
  for (auto& name : names_in(ring_.get()))
    if (is_segment(name)) left.push_back(name);
  if (left.empty()) return;
  const auto name = unused_name(local_time() + "-interrupted");
  Dump dump{name, kOverhead, {}};
  if (::mkdirat(root_.get(), name.c_str(), 0700) != 0) return;
  const auto to = directory_at(root_.get(), name);
  for (auto& file : left) {
    const auto bytes = bytes_at(ring_.get(), file);
    if (::renameat(ring_.get(), file.c_str(), to.get(), file.c_str()) == 0) dump.bytes += bytes;
  }
  shared_->left -= static_cast<std::int64_t>(dump.bytes);
  dumps_.push_back(std::move(dump));
  options_.say(fmt::format("saved what an interrupted run has left: {}", path(name)));
}

std::size_t Store::add(std::string name, std::string command) {
  tools_.push_back({.name = std::move(name), .command = std::move(command)});
  return tools_.size() - 1;
}

Result<void> Store::check() const {
  if (tools_.size() > kMostTools)
    return usage(fmt::format("at most {} tools can be recorded", kMostTools));
  const auto least = tools_.size() * 2 * kLeastSegment * 8 / kRingEighths;
  if (options_.most >= least) return {};
  return usage(fmt::format("{} are too few bytes for {} tools", options_.most, tools_.size()),
               fmt::format("they need at least {} KB", (least + 1023) / 1024));
}

std::unique_ptr<Segments> Store::segments(std::size_t tool) {
  // Several segments of each tool fit into the ring, and some into a short window.
  const auto bytes = options_.most * kRingEighths / 8 / (6 * tools_.size());
  const double seconds = std::clamp(options_.last / 6, 1.0, kSegmentSeconds);
  return std::make_unique<Segments>(
      *shared_, shared_->tools[tool], ring_.get(), tools_[tool].name, wake_.get(),
      Segments::Limits{static_cast<std::uint64_t>(seconds * 1e9), std::max(bytes, kLeastSegment)});
}

// ---- the ring ----

void Store::finished(Segment& segment, std::uint64_t now_ns) {
  segment.bytes = bytes_at(ring_.get(), segment_name(tools_[segment.tool].name, segment.number));
  segment.ended_ns = now_ns;
}

void Store::notice() {
  const auto now_ns = now();
  for (std::size_t i = 0; i < tools_.size(); i++) {
    auto& tool = tools_[i];
    const auto current = shared_->tools[i].segment.load();
    const bool closed = current && shared_->tools[i].closed == current;
    if (tool.known == current && !closed) continue;
    for (auto& segment : segments_)
      if (segment.tool == i && !segment.ended_ns) finished(segment, now_ns);
    while (tool.known < current) {
      segments_.push_back({i, ++tool.known, 0, 0, true, 0, 0});
      if (tool.known < current || closed) finished(segments_.back(), now_ns);
    }
  }
  for (auto& segment : segments_)
    if (!segment.ended_ns)
      segment.bytes =
          bytes_at(ring_.get(), segment_name(tools_[segment.tool].name, segment.number));
}

void Store::ended(std::size_t tool, std::string why) {
  notice();
  for (auto& segment : segments_)
    if (segment.tool == tool && !segment.ended_ns) finished(segment, now());
  tools_[tool].down = std::move(why);
  settle();
}

std::uint64_t Store::ring_bytes() const {
  std::uint64_t sum = 0;
  for (auto& segment : segments_) sum += segment.in_ring ? segment.bytes : 0;
  return sum;
}

/// Gives its bytes back if it has no name any more.
void Store::release(std::list<Segment>::iterator segment) {
  if (segment->in_ring || segment->dumps) return;
  shared_->left += static_cast<std::int64_t>(segment->bytes);
  segments_.erase(segment);
}

void Store::leave_ring(std::list<Segment>::iterator segment) {
  ::unlinkat(ring_.get(), segment_name(tools_[segment->tool].name, segment->number).c_str(), 0);
  segment->in_ring = false;
  release(segment);
}

bool Store::remove_oldest_segment() {
  auto oldest = std::ranges::find_if(segments_, [](auto& s) { return s.in_ring && s.ended_ns; });
  if (oldest == segments_.end()) return false;
  leave_ring(oldest);
  return true;
}

void Store::settle() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  notice();
  if (open_) {
    link_new();
    if (now() >= open_until_ns_) close_dump();
  }
  const auto now_ns = now(), last = static_cast<std::uint64_t>(options_.last * 1e9);
  for (auto at = segments_.begin(); at != segments_.end();) {
    auto segment = at++;
    if (segment->in_ring && segment->ended_ns && segment->ended_ns + last < now_ns)
      leave_ring(segment);
  }
  make_room();
  look_at_file_system();
}

void Store::make_room() {
  while (dumps_.size() > options_.keep && remove_oldest_dump()) {
  }
  std::uint64_t oldest_ns = 0;
  const auto limit = options_.most * kRingEighths / 8;
  for (auto bytes = ring_bytes(); bytes > limit; bytes = ring_bytes()) {
    for (auto& segment : segments_)
      if (segment.in_ring && segment.ended_ns) {
        oldest_ns = segment.ended_ns;
        break;
      }
    if (!remove_oldest_segment()) break;
  }
  if (oldest_ns && !std::exchange(said_small_, true))
    options_.say(fmt::format("the last {:.0f} s are asked for, {:.0f} s fit: --most {} MB is small",
                             options_.last, static_cast<double>(now() - oldest_ns) / 1e9,
                             options_.most >> 20));
  while (shared_->left < 2 * shared_->reserve)
    if (!remove_oldest_dump() && !remove_oldest_segment()) break;
}

/// Other files may fill it.
void Store::look_at_file_system() {
  auto short_of = [&] {
    struct statvfs system {};
    if (::fstatvfs(root_.get(), &system) != 0) return false;
    const auto block = static_cast<std::uint64_t>(system.f_frsize);
    const auto usual = std::min(kUsualFree, system.f_blocks * block / 20);
    return system.f_bavail * block < (options_.free ? options_.free : usual);
  };
  bool is_short = short_of();
  while (is_short && (remove_oldest_dump() || remove_oldest_segment())) is_short = short_of();
  shared_->full = is_short;
  if (is_short && !said_full_)
    options_.say(fmt::format("the file system of {} is full: nothing is recorded until it is not",
                             options_.directory));
  said_full_ = is_short;
}

// ---- dumps ----

std::string Store::unused_name(const std::string& wanted) const {
  auto name = wanted;
  struct stat there {};
  for (int i = 2; ::fstatat(root_.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0; i++)
    name = fmt::format("{}-{}", wanted, i);
  return name;
}

/// False: there is none but the one that is being made, or the last one.
bool Store::remove_oldest_dump() {
  if (dumps_.size() < 2) return false;
  remove_dump(0);
  return true;
}

void Store::remove_dump(std::size_t number) {
  auto dump = std::move(dumps_[number]);
  dumps_.erase(dumps_.begin() + static_cast<std::ptrdiff_t>(number));
  if (const auto directory = directory_at(root_.get(), dump.name))
    for (auto& name : names_in(directory.get()))
      if (is_segment(name) || name.starts_with(kDumpReason))
        ::unlinkat(directory.get(), name.c_str(), 0);
  ::unlinkat(root_.get(), dump.name.c_str(), AT_REMOVEDIR);
  shared_->left += static_cast<std::int64_t>(dump.bytes);
  for (auto& segment : dump.segments) {
    segment->dumps--;
    release(segment);
  }
}

std::string Store::dump(const Trigger& why) {
  const auto began = now();
  const auto time = local_time();
  const auto wanted = static_cast<std::uint64_t>(std::min(why.last, options_.last) * 1e9);
  const auto from = wanted ? began - std::min(began, wanted) : 0;
  if (open_) {
    constexpr std::size_t kMostTold = 100;
    if (told_.size() < kMostTold) told_.push_back({time, why.name, why.value});
    if (from < dump_from_ns_) {
      dump_from_ns_ = from;
      link_new();
    }
    return path(dumps_.back().name);
  }
  if (!why.of_user) {
    const auto per = static_cast<std::uint64_t>(options_.per * 1e9);
    while (!times_.empty() && times_.front() + per <= began) times_.pop_front();
    if (times_.size() >= options_.dumps) {
      refused_++;
      refusal_ = fmt::format("no dump, as there were {} in the last {:.0f} s", times_.size(),
                             options_.per);
      if (!std::exchange(said_refused_, true))
        options_.say(fmt::format("{}: {}", why.name, refusal_));
      return {};
    }
    times_.push_back(began);
  }
  said_refused_ = false;
  settle();
  const auto name = unused_name(fmt::format("{}-{}", time, word_of(why.name)));
  if (::mkdirat(root_.get(), name.c_str(), 0700) == 0) open_ = directory_at(root_.get(), name);
  if (!open_) {
    refused_++;
    const auto failed = system_error(fmt::format("cannot make {}", path(name)), errno);
    refusal_ = fmt::format("no dump: {}: {}", failed.what, failed.why);
    options_.say(fmt::format("{}: {}", why.name, refusal_));
    return {};
  }
  made_++;
  shared_->left -= static_cast<std::int64_t>(kOverhead);
  dumps_.push_back({name, kOverhead, {}});
  told_ = {{time, why.name, why.value}};
  dump_bytes_ = 0;
  dump_from_ns_ = from;
  cut_ = false;
  open_until_ns_ = began + static_cast<std::uint64_t>(options_.after * 1e9);
  link_new();
  // All that was recorded until now is in whole segments within a second.
  for (std::size_t i = 0; i < tools_.size(); i++) shared_->tools[i].wanted++;
  auto written = write_reason(false);
  const auto ms = static_cast<double>(now() - began) / 1e6;
  slowest_ms_ = std::max(slowest_ms_, ms);
  options_.say(fmt::format("{}{}{}: saved {:.1f} MB of {} {} in {:.1f} ms: {}", why.name,
                           why.value.empty() ? "" : ": ", why.value,
                           static_cast<double>(dump_bytes_) / 1e6, tools_.size(),
                           tools_.size() == 1 ? "tool" : "tools", ms, path(name)));
  if (!written) options_.say(written.error().what + ": " + written.error().why);
  make_room();
  if (options_.after <= 0) close_dump();
  return path(name);
}

bool Store::link(std::list<Segment>::iterator segment) {
  const auto name = segment_name(tools_[segment->tool].name, segment->number);
  if (::linkat(ring_.get(), name.c_str(), open_.get(), name.c_str(), 0) != 0) return false;
  segment->dumps++;
  segment->last_dump = made_;
  dumps_.back().segments.push_back(segment);
  dump_bytes_ += segment->bytes;
  return true;
}

void Store::link_new() {
  for (auto at = segments_.begin(); at != segments_.end() && !cut_; ++at) {
    if (!at->in_ring || at->last_dump == made_) continue;
    if (at->ended_ns && at->ended_ns < dump_from_ns_) continue;
    if (dump_bytes_ + at->bytes > options_.most * kDumpSixteenths / 16)
      cut_ = true;
    else
      link(at);
  }
}

void Store::close_dump() {
  if (!open_) return;
  for (std::size_t i = 0; i < tools_.size(); i++) shared_->tools[i].wanted++;
  if (auto r = write_reason(true); !r) options_.say(r.error().what + ": " + r.error().why);
  open_.reset();
}

Result<void> Store::write_reason(bool complete) {
  utsname system{};
  ::uname(&system);
  // With those of later triggers, if there are any.
  const auto began_ns = open_until_ns_ - static_cast<std::uint64_t>(options_.after * 1e9);
  const auto last =
      dump_from_ns_ ? static_cast<double>(began_ns - dump_from_ns_) / 1e9 : options_.last;
  JsonLine line;
  line.text("trigger", told_[0].name).text("value", told_[0].value).text("time", told_[0].time);
  line.text_if(!options_.anonymous, "host", system.nodename).text("kernel", system.release);
  line.number("last_s", static_cast<std::uint64_t>(std::ceil(last)))
      .number("after_s", static_cast<std::uint64_t>(options_.after))
      .boolean("complete", complete)
      .boolean("cut_short", cut_)
      .number("dumps_refused", refused_);
  line.key("triggers").begin_array();
  for (auto& told : told_) {
    line.begin_object().text("time", told.time).text("trigger", told.name);
    line.text("value", told.value).end_object();
  }
  line.end_array().key("tools").begin_array();
  for (std::size_t i = 0; i < tools_.size(); i++) {
    auto& state = shared_->tools[i];
    line.begin_object().text("name", tools_[i].name);
    line.text_if(!options_.anonymous, "command", tools_[i].command);
    line.number("events", state.events).number("shown", state.shown);
    line.number("unrecorded", state.unrecorded).text("down", tools_[i].down).end_object();
  }
  line.end_array();
  const auto text = std::string(line.finish()) + "\n";
  const std::string name(kDumpReason), fresh = name + ".new";
  const auto what = fmt::format("cannot write {}/{}", path(dumps_.back().name), name);
  ::unlinkat(open_.get(), fresh.c_str(), 0);
  const Fd file(::openat(open_.get(), fresh.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return system_error(what, errno);
  const auto n = ::write(file.get(), text.data(), text.size());
  if (n != static_cast<ssize_t>(text.size())) {
    const int error = n < 0 ? errno : ENOSPC;
    ::unlinkat(open_.get(), fresh.c_str(), 0);
    return system_error(what, error);
  }
  if (::renameat(open_.get(), fresh.c_str(), open_.get(), name.c_str()) != 0)
    return system_error(what, errno);
  return {};
}

void Store::end() {
  notice();
  if (open_) {
    link_new();
    close_dump();
  }
  while (remove_oldest_segment()) {
  }
  for (auto& name : names_in(ring_.get()))
    if (is_segment(name)) ::unlinkat(ring_.get(), name.c_str(), 0);
  ::unlinkat(root_.get(), std::string(kRingDirectory).c_str(), AT_REMOVEDIR);
}

}  // namespace coretap::record
