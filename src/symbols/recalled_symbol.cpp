#include "symbols/recalled_symbol.hpp"

#include <map>
#include <string>
#include <utility>

namespace coretap::symbols {

namespace {

// Numbers are parts of the format of recordings.
constexpr std::uint64_t kEntry = 1, kCompiled = 2, kFileOffset = 4, kProgram = 8, kInFile = 16,
                        kInterpreted = 32;

std::string bytes_of(const Symbol& symbol) {
  std::string numbers;
  std::vector<std::string> texts = {symbol.name, symbol.module, symbol.linkage_name};
  put_varint(numbers, symbol.entry * kEntry | symbol.compiled * kCompiled |
                          symbol.file_offset.has_value() * kFileOffset |
                          (symbol.file && symbol.file->program) * kProgram |
                          (symbol.file != nullptr) * kInFile | symbol.interpreted * kInterpreted);
  put_varint(numbers, symbol.offset);
  put_varint(numbers, symbol.module_offset);
  put_varint(numbers, symbol.file_offset.value_or(0));
  if (symbol.interpreted) {
    put_varint(numbers, symbol.line);
    numbers += symbol.source;
  }
  texts.push_back(std::move(numbers));
  for (auto& inlined : symbol.inlined) {
    std::string line;
    put_varint(line, inlined.line);
    texts.insert(texts.end(), {inlined.function, std::move(line), inlined.file});
  }
  if (symbol.file) {
    std::string segments;
    for (auto& segment : symbol.file->segments) {
      put_varint(segments, segment.offset);
      put_varint(segments, segment.size);
    }
    texts.insert(texts.end(), {symbol.file->path, symbol.file->build_id, std::move(segments)});
  }
  return packed(texts);
}

/// One object for each file: profiles number them.
std::shared_ptr<const CodeFile> file_of(const std::vector<std::string>& texts, bool is_program) {
  static std::map<std::vector<std::string>, std::shared_ptr<const CodeFile>> all;
  auto& known = all[{texts.begin() + 4, texts.end()}];
  if (known) return known;
  CodeFile file{.path = texts[4], .build_id = texts[5], .segments = {}, .program = is_program};
  std::string_view rest = texts[6];
  for (CodeFile::Segment s{}; take_varint(rest, s.offset) && take_varint(rest, s.size);)
    file.segments.push_back(s);
  return known = std::make_shared<const CodeFile>(std::move(file));
}

Symbol symbol_of(std::string_view bytes) {
  const auto texts = unpacked(bytes);
  if (texts.size() < 4) return {};
  std::string_view numbers = texts[3];
  std::uint64_t flags = 0, file_offset = 0;
  Symbol symbol{.name = texts[0], .module = texts[1], .linkage_name = texts[2], .file = {}};
  if (!take_varint(numbers, flags) || !take_varint(numbers, symbol.offset) ||
      !take_varint(numbers, symbol.module_offset) || !take_varint(numbers, file_offset))
    return {};
  symbol.entry = flags & kEntry;
  symbol.compiled = flags & kCompiled;
  if (flags & kFileOffset) symbol.file_offset = file_offset;
  symbol.interpreted = flags & kInterpreted;
  std::uint64_t line = 0;
  if (symbol.interpreted && take_varint(numbers, line)) {
    symbol.line = static_cast<std::uint32_t>(line);
    symbol.source = numbers;
    // The functions that are part of it, three texts each.
    for (std::size_t i = 4; i + 2 < texts.size(); i += 3) {
      std::string_view rest = texts[i + 1];
      if (!take_varint(rest, line)) break;
      symbol.inlined.push_back({.function = texts[i],
                                .file = texts[i + 2],
                                .line = static_cast<std::uint32_t>(line),
                                .inlined = true});
    }
  }
  if ((flags & kInFile) && texts.size() == 7) symbol.file = file_of(texts, flags & kProgram);
  return symbol;
}

}  // namespace

Symbol recalled(Ask what, const std::vector<std::uint64_t>& question,
                const std::function<Symbol()>& live) {
  std::string key;
  for (auto number : question) put_varint(key, number);
  return symbol_of(recall->answer(what, key, [&] { return bytes_of(live()); }));
}

}  // namespace coretap::symbols
