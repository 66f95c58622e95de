#include "symbols/debug_data.hpp"

#include <elf.h>
#include <string.h>

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
  const auto size = section_.size;
  if (size > *room_) return false;
  *room_ -= size;
  constexpr std::uint64_t kLeastRoom = 1 << 20;
  const bool whole = symbols::unpack(fd_, section_, [&](std::uint64_t written) {
    if (written == bytes_.size()) bytes_.resize(std::min(size, std::max(kLeastRoom, written * 2)));
    return std::span(bytes_).subspan(written);
  });
  if (whole) return true;
  bytes_ = {};
  ReadFailures::note(0);
  return false;
}

std::optional<Bytes> DebugSection::at(std::uint64_t offset, std::uint64_t count) {
  if (offset > section_.size || count > section_.size - offset) return {};
  if (section_.is_packed()) {
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
    bytes_.resize(std::min(std::max(want, count), section_.size - offset));
    begin_ = offset;
    bytes_.resize(read_bytes(fd_, section_.at + offset, bytes_.data(), bytes_.size()));
    if (bytes_.size() < count) return {};
  }
  return Bytes({bytes_.data() + (offset - begin_), static_cast<std::size_t>(count)}, offset);
}

Bytes DebugSection::from(std::uint64_t offset, std::uint64_t count) {
  if (offset >= section_.size) return Bytes({});
  return at(offset, std::min(count, section_.size - offset)).value_or(Bytes({}));
}

bool DebugSection::read(std::uint64_t offset, std::uint64_t count, std::vector<std::uint8_t>& to) {
  to.clear();
  if (offset > section_.size || count > section_.size - offset) return false;
  if (!section_.is_packed()) {
    to.resize(count);
    return read_bytes(fd_, section_.at + offset, to.data(), count) == count;
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
    if (section.size() != 0) return false;
    if (!wide && (header.sh_flags & SHF_COMPRESSED)) return false;
    const auto found = packed_section(fd, header);
    if (!found) return false;
    section.fd_ = fd;
    section.room_ = &room_;
    section.section_ = *found;
    return false;
  });
  if (sections_[info].size() == 0 || sections_[abbrev].size() == 0) return;
  // Their debug information has relocations.
  why_not_ = head.e_type == ET_REL ? "debug information of object files is not read" : "";
}

}  // namespace coretap::symbols
