// Small ELF files with a hand-made table of Go's functions (.gopclntab).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "elf_header.hpp"
#include "symbols/go_table.hpp"
#include "unwind/made_elf.hpp"

namespace coretap::unwind::test {

inline constexpr std::uint64_t kGoText = 0x401000;

struct MadeGo {
  using Version = symbols::GoHeader::Version;
  struct Function {
    std::string name, code;
    std::vector<std::pair<std::uint32_t, int>> steps;  // end of each, size of the frame
    int flags = 0;
    std::string file = "a.go";
    bool has_steps = true;
  };
  Version version = symbols::GoHeader::go120;
  std::vector<Function> functions;
  std::string before = {};  // other code at the start of .text
  bool knows_text = true;
  std::string padding = "\xcc";
  std::size_t alignment = 32;

  static std::string uleb(std::uint64_t value) {
    std::string out;
    do {
      out += static_cast<char>((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
      value >>= 7;
    } while (value != 0);
    return out;
  }
  static std::string values(const std::vector<std::pair<std::uint32_t, int>>& steps) {
    std::string out;
    std::int64_t value = -1;
    std::uint32_t at = 0;
    for (const auto& [end, next] : steps) {
      const auto change = next - value;
      out += uleb(static_cast<std::uint64_t>(change < 0 ? ~change << 1 | 1 : change << 1) &
                  UINT32_MAX);
      out += uleb(end - at);
      value = next;
      at = end;
    }
    return out + '\0';
  }

  /// Compiled functions with frames, as all programs have, and this one after them.
  MadeGo& with(const Function& function) {
    while (functions.size() < 10) {
      // sub $0x20+8n,%rsp; ret after add
      const auto size = static_cast<int>(0x20 + 8 * functions.size());
      functions.push_back(
          {.name = "main.f" + std::to_string(functions.size()),
           .code = bytes({0x48, 0x83, 0xec, size, 0x90, 0x90, 0x48, 0x83, 0xc4, size, 0xc3}),
           .steps = {{4, 0}, {10, size}, {11, 0}}});
      if (version != symbols::GoHeader::go120) continue;
      auto& f = functions.back();  // push %rbp; mov %rsp,%rbp; ...
      f.code = bytes({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, size, 0x90, 0x90, 0x48, 0x83, 0xc4,
                      size, 0x5d, 0xc3});
      f.steps = {{1, 0}, {8, 8}, {14, 8 + size}, {15, 8}, {16, 0}};
    }
    functions.push_back(function);
    return *this;
  }

  /// Offset of a function in Go's code.
  std::uint64_t start(std::size_t index) const {
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < index; i++)
      at = (at + functions[i].code.size() + alignment - 1) / alignment * alignment;
    return at;
  }
  std::uint64_t address(std::size_t index) const { return kGoText + before.size() + start(index); }
  std::uint64_t address() const { return address(functions.size() - 1); }  // of the last one

  std::string file() const {
    const bool old = version == symbols::GoHeader::go116;
    const auto text = kGoText + before.size();
    std::string names(1, '\0'), units, files(1, '\0'), pcs(1, '\0'), described, list;
    const auto word = [&](std::uint64_t value) {
      return old ? raw(value) : raw(static_cast<std::uint32_t>(value));
    };
    const std::size_t each = old ? 16 : 8, list_bytes = functions.size() * each + each / 2;
    std::string code = before;
    for (std::size_t i = 0; i < functions.size(); i++) {
      const auto& f = functions[i];
      while (code.size() < before.size() + start(i)) code += padding;
      code += f.code;
      const auto begin = word(old ? text + start(i) : start(i));
      while ((list_bytes + described.size()) % 8 != 0) described += '\0';
      list += begin + word(list_bytes + described.size());
      const auto number = [](std::size_t value) { return raw(static_cast<std::uint32_t>(value)); };
      const auto lines = pcs.size() + (f.has_steps ? values(f.steps).size() : 0);
      described += begin + number(names.size()) + number(0) + number(0);
      described += number(f.has_steps ? pcs.size() : 0) + number(lines) + number(0) + number(0);
      described += number(units.size() / 4);
      if (version == symbols::GoHeader::go120) described += number(0);
      described += bytes({0, f.flags, 0, 0});
      if (f.has_steps) pcs += values(f.steps);
      pcs += values({{static_cast<std::uint32_t>(f.code.size()), 0}});  // file 0 of the unit
      names += f.name + '\0';
      units += number(files.size());
      files += f.file + '\0';
    }
    list += word((old ? text : 0) + code.size() - before.size());

    constexpr std::uint32_t kMagics[] = {0xfffffffa, 0xfffffff0, 0xfffffff1};
    std::string table = raw(kMagics[version]) + bytes({0, 0, 1, 8}) +
                        raw(std::uint64_t{functions.size()}) + raw(std::uint64_t{1});
    if (!old) table += raw(knows_text ? text : std::uint64_t{0});
    auto offset = table.size() + 5 * 8;
    for (const auto* part : {&names, &units, &files, &pcs, &list}) {
      table += raw(std::uint64_t{offset});
      offset += part->size();
    }
    table += names + units + files + pcs + list + described;

    // Headers, code, table, sections; offsets are addresses less a constant.
    constexpr std::size_t kCodeAt = 0x1000;
    std::string file(kCodeAt, '\0');
    file += code;
    const auto table_at = file.size();
    file += table;
    const std::string section_names("\0.text\0.gopclntab\0.shstrtab\0", 28);
    const auto names_at = file.size();
    file += section_names;
    std::vector<Elf64_Shdr> sections(4);
    const auto set = [&](std::size_t i, Elf64_Word name, Elf64_Word type, std::size_t at,
                         std::size_t size) {
      sections[i].sh_name = name;
      sections[i].sh_type = type;
      sections[i].sh_offset = at;
      sections[i].sh_addr = kGoText - kCodeAt + at;
      sections[i].sh_size = size;
    };
    set(1, 1, SHT_PROGBITS, kCodeAt, code.size());
    set(2, 7, SHT_PROGBITS, table_at, table.size());
    set(3, 18, SHT_STRTAB, names_at, section_names.size());
    auto header = elf_header(ET_EXEC, 1, file.size(), sections.size());
    header.e_entry = text;
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_X;
    segment.p_vaddr = kGoText - kCodeAt;
    segment.p_filesz = segment.p_memsz = table_at;
    std::memcpy(file.data(), &header, sizeof header);
    std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
    for (const auto& section : sections) file += raw(section);
    return file;
  }
};

}  // namespace coretap::unwind::test
