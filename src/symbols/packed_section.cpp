#include "symbols/packed_section.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "coretap/small_files.hpp"

namespace coretap::symbols {

namespace {

constexpr std::size_t kPiece = 1 << 20;  // read at once

/// Reads the compressed bytes in pieces.
class Pieces {
 public:
  Pieces(int fd, const PackedSection& section)
      : fd_(fd), section_(section), bytes_(std::min<std::uint64_t>(section.stored, kPiece)) {}
  std::span<std::uint8_t> next() {
    const auto got = read_bytes(fd_, section_.at + read_, bytes_.data(),
                                std::min<std::uint64_t>(bytes_.size(), section_.stored - read_));
    read_ += got;
    return {bytes_.data(), got};
  }

 private:
  int fd_;
  const PackedSection& section_;
  std::vector<std::uint8_t> bytes_;
  std::uint64_t read_ = 0;
};

bool inflate_all(Pieces pieces, std::uint64_t size, const RoomFor& room) {
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return false;
  const std::unique_ptr<z_stream, decltype(&::inflateEnd)> end(&stream, &::inflateEnd);
  std::uint64_t written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      const auto piece = pieces.next();
      if (piece.empty()) break;
      stream.avail_in = static_cast<uInt>(piece.size());
      stream.next_in = piece.data();
    }
    const auto to = room(written);
    const auto given = std::min<std::uint64_t>(to.size(), UINT32_MAX);
    stream.avail_out = static_cast<uInt>(given);
    stream.next_out = to.data();
    status = ::inflate(&stream, Z_NO_FLUSH);
    written += given - stream.avail_out;
  }
  return status == Z_STREAM_END && written == size;
}

bool decompress_all(Pieces pieces, std::uint64_t size, const RoomFor& room) {
  const std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> stream(::ZSTD_createDStream(),
                                                                            &::ZSTD_freeDStream);
  if (!stream) return false;
  std::uint64_t written = 0;
  std::size_t left_in_frame = 1;
  ZSTD_inBuffer in{nullptr, 0, 0};
  while (written < size || left_in_frame != 0) {
    if (in.pos == in.size) {
      const auto piece = pieces.next();
      if (piece.empty()) return false;
      in = {piece.data(), piece.size(), 0};
    }
    const auto to = room(written);
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    left_in_frame = ::ZSTD_decompressStream(stream.get(), &out, &in);
    if (::ZSTD_isError(left_in_frame)) return false;
    written += out.pos;
  }
  return written == size && in.pos == in.size && pieces.next().empty();
}

}  // namespace

std::optional<PackedSection> packed_section(int fd, const GElf_Shdr& header) {
  PackedSection section{PackedSection::plain, header.sh_offset, header.sh_size, header.sh_size};
  if (!(header.sh_flags & SHF_COMPRESSED)) return section;
  constexpr std::uint32_t kZlib = 1, kZstd = 2;  // ELFCOMPRESS_*; older headers lack the second
  Elf64_Chdr head;
  if (header.sh_size <= sizeof head ||
      read_bytes(fd, header.sh_offset, &head, sizeof head) != sizeof head ||
      (head.ch_type != kZlib && head.ch_type != kZstd))
    return {};
  section.packing = head.ch_type == kZlib ? PackedSection::zlib : PackedSection::zstd;
  section.at += sizeof head;
  section.stored -= sizeof head;
  section.size = head.ch_size;
  return section;
}

bool unpack(int fd, const PackedSection& section, const RoomFor& room) {
  const Pieces pieces(fd, section);
  return section.packing == PackedSection::zlib ? inflate_all(pieces, section.size, room)
                                                : decompress_all(pieces, section.size, room);
}

}  // namespace coretap::symbols
