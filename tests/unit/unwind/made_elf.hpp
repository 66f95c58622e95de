// Small ELF files with hand-made frames.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "elf_header.hpp"
#include "lib/stack/unwind.h"

namespace coretap::unwind::test {

/// One byte for each number.
inline std::string bytes(std::initializer_list<int> numbers) {
  std::string out;
  for (const int n : numbers) out += static_cast<char>(n);
  return out;
}
template <typename T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline constexpr std::uint64_t kFrames = 0x2000;     // where .eh_frame is loaded
inline constexpr std::uint64_t kHeader = 0x8000000;  // .eh_frame_hdr
inline constexpr std::uint64_t kCode = 0x10000;

inline const std::string kFunctionStart = bytes({0x0c, 7, 8, 0x90, 1});  // CFA rsp+8, RA at CFA-8

struct MadeElf {
  enum Finds { by_table, by_walk, by_section } finds = by_table;
  std::string frames;
  std::string code = std::string(0x1000, '\xcc');
  std::vector<std::pair<std::uint64_t, std::uint64_t>> table;  // code, frame
  std::string notes;
  std::vector<Elf64_Dyn> dynamic;
  std::uint64_t code_at = kCode;
  std::uint64_t entry = 0;
  std::uint16_t machine = EM_X86_64;        // of the frames
  std::vector<std::uint64_t> more_code_at;  // the same code again
  int table_encoding = 0x3b;
  std::uint32_t table_count = 0;  // 0: the actual number

  std::string length(std::size_t bytes) const {
    if (!long_form) return raw(static_cast<std::uint32_t>(bytes));
    return raw(std::uint32_t{0xffffffff}) + raw(static_cast<std::uint64_t>(bytes));
  }
  bool long_form = false;  // of the frames added next

  /// Returns its offset, for fde().
  std::size_t cie(const std::string& program = kFunctionStart,
                  const std::string& augmentation = "zR", const std::string& data = bytes({0x1b}),
                  int version = 1, int code_align = 1, int return_address = 16) {
    std::string body = raw(std::uint32_t{0}) + static_cast<char>(version) + augmentation + '\0' +
                       bytes({code_align, 0x78, return_address});
    if (augmentation[0] == 'z') body += static_cast<char>(data.size()) + data;
    body += program;
    const auto place = frames.size();
    frames += length(body.size()) + body;
    return place;
  }
  /// `where`: the encoded start and size; as pcrel sdata4 if it is empty.
  void fde(std::size_t cie, std::uint64_t start, std::uint32_t size, const std::string& program,
           std::string where = {}, const std::string& data = bytes({0})) {
    const auto place = frames.size();
    const auto body_at = place + length(0).size();
    if (where.empty())
      where = raw(static_cast<std::uint32_t>(start - (kFrames + body_at + 4))) + raw(size);
    const auto body = raw(static_cast<std::uint32_t>(body_at - cie)) + where + data + program;
    frames += length(body.size()) + body;
    table.emplace_back(start, kFrames + place);
  }

  std::string file() const {
    auto sorted = table;
    std::sort(sorted.begin(), sorted.end());
    return file_with(sorted);
  }
  /// With these entries in the table.
  std::string file_with(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& entries) const {
    std::string header;
    if (finds != by_section) {
      const bool none = finds == by_walk;
      header = bytes({1, 0x1b, none ? 0xff : 3, none ? 0xff : table_encoding});
      header += raw(static_cast<std::uint32_t>(kFrames - (kHeader + 4)));
      if (!none) {
        header += raw(table_count != 0 ? table_count : static_cast<std::uint32_t>(entries.size()));
        for (const auto& [start, frame] : entries)
          header += raw(static_cast<std::uint32_t>(start - kHeader)) +
                    raw(static_cast<std::uint32_t>(frame - kHeader));
      }
    }
    const std::string all_frames = frames + raw(std::uint32_t{0});
    std::vector<Elf64_Phdr> segments;
    std::string content;
    constexpr std::size_t kContent = sizeof(Elf64_Ehdr) + 8 * sizeof(Elf64_Phdr);
    const auto add = [&](unsigned type, std::uint64_t address, const std::string& text,
                         unsigned flags) {
      Elf64_Phdr segment{};
      segment.p_type = type;
      segment.p_flags = flags;
      segment.p_offset = kContent + content.size();
      segment.p_vaddr = segment.p_paddr = address;
      segment.p_filesz = segment.p_memsz = text.size();
      segment.p_align = 4;
      segments.push_back(segment);
      content += text;
    };
    if (!header.empty()) {
      add(PT_LOAD, kHeader, header, PF_R);
      segments.push_back(segments.back());
      segments.back().p_type = PT_GNU_EH_FRAME;
    }
    add(PT_LOAD, kFrames, all_frames, PF_R);
    const auto frames_offset = segments.back().p_offset;
    add(PT_LOAD, code_at, code, PF_R | PF_X);
    for (const auto address : more_code_at) add(PT_LOAD, address, code, PF_R | PF_X);
    if (!dynamic.empty()) {
      std::string entries;
      for (const auto& entry : dynamic) entries += raw(entry);
      add(PT_DYNAMIC, 0x400, entries, PF_R);
    }
    if (!notes.empty()) add(PT_NOTE, 0x300, notes, PF_R);
    auto elf = elf_header(ET_DYN, segments.size());
    elf.e_machine = machine;
    elf.e_entry = entry;
    segments.resize(8);
    if (finds == by_section) {
      const std::string names = std::string("\0.eh_frame\0.names\0", 18);
      Elf64_Shdr sections[3]{};
      sections[1].sh_name = 1;
      sections[1].sh_type = SHT_PROGBITS;
      sections[1].sh_addr = kFrames;
      sections[1].sh_offset = frames_offset;
      sections[1].sh_size = all_frames.size();
      sections[2].sh_name = 11;
      sections[2].sh_type = SHT_STRTAB;
      sections[2].sh_offset = kContent + content.size();
      sections[2].sh_size = names.size();
      content += names;
      elf.e_shoff = kContent + content.size();
      elf.e_shnum = 3;
      elf.e_shstrndx = 2;
      content += raw(sections);
    }
    std::string out = raw(elf);
    for (const auto& segment : segments) out += raw(segment);
    return out + content;
  }
};

/// A file whose table has this many rows, all on one page. An id's text is the build-id.
inline std::string file_of(std::uint32_t rows, const std::string& id, int offset = 8) {
  MadeElf elf;
  elf.code.resize(1 << UNWIND_PAGE_BITS, '\xcc');
  std::string program;
  // At its first byte, at its end, and one for each iteration.
  for (std::uint32_t i = 0; i + 2 < rows; i++)
    program += bytes({0x41, 0x0e, i % 2 ? offset : offset + 8});
  elf.fde(elf.cie(), kCode, rows - 1, program);
  if (!id.empty())
    elf.notes =
        raw(Elf64_Nhdr{4, 20, 3}) + std::string("GNU\0", 4) + id + std::string(20 - id.size(), '.');
  return elf.file();
}

}  // namespace coretap::unwind::test
