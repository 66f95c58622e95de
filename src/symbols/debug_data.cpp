#include "symbols/debug_data.hpp"

#include <elf.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "base/read_failures.hpp"
#include "coretap/small_files.hpp"
#include "symbols/process_files.hpp"

namespace coretap::symbols {

namespace {

constexpr std::array<std::string_view, DebugData::kSections> kDebugSections = {
    ".debug_info",     ".debug_abbrev",      ".debug_aranges", ".debug_line",   ".debug_str",
    ".debug_line_str", ".debug_str_offsets", ".debug_addr",    ".debug_ranges", ".debug_rnglists"};
constexpr std::uint64_t kMostText = 4096;
constexpr std::uint64_t kLeastWindow = 512, kMostWindow = 64 << 10;

}  // namespace

bool DebugSection::unpack() {
  if (unpacked_) return !bytes_.empty();
  unpacked_ = true;
  if (size_ > *room_) return false;
  *room_ -= size_;
  // Memory is taken as the contents arrive: a small file may promise much.
  constexpr std::size_t kPiece = 1 << 20;
  std::vector<std::uint8_t> packed(std::min<std::uint64_t>(stored_, kPiece));
  std::uint64_t at = 0, written = 0;
  const auto more = [&] {
    const auto got = read_bytes(fd_, place_ + at, packed.data(),
                                std::min<std::uint64_t>(packed.size(), stored_ - at));
    at += got;
    return got;
  };
  const auto room = [&] {
    if (written == bytes_.size())
      bytes_.resize(std::min(size_, std::max<std::uint64_t>(kPiece, written * 2)));
    return bytes_.size() - written;
  };
  bool whole = false;
  if (packing_ == zlib) {
    z_stream stream{};
    if (::inflateInit(&stream) != Z_OK) return false;
    int status = Z_OK;
    while (status == Z_OK && written < size_) {
      if (stream.avail_in == 0) {
        stream.avail_in = static_cast<uInt>(more());
        stream.next_in = packed.data();
        if (stream.avail_in == 0) break;
      }
      const auto given = std::min<std::uint64_t>(room(), UINT32_MAX);
      stream.avail_out = static_cast<uInt>(given);
      stream.next_out = bytes_.data() + written;
      status = ::inflate(&stream, Z_NO_FLUSH);
      written += given - stream.avail_out;
    }
    ::inflateEnd(&stream);
    whole = written == size_;
  } else {
    ZSTD_DStream* stream = ::ZSTD_createDStream();
    if (stream == nullptr) return false;
    ZSTD_inBuffer in{packed.data(), 0, 0};
    while (written < size_) {
      if (in.pos == in.size) {
        in.size = more();
        in.pos = 0;
        if (in.size == 0) break;
      }
      ZSTD_outBuffer out{bytes_.data(), 0, 0};
      out.size = room();
      out.dst = bytes_.data() + written;
      if (::ZSTD_isError(::ZSTD_decompressStream(stream, &out, &in))) break;
      written += out.pos;
    }
    ::ZSTD_freeDStream(stream);
    whole = written == size_;
  }
  if (!whole) {
    bytes_ = {};
    ReadFailures::note(0);
  }
  return whole;
}

std::optional<Bytes> DebugSection::at(std::uint64_t offset, std::uint64_t count) {
  if (offset > size_ || count > size_ - offset) return {};
  if (packing_ != plain) {
    if (!unpack()) return {};
    return Bytes({bytes_.data() + offset, static_cast<std::size_t>(count)}, offset);
  }
  if (offset < begin_ || offset - begin_ > bytes_.size() ||
      count > bytes_.size() - (offset - begin_)) {
    // Reads that go on get growing pieces, others a small one.
    const bool goes_on =
        offset >= begin_ && offset - begin_ <= bytes_.size() + kLeastWindow && !bytes_.empty();
    const std::uint64_t want =
        goes_on ? std::clamp<std::uint64_t>(bytes_.size() * 2, kLeastWindow, kMostWindow)
                : kLeastWindow;
    bytes_.resize(std::min(std::max(want, count), size_ - offset));
    begin_ = offset;
    bytes_.resize(read_bytes(fd_, place_ + offset, bytes_.data(), bytes_.size()));
    if (bytes_.size() < count) return {};
  }
  return Bytes({bytes_.data() + (offset - begin_), static_cast<std::size_t>(count)}, offset);
}

Bytes DebugSection::from(std::uint64_t offset, std::uint64_t count) {
  if (offset >= size_) return Bytes({});
  return at(offset, std::min(count, size_ - offset)).value_or(Bytes({}));
}

bool DebugSection::read(std::uint64_t offset, std::uint64_t count, std::vector<std::uint8_t>& to) {
  to.clear();
  if (offset > size_ || count > size_ - offset) return false;
  if (packing_ == plain) {
    to.resize(count);
    return read_bytes(fd_, place_ + offset, to.data(), count) == count;
  }
  if (!unpack()) return false;
  const auto* begin = bytes_.data() + offset;
  to.assign(begin, begin + count);
  return true;
}

std::string DebugSection::text(std::uint64_t offset) {
  for (const std::uint64_t most : {std::uint64_t{256}, kMostText}) {
    const Bytes bytes = from(offset, most);
    const std::string_view text(reinterpret_cast<const char*>(bytes.position()), bytes.left());
    if (const auto end = text.find('\0'); end != text.npos) return std::string(text.substr(0, end));
    if (most == kMostText) return std::string(text);
  }
  return {};
}

DebugData::DebugData(int fd, std::uint64_t most_unpacked)
    : room_(most_unpacked), why_not_("the file has no debug information") {
  const auto file = identity_of(fd);
  const auto elf = open_elf(fd, true);
  GElf_Ehdr head;
  if (!file || !elf || ::gelf_getehdr(elf.get(), &head) == nullptr) return;
  const bool wide = ::gelf_getclass(elf.get()) == ELFCLASS64;
  find_section(elf.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
    const auto known = std::ranges::find(kDebugSections, name);
    if (known == kDebugSections.end() || header.sh_type == SHT_NOBITS || header.sh_size == 0)
      return false;
    if (header.sh_offset > file->size || header.sh_size > file->size - header.sh_offset) {
      ReadFailures::note(0);
      return false;
    }
    auto& section = sections_[static_cast<std::size_t>(known - kDebugSections.begin())];
    if (section.size_ != 0) return false;
    section.fd_ = fd;
    section.room_ = &room_;
    section.place_ = header.sh_offset;
    section.stored_ = section.size_ = header.sh_size;
    if ((header.sh_flags & SHF_COMPRESSED) == 0) return false;
    constexpr std::uint32_t kZlib = 1, kZstd = 2;  // ELFCOMPRESS_*; older headers lack the second
    section.size_ = 0;
    Elf64_Chdr packed;
    if (!wide || header.sh_size <= sizeof packed ||
        read_bytes(fd, header.sh_offset, &packed, sizeof packed) != sizeof packed ||
        (packed.ch_type != kZlib && packed.ch_type != kZstd))
      return false;
    section.packing_ = packed.ch_type == kZlib ? DebugSection::zlib : DebugSection::zstd;
    section.place_ += sizeof packed;
    section.stored_ -= sizeof packed;
    section.size_ = packed.ch_size;
    return false;
  });
  if (sections_[info].size() == 0 || sections_[abbrev].size() == 0) return;
  // Their debug information has relocations.
  why_not_ = head.e_type == ET_REL ? "debug information of object files is not read" : "";
}

}  // namespace coretap::symbols
