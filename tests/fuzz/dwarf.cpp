// Debug information of user programs. The reader is instrumented; the system's libdw, which it
// calls, is not, so new code is found by the results of libdw.
#include "expression/dwarf.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "elf_header.hpp"
#include "expression/code.hpp"
#include "expression/compile.hpp"
#include "fuzz.hpp"
#include "symbols/elf_symbols.hpp"

using namespace coretap;
using expression::Type;
using expression::TypePtr;

namespace {

constexpr const char* kNoDebugRoot = "/nonexistent";

/// Follows types from member to member, as deep as expressions of limited length can.
class Walk {
 public:
  void type(const TypePtr& type, int depth = 0) {
    MUST(type);
    if (left_ == 0 || depth > 100) return;
    left_--;
    MUST(type->name.size() <= (1U << 14));
    switch (type->kind) {
      case Type::integer:
        MUST(type->bytes >= 1 && type->bytes <= 8);
        break;
      case Type::pointer:
        MUST(type->user && type->bytes == 8);
        this->type(type->to, depth + 1);
        break;
      case Type::array:
        MUST(type->bytes <= 1U << 30 && type->count < 1U << 30);
        this->type(type->to, depth + 1);
        break;
      case Type::record:
        MUST(type->members && type->bytes <= INT32_MAX);
        members(*type, depth);
        break;
      case Type::nothing:
        break;
    }
  }

 private:
  void members(const Type& record, int depth) {
    const auto names = record.members->names();
    MUST(names.size() <= 4096);
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 16); i++) {
      const auto member = record.members->find(names[i]);
      if (!member) continue;  // its offset is unknown
      MUST(member->place == expression::Member::memory);
      MUST(member->bit <= 1U << 30 && member->bits <= 64);
      type(member->type, depth + 1);
    }
    MUST(!record.members->find("no such member"));
  }

  std::size_t left_ = 64;
};

/// Compiles the expression: checks the error if it does not fit the function, the code if it does.
void compile(const expression::UserFunction& function, const std::string& text) {
  expression::Types kernel;
  expression::Scope scope{&kernel};
  add_arguments(scope, function.parameters);
  for (auto& [name, why] : function.elsewhere) scope.missing[name] = why;
  scope.user = true;
  scope.program = function.types;
  expression::Parser parser(text, 0, [](std::string_view word) { return word == "struct"; });
  auto node = parser.expression();
  if (!node) return;
  expression::Code code;
  expression::Compiler compiler(text, scope, code);
  if (auto type = compiler.value(**node); !type) {
    MUST(fuzz::is_plain(type.error().what) && fuzz::is_plain(type.error().hint));
    MUST(type.error().what.size() + type.error().hint.size() <= 1U << 20);
  }
}

void check(int fd, std::uint64_t offset) {
  auto function = expression::user_function(fd, offset, kNoDebugRoot);
  if (!function) {
    MUST(!function.error().what.empty());
    return;
  }
  MUST(function->parameters.size() <= 6 && function->elsewhere.size() <= 256);
  for (auto& p : function->parameters) {
    MUST(p.type && p.type->kind != Type::record && p.type->kind != Type::nothing);
    MUST(!function->elsewhere.contains(p.name) || p.name.empty());
    Walk().type(p.type);
  }
  for (auto& [name, why] : function->elsewhere) MUST(!name.empty() && !why.empty());
  MUST(function->result && function->types);
  Walk().type(function->result);

  auto& types = *function->types;
  const auto records = types.records();
  MUST(records.size() <= 4096);
  for (std::size_t i = 0; i < std::min<std::size_t>(records.size(), 8); i++)
    if (auto type = types.named(records[i])) Walk().type(type);
  for (auto* name : {"word", "enum state", "union either"})
    if (auto type = types.named(name)) Walk().type(type);
  types.enumerator("BUSY");
  for (auto* text : {"arg1->none", "arg1->next->next->number", "(struct none *)arg1", "arg2[3]",
                     "absent", "r->inner.a + count", "*arg1", "((struct request *)arg1)->flags"})
    compile(*function, text);
}

/// Sections by number, as an ELF file. Damage to the sections never damages the ELF headers.
std::string wrapped(fuzz::Input input) {
  constexpr std::array kNames = {
      ".debug_info",   ".debug_types",   ".debug_abbrev",     ".debug_aranges",
      ".debug_addr",   ".debug_str",     ".debug_line_str",   ".debug_str_offsets",
      ".debug_ranges", ".debug_loc",     ".debug_rnglists",   ".debug_loclists",
      ".zdebug_info",  ".gnu_debuglink", ".gnu_debugaltlink", ".note.gnu.build-id",
  };
  std::string file(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), '\0'), names(1, '\0');
  std::vector<Elf64_Shdr> headers(1);
  auto add = [&](const char* name, std::string_view bytes, Elf64_Xword flags, Elf64_Word type) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = type;
    header.sh_flags = flags;
    header.sh_offset = file.size();
    header.sh_size = bytes.size();
    header.sh_addralign = 1;
    headers.push_back(header);
    names += name + std::string(1, '\0');
    file += bytes;
  };
  while (!input.empty() && headers.size() < 40) {
    const auto number = input.number<std::uint8_t>();
    const auto bytes = input.text(input.number<std::uint16_t>());
    const auto which = number % kNames.size();
    add(kNames[which], bytes, number & 0x80 ? SHF_COMPRESSED : 0,
        which == kNames.size() - 1 ? SHT_NOTE : SHT_PROGBITS);
  }
  names += ".shstrtab" + std::string(1, '\0');
  const auto own = names.size() - sizeof ".shstrtab";
  add("", std::string(names), 0, SHT_STRTAB);
  headers.back().sh_name = static_cast<Elf64_Word>(own);

  const auto header = elf_header(ET_DYN, 1, file.size(), headers.size());
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_filesz = segment.p_memsz = std::uint64_t{1} << 47;  // an offset is an address
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
  return file.append(reinterpret_cast<const char*>(headers.data()),
                     headers.size() * sizeof headers[0]);
}

}  // namespace

/// An ELF file, or a function's address and debug sections, each after its number (with 0x80:
/// compressed) and a length of 16 bits.
FUZZ(dwarf, bytes) {
  if (bytes.starts_with(ELFMAG)) {
    const fuzz::MemoryFile file(bytes);
    const auto elf = symbols::ElfSymbols::read(file.fd());
    if (!elf) return;
    std::size_t left = 4;
    for (auto& function : elf->functions())
      if (left > 0 && left--) check(file.fd(), function.start);
    return;
  }
  fuzz::Input input(bytes);
  const auto address = input.number<std::uint64_t>();
  const fuzz::MemoryFile file(wrapped(input));
  check(file.fd(), address);
}
