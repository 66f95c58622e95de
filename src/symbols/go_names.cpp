#include "symbols/go_names.hpp"

#include <elf.h>

#include <optional>
#include <string>

#include "symbols/debug_data.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/go_table.hpp"
#include "symbols/process_files.hpp"

namespace coretap::symbols {

namespace {

constexpr std::uint64_t kMostGoNames = 64 << 20;  // bytes

}  // namespace

GoNames go_names(int fd) {
  GoNames all;
  const auto file = identity_of(fd);
  const auto elf = open_elf(fd);
  GElf_Ehdr head;
  if (!file || !elf || ::gelf_getehdr(elf.get(), &head) == nullptr) return all;
  DebugSection table;
  std::uint64_t text = 0;
  find_section(elf.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
    if (name == ".text") text = header.sh_addr;
    if (is_go_table(name) && header.sh_type != SHT_NOBITS && header.sh_offset <= file->size &&
        header.sh_size <= file->size - header.sh_offset)
      table = DebugSection(fd, header.sh_offset, header.sh_size);
    return false;
  });
  const auto first = table.size() != 0 ? table.at(0, kGoHeaderBytes) : std::nullopt;
  auto header = first ? go_header(*first, table.size()) : std::nullopt;
  std::vector<std::uint8_t> list;
  if (!header || header->units <= header->names || header->units - header->names > kMostGoNames ||
      !table.read(header->list, header->functions * header->entry_bytes + header->entry_bytes / 2,
                  list))
    return all;
  // Where the file lacks the address of Go's code, C's may be before it, unless the program starts
  // in Go's.
  bool certain = header->absolute() || header->text != 0;
  if (header->text == 0 && !header->absolute()) header->text = text;
  Bytes entries({list.data(), list.size()});
  for (std::uint64_t i = 0; i < header->functions; i++) {
    const auto [start, place] = go_start(entries, *header);
    Bytes next = entries;  // the end of the last one follows
    const auto begin = header->text + start;
    const auto end = header->text + next.word(header->entry_bytes / 2);
    auto described = table.at(header->list + place + header->entry_bytes / 2, 4);
    if (begin >= end || !described) continue;
    const auto name = described->number<std::uint32_t>();
    if (name >= header->units - header->names) continue;
    certain |= begin == head.e_entry && table.text(header->names + name).starts_with("_rt0_");
    all.functions.push_back({begin, end - begin, name});
  }
  if (!certain || !table.read(header->names, header->units - header->names, all.names)) return {};
  all.names.push_back(0);
  return all;
}

}  // namespace coretap::symbols
