#include "record/format.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "base/descriptors.hpp"
#include "base/recall.hpp"

namespace coretap::record {

namespace {

// A skippable frame (RFC 8878): magic, length of the rest, the format's name and version.
constexpr std::uint32_t kSkippable = 0x184D2A50;
using namespace std::string_view_literals;
constexpr std::string_view kName = "CORETAP\0"sv;
constexpr std::size_t kIntroduction = 4 + 4 + kName.size() + 4;

// Level 1 is the smallest and the fastest for these records; frames of 1 MB end often enough for
// what is lost with a damaged one, and cost 4 % of size.
constexpr int kLevel = 1;
constexpr std::uint64_t kFrame = 1 << 20;
constexpr std::size_t kFlushAt = 64 << 10;

constexpr int kWindowLog = 23;                  // of a reader: 8 MB
constexpr std::uint64_t kMostPart = 64u << 20;  // bytes
constexpr std::size_t kStep = 128 << 10;        // read and unpacked at once

std::string introduction() {
  std::string bytes;
  auto put = [&](std::uint32_t value) {
    for (int i = 0; i < 4; i++) bytes += static_cast<char>(value >> 8 * i);
  };
  put(kSkippable);
  put(static_cast<std::uint32_t>(kName.size() + 4));
  bytes += kName;
  put(kMajor);
  return bytes;
}

}  // namespace

std::string Head::bytes() const {
  std::string to;
  protozero::pbf_writer out(to);
  out.add_string(1, coretap);
  out.add_string(2, tool);
  out.add_string(3, called);
  for (auto& word : words) out.add_string(4, word);
  out.add_string(5, host);
  out.add_string(6, kernel);
  out.add_string(7, machine);
  out.add_sint64(8, zone_seconds);
  out.add_string(9, zone);
  out.add_uint64(10, record_bytes);
  for (auto& option : files) out.add_string(11, option);
  if (run) out.add_fixed64(12, run);
  if (run) out.add_uint64(13, segment);
  if (layout) out.add_bytes(14, layout.packed());
  if (anonymous) out.add_bool(15, true);
  return to;
}

Head Head::of(std::string_view bytes) {
  Head head;
  protozero::pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    const bool text = in.wire_type() == protozero::pbf_wire_type::length_delimited;
    const bool number = in.wire_type() == protozero::pbf_wire_type::varint;
    std::string* to = nullptr;
    switch (in.tag()) {
      case 1:
        to = &head.coretap;
        break;
      case 2:
        to = &head.tool;
        break;
      case 3:
        to = &head.called;
        break;
      case 4:
        to = text ? &head.words.emplace_back() : nullptr;
        break;
      case 5:
        to = &head.host;
        break;
      case 6:
        to = &head.kernel;
        break;
      case 7:
        to = &head.machine;
        break;
      case 9:
        to = &head.zone;
        break;
      case 11:
        to = text ? &head.files.emplace_back() : nullptr;
        break;
      default:
        break;
    }
    if (in.tag() == 14 && text)
      head.layout = Layout::of(in.get_string()).value_or(Layout());
    else if (to && text)
      *to = in.get_string();
    else if (in.tag() == 8 && number)
      head.zone_seconds = in.get_sint64();
    else if (in.tag() == 10 && number)
      head.record_bytes = in.get_uint64();
    else if (in.tag() == 12 && in.wire_type() == protozero::pbf_wire_type::fixed64)
      head.run = in.get_fixed64();
    else if (in.tag() == 13 && number)
      head.segment = in.get_uint64();
    else if (in.tag() == 15 && number)
      head.anonymous = in.get_bool();
    else
      in.skip();
  }
  return head;
}

struct Writer::Compressor {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::array<char, 64 << 10> room{};
};

Writer::Writer() = default;
Writer::~Writer() = default;

Result<void> Writer::open(const std::string& path) {
  path_ = path;
  const auto what = fmt::format("cannot write {}", path);
  fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  struct stat file {};
  if (!fd_ || ::fstat(fd_.get(), &file) != 0) return system_error(what, errno);
  if (!S_ISREG(file.st_mode)) return Error{what, "it is not a regular file"};
  // The file may have existed, with other rights.
  if (::fchmod(fd_.get(), 0600) != 0 || ::ftruncate(fd_.get(), 0) != 0)
    return system_error(what, errno);
  begin();
  return {};
}

Result<void> Writer::open_new(int directory, const std::string& name, Room& room) {
  path_ = name;
  room_ = &room;
  fd_.reset(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     0600));
  error_ = fd_ ? 0 : errno;
  pending_.clear();
  if (!fd_) return error();
  begin();
  return {};
}

void Writer::begin() {
  if (!to_) to_ = std::make_unique<Compressor>();
  ::ZSTD_CCtx_reset(to_->context.get(), ZSTD_reset_session_only);
  ::ZSTD_CCtx_setParameter(to_->context.get(), ZSTD_c_compressionLevel, kLevel);
  written_ = in_frame_ = 0;
  write(introduction());
}

Error Writer::error() const { return system_error(fmt::format("cannot write {}", path_), error_); }

void Writer::write(std::string_view bytes) {
  const auto end = in_blocks(written_ + bytes.size());
  if (const auto more = end - in_blocks(written_); room_ && more && !room_->take(more)) {
    error_ = ENOSPC;
    return;
  }
  while (!bytes.empty() && !error_) {
    const auto n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = n < 0 ? errno : EIO;
      if (room_) room_->give_back(end - in_blocks(written_));
      return;
    }
    written_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void Writer::compress(std::string_view bytes, bool end_of_frame) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (std::size_t left = 1; left != 0 && !error_;) {
    ZSTD_outBuffer out{to_->room.data(), to_->room.size(), 0};
    left = ::ZSTD_compressStream2(to_->context.get(), &out, &in,
                                  end_of_frame ? ZSTD_e_end : ZSTD_e_flush);
    if (::ZSTD_isError(left)) {
      error_ = ENOMEM;  // the only one that is possible here
      return;
    }
    write({to_->room.data(), out.pos});
  }
  in_frame_ = end_of_frame ? 0 : in_frame_ + bytes.size();
}

void Writer::put(Part part, std::string_view bytes) {
  if (error_) return;
  protozero::pbf_writer out(pending_);
  out.add_bytes(static_cast<std::uint32_t>(part), bytes.data(), bytes.size());
  if (pending_.size() >= kFlushAt) flush();
}

void Writer::flush() {
  if (pending_.empty() || error_) return;
  compress(pending_, in_frame_ + pending_.size() >= kFrame);
  pending_.clear();
}

void Writer::close() {
  if (!fd_) return;
  if (!error_) compress(pending_, true);
  pending_.clear();
  fd_.reset();
}

struct Reader::Decompressor {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context{ZSTD_createDCtx(), ZSTD_freeDCtx};
  std::string packed;
  std::size_t at = 0;
  std::size_t left_in_frame = 0;  ///< 0: a frame has ended
  bool holds_output = false;      ///< there was no space for all of it
};

Reader::Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<void> Reader::open(const std::string& path) {
  path_ = path;
  const auto what = fmt::format("cannot read {}", path);
  fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat file {};
  if (!fd_ || ::fstat(fd_.get(), &file) != 0) return system_error(what, errno, kUsage);
  if (!S_ISREG(file.st_mode)) return Error{what, "it is not a regular file", {}, kUsage};
  file_bytes_ = static_cast<std::uint64_t>(file.st_size);
  std::string begin(kIntroduction, '\0');
  const auto n = ::pread(fd_.get(), begin.data(), begin.size(), 0);
  const auto wanted = introduction();
  if (n != static_cast<ssize_t>(begin.size()) ||
      begin.compare(0, kIntroduction - 4, wanted, 0, kIntroduction - 4) != 0)
    return Error{what, "it is not a recording of coretap", "recordings are made with --record FILE",
                 kUsage};
  if (begin != wanted)
    return Error{
        what, "another version of coretap has written it in another format", {}, kUnsupported};
  return {};
}

void Reader::use(std::string parts) {
  buffer_ = std::move(parts);
  failed_ = true;  // there is no file to unpack
}

bool Reader::more() {
  if (!from_) {  // many files may be open
    from_ = std::make_unique<Decompressor>();
    ::ZSTD_DCtx_setParameter(from_->context.get(), ZSTD_d_windowLogMax, kWindowLog);
  }
  auto& from = *from_;
  buffer_.erase(0, at_);
  at_ = 0;
  for (;;) {
    if (from.at == from.packed.size() && !from.holds_output) {
      from.packed.resize(kStep);
      ssize_t n = 0;
      do n = ::read(fd_.get(), from.packed.data(), from.packed.size());
      while (n < 0 && errno == EINTR);
      from.packed.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
      from.at = 0;
      if (n <= 0) {
        cut_ |= from.left_in_frame != 0;
        return false;
      }
    }
    const auto before = buffer_.size();
    buffer_.resize(before + kStep);
    ZSTD_inBuffer in{from.packed.data(), from.packed.size(), from.at};
    ZSTD_outBuffer out{buffer_.data(), buffer_.size(), before};
    const auto left = ::ZSTD_decompressStream(from.context.get(), &out, &in);
    buffer_.resize(out.pos);
    unpacked_ += out.pos - before;
    from.at = in.pos;
    if (::ZSTD_isError(left)) {
      failed_ = cut_ = true;
      return out.pos > before;
    }
    from.left_in_frame = left;
    from.holds_output = left && out.pos == out.size;
    if (out.pos > before) return true;
  }
}

Result<bool> Reader::next(Part& part, std::string_view& bytes) {
  for (;;) {
    std::string_view rest = std::string_view(buffer_).substr(at_);
    std::uint64_t key = 0, size = 0;
    if (take_varint(rest, key) && take_varint(rest, size)) {
      if ((key & 7) != 2 || size > kMostPart)
        return Error{fmt::format("cannot read {}", path_), "it is damaged", {}, kFailed};
      if (size <= rest.size()) {
        at_ = buffer_.size() - rest.size() + size;
        part = static_cast<Part>(key >> 3);
        bytes = rest.substr(0, size);
        return true;
      }
    }
    if (!failed_ && more()) continue;
    cut_ |= at_ != buffer_.size();
    return false;
  }
}

}  // namespace coretap::record
