#include "cfi/read_cfi.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "coretap/fd.hpp"
#include "made_elf.hpp"
#include "rules.hpp"

namespace coretap::unwind {
namespace {

using namespace test;

const std::string kFrame16 = bytes({0x0e, 16});
const std::string kFrame24 = bytes({0x0e, 24});

// --- which frames are found ---

TEST(Cfi, GapsAreClosedAndNeighboursMerged) {
  MadeElf elf;
  const auto cie = elf.cie();
  elf.fde(cie, kCode + 0x40, 0x10, {});
  elf.fde(cie, kCode + 0x00, 0x10, kFrame16);
  elf.fde(cie, kCode + 0x10, 0x10, kFrame16);
  elf.fde(cie, kCode + 0x50, 0x10, bytes({0x41, 0x0e, 16}));
  const std::string expected = "10000 sp+16, 10020 none, 10040 sp+8, 10051 sp+16, 10060 none";
  for (const auto finds : {MadeElf::by_table, MadeElf::by_walk, MadeElf::by_section}) {
    elf.finds = finds;
    const auto table = read_table(elf.file());
    EXPECT_TRUE(table.readable) << finds;
    EXPECT_EQ(table.text(), expected) << finds;
  }
}

TEST(Cfi, TableThatLies) {
  MadeElf elf;
  const auto cie = elf.cie();
  elf.fde(cie, kCode + 0x00, 0x10, kFrame16);
  elf.fde(cie, kCode + 0x10, 0x10, kFrame24);
  elf.fde(cie, kCode + 0x20, 0x10, {});
  const std::string all = "10000 sp+16, 10010 sp+24, 10020 sp+8, 10030 none";
  auto table = elf.table;
  std::swap(table[0], table[2]);  // not sorted
  EXPECT_EQ(read_table(elf.file_with(table)).text(), all);
  std::swap(table[0], table[2]);
  table[0].second = table[2].second;  // another function's
  EXPECT_EQ(read_table(elf.file_with(table)).text(), "10010 sp+24, 10020 sp+8, 10030 none");
  EXPECT_EQ(rows_of(elf), all);
  for (const auto count : {4u, 0x7fffffffu, 0xffffffffu}) {
    elf.table_count = count;
    EXPECT_EQ(rows_of(elf), all) << count;
  }
  elf.table_count = 0;
  elf.table_encoding = 0x1b;
  EXPECT_EQ(rows_of(elf), all);
}

TEST(Cfi, FramesThatOverlap) {
  MadeElf elf;
  const auto cie = elf.cie();
  elf.fde(cie, kCode + 0x00, 0x20, {});
  elf.fde(cie, kCode + 0x08, 0x10, kFrame24);  // inside: the first is used
  elf.fde(cie, kCode + 0x10, 0x20, bytes({0x44, 0x0e, 16, 0x54, 0x0e, 24}));  // the rest is used
  elf.fde(cie, kCode + 0x10, 0x08, kFrame24);
  EXPECT_EQ(rows_of(elf), "10000 sp+8, 10020 sp+16, 10028 sp+24, 10030 none");
}

TEST(Cfi, RangesOfNoUse) {
  MadeElf elf;
  const auto cie = elf.cie();
  elf.fde(cie, kFrames, 0x10, {});  // no code
  elf.fde(cie, 0x500000, 0x10, {});
  elf.fde(cie, kCode + 0x10, 0, {});
  elf.fde(cie, kCode + 0x20, 0xffffffff, {});  // a negative size
  elf.fde(cie, kCode + 0xff0, 0x1000, {});     // leaves the segment
  EXPECT_EQ(rows_of(elf), "10ff0 sp+8, 11000 none");
}

TEST(Cfi, NothingToRead) {
  MadeElf elf;
  auto table = read_table(elf.file());
  EXPECT_FALSE(table.readable);
  EXPECT_EQ(table.text(), "");
  elf.finds = MadeElf::by_section;
  EXPECT_FALSE(read_table(elf.file()).readable);
  elf.fde(elf.cie(), kCode, 0x10, {});
  EXPECT_TRUE(read_table(elf.file()).readable);
  auto file = elf.file();
  file[file.find(".eh_frame")] = '!';
  EXPECT_FALSE(read_table(file).readable);
  EXPECT_FALSE(read_table("").readable);
}

// --- how addresses are written ---

TEST(Cfi, Encodings) {
  const auto with = [](int encoding, const std::string& where) {
    MadeElf elf;
    elf.fde(elf.cie(kFunctionStart, "zR", bytes({encoding})), kCode + 0x10, 0x10, {}, where);
    return rows_of(elf);
  };
  const std::string rows = "10010 sp+8, 10020 none";
  const std::uint64_t start = kCode + 0x10;
  // The CIE takes 24 bytes; the start is written eight bytes later.
  MadeElf layout;
  layout.cie();
  const std::uint64_t back = start - (kFrames + layout.frames.size() + 8);
  const std::uint64_t size = 0x10;
  const auto narrow = [](auto value) { return raw(static_cast<std::uint32_t>(value)); };
  for (const int whole : {0x00, 0x04, 0x0c})
    EXPECT_EQ(with(whole, raw(start) + raw(size)), rows) << whole;
  for (const int whole : {0x1c, 0x10}) EXPECT_EQ(with(whole, raw(back) + raw(size)), rows) << whole;
  for (const int half : {0x03, 0x0b}) EXPECT_EQ(with(half, narrow(start) + narrow(size)), rows);
  EXPECT_EQ(with(0x13, narrow(back) + narrow(size)), rows);
  EXPECT_EQ(with(0x12, raw(static_cast<std::uint16_t>(back)) + bytes({16, 0})), rows);
  for (const int leb : {0x01, 0x09})  // 0x10010
    EXPECT_EQ(with(leb, bytes({0x90, 0x80, 0x04, 16})), rows);
  for (const int useless : {0xff, 0x9b, 0x3b, 0x2b, 0x50, 0x05})
    EXPECT_EQ(with(useless, raw(start) + raw(size)), "") << useless;
}

TEST(Cfi, NegativeNumbers) {
  for (const int encoding : {0x1a, 0x1b, 0x19}) {
    MadeElf elf;
    elf.code_at = 0x1000;
    elf.code.resize(0x100);
    const auto cie = elf.cie(kFunctionStart, "zR", bytes({encoding}));
    const auto back = static_cast<std::int32_t>(0x1000 - (kFrames + elf.frames.size() + 8));
    auto where = raw(back) + raw(16);
    if (encoding == 0x1a) where = raw(static_cast<std::int16_t>(back)) + bytes({16, 0});
    if (encoding == 0x19)
      where = bytes({(back & 0x7f) | 0x80, ((back >> 7) & 0x7f) | 0x80, (back >> 14) & 0x7f, 16});
    elf.fde(cie, 0x1000, 16, {}, where);
    EXPECT_EQ(rows_of(elf), "1000 sp+8, 1010 none") << encoding;
  }
}

TEST(Cfi, Augmentations) {
  const auto with = [](const char* augmentation, const std::string& data,
                       const std::string& of_frame = bytes({0})) {
    MadeElf elf;
    elf.fde(elf.cie(kFunctionStart, augmentation, data), kCode, 0x10, {}, {}, of_frame);
    return rows_of(elf);
  };
  const std::string rows = "10000 sp+8, 10010 none";
  const auto personality = bytes({0x9b, 1, 2, 3, 4});
  EXPECT_EQ(with("zPLR", personality + bytes({0x1b, 0x1b}), bytes({4, 9, 9, 9, 9})), rows);
  EXPECT_EQ(with("zRB", bytes({0x1b})), rows);
  EXPECT_EQ(with("zR", bytes({0x1b, 1, 2, 3}), bytes({2, 0x41, 0x41})), rows);
  EXPECT_EQ(with("zPLR", personality + bytes({0x1b})), "");  // truncated
  EXPECT_EQ(with("zRX", bytes({0x1b})), "");
  EXPECT_EQ(with("R", bytes({0x1b})), "");
  EXPECT_EQ(with("eh", {}), "");
  EXPECT_EQ(with("zR", bytes({0x1b}), bytes({200})), "");
  EXPECT_EQ(with("zRRRRRRRRRRRRRRRRR", bytes({0x1b})), "");
  MadeElf plain;
  plain.fde(plain.cie(kFunctionStart, ""), kCode, 0x10, {}, raw(kCode) + raw(std::uint64_t{16}),
            {});
  EXPECT_EQ(rows_of(plain), rows);
}

TEST(Cfi, Commons) {
  const auto with = [](int version, int return_address, const std::string& program) {
    MadeElf elf;
    elf.fde(elf.cie(program, "zR", bytes({0x1b}), version, 1, return_address), kCode, 0x10, {});
    return rows_of(elf);
  };
  EXPECT_EQ(with(3, 16, kFunctionStart), "10000 sp+8, 10010 none");
  EXPECT_EQ(with(2, 16, kFunctionStart), "");
  EXPECT_EQ(with(1, 15, kFunctionStart), "");
  EXPECT_EQ(with(1, 16, kFunctionStart + bytes({0x41})), "");  // advances
  EXPECT_EQ(with(1, 16, kFunctionStart + bytes({0x3f})), "");
  EXPECT_EQ(with(1, 16, {}), "10000 other, 10010 none");
}

TEST(Cfi, LongForm) {
  MadeElf elf;
  elf.long_form = true;
  const auto cie = elf.cie();
  elf.fde(cie, kCode, 0x10, kFrame16);
  elf.long_form = false;
  elf.fde(cie, kCode + 0x10, 0x10, {});
  for (const auto finds : {MadeElf::by_table, MadeElf::by_walk}) {
    elf.finds = finds;
    EXPECT_EQ(rows_of(elf), "10000 sp+16, 10010 sp+8, 10020 none");
  }
}

// More frames than one read returns or a walk's buffer holds; in the file in another order.
TEST(Cfi, ManyFrames) {
  constexpr std::uint64_t kCount = 100000;
  MadeElf elf;
  elf.code_at = 0x1000000;
  elf.code = std::string(kCount * 2, '\xcc');
  const auto cie = elf.cie();
  for (std::uint64_t n = kCount; n-- > 0;) {
    const auto i = n * 7919 % kCount;
    elf.fde(cie, elf.code_at + i * 2, 1, i % 2 == 0 ? kFrame16 : kFrame24);
  }
  for (const auto finds : {MadeElf::by_table, MadeElf::by_walk, MadeElf::by_section}) {
    elf.finds = finds;
    const auto table = read_table(elf.file());
    EXPECT_TRUE(table.readable);
    ASSERT_EQ(table.rows.size(), kCount * 2) << finds;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(table.rows[i * 2].address, elf.code_at + i * 2);
      ASSERT_EQ(table.rows[i * 2].rule.offset, i % 2 == 0 ? 16 : 24);
      ASSERT_EQ(table.rows[i * 2 + 1].rule.cfa, UNWIND_NONE);
    }
  }
}

TEST(Cfi, FrameTooLongToKeep) {
  MadeElf elf;
  const auto cie = elf.cie();
  elf.fde(cie, kCode, 0x100, kFrame16 + bytes({0x48}) + std::string(300 << 10, '\0') + kFrame24);
  elf.fde(cie, kCode + 0x100, 0x10, {});
  for (const auto finds : {MadeElf::by_table, MadeElf::by_walk}) {
    elf.finds = finds;
    EXPECT_EQ(rows_of(elf), "10000 sp+16, 10008 other, 10100 sp+8, 10110 none");
  }
}

// --- hostile files ---

TEST(CfiHostile, CommonsThatAreNone) {
  MadeElf elf;
  const auto cie = elf.cie();
  elf.fde(elf.frames.size() + 4, kCode, 0x10, {});            // its own offset
  elf.fde(elf.frames.size() - 8, kCode + 0x10, 0x10, {});     // in the middle of another
  elf.fde(cie - 0x100000, kCode + 0x20, 0x10, {});            // outside the section
  elf.fde(elf.frames.size() + 0x40, kCode + 0x30, 0x10, {});  // the one after it, a frame
  elf.fde(cie, kCode + 0x40, 0x10, {});
  EXPECT_EQ(rows_of(elf), "10040 sp+8, 10050 none");
}

// Overlapping frames: one starts every four bytes, and each extends to the end.
TEST(CfiHostile, ProgramsThatShareTheirBytes) {
  MadeElf elf;
  const auto cie = elf.cie();
  for (std::uint64_t i = 0; i < 200; i++) elf.fde(cie, kCode + 16 * i, 16, kFrame16);
  elf.fde(cie, kCode + 0xf00, 16, std::string(200 << 10, '\0'));
  EXPECT_TRUE(read_table(elf.file()).readable);
  for (const auto& [start, frame] : elf.table) {  // each as long as all that follow
    const auto at = frame - kFrames;
    elf.frames.replace(at, 4, raw(static_cast<std::uint32_t>(elf.frames.size() - at - 4)));
  }
  EXPECT_FALSE(read_table(elf.file()).readable);
}

// --- real files ---

// readelf's row for the addresses from one up to its next row.
struct Said {
  std::uint64_t end;
  std::map<std::string, std::string> columns;  // "CFA", "rbp", "rbx", "ra"
};
using Oracle = std::map<std::uint64_t, Said>;

bool is_zero(const std::string& text) { return text.find_first_not_of('0') == std::string::npos; }

// "00000018 0000000000000014 0000001c FDE cie=00000000 pc=0000000000031750..0000000000031772", then
// "   LOC           CFA      rbx   ra    ", then rows. Without rows the CIE's are used.
std::optional<Oracle> ask_readelf(const std::string& file) {
  std::istringstream lines(
      output_of("readelf -W --debug-dump=frames-interp '" + file + "' 2>/dev/null"));
  Oracle oracle;
  std::map<std::string, std::map<std::string, std::string>> commons;
  Words header;
  WordSet of_no_use;
  std::string common;
  std::uint64_t begin = 0, end = 0;
  bool in_common = false, known = false;
  Said* last = nullptr;
  const auto close_frame = [&] {
    if (!in_common && known && last == nullptr && begin < end)
      oracle.insert({begin, {.end = end, .columns = commons[common]}});
    last = nullptr;
    known = false;
  };
  for (std::string text; std::getline(lines, text);) {
    if (text.starts_with("Contents of the ") && !says(text, ".eh_frame")) break;
    auto words = words_of(text);
    std::erase_if(words, [](auto& word) { return word[0] == '('; });
    if (words.size() >= 4 && words[3] == "CIE") {
      close_frame();
      in_common = true;
      common = words[0];
      // glibc's rawmemchr() of arm64 returns by x15.
      if (words.back() == "ra=15") of_no_use.insert(common);
    } else if (words.size() >= 6 && words[3] == "FDE") {
      close_frame();
      in_common = false;
      common = words[4].substr(4);
      known = !of_no_use.contains(common);
      begin = std::stoull(words[5].substr(3), nullptr, 16);
      end = std::stoull(words[5].substr(words[5].find("..") + 2), nullptr, 16);
    } else if (!words.empty() && words[0] == "LOC") {
      header = words;
    } else if (words.size() == header.size() && words.size() > 1 && words[0].size() == 16) {
      std::map<std::string, std::string> columns;
      for (std::size_t i = 1; i < words.size(); ++i) columns[header[i]] = words[i];
      const auto at = std::stoull(words[0], nullptr, 16);
      if (in_common && is_zero(words[0])) {
        commons[common] = columns;
      } else if (known && at < end) {
        if (last != nullptr) last->end = at;
        last = &oracle.insert_or_assign(at, Said{.end = end, .columns = columns}).first->second;
      }
    }
  }
  close_frame();
  if (oracle.empty()) return {};
  return oracle;
}

// "as: CFA rsp+16 rbp c-16 ..." if `rule` differs from readelf's, or empty.
std::string difference(const unwind_rule& rule, const Said& said, std::uint16_t machine) {
  const bool arm64 = machine == EM_AARCH64;
  // Pushed by the caller (FrameProgramOfArm64).
  if (arm64 && said.columns.contains("ra") && said.columns.at("ra") == "c+8")
    return rule.ra_slot == -1 ? "" : test::text(rule) + ": ra c+8";
  const auto column = [&](const char* name) {
    const auto found = said.columns.find(name);
    return found == said.columns.end() || found->second == "s" ? std::string("u") : found->second;
  };
  const auto cfa = column("CFA"), bp = column(arm64 ? "x29" : "rbp"), bx = column("rbx"),
             ra = column("ra");
  const auto sign = cfa.find_first_of("+-");
  const std::map<std::string, int> kinds = {{"rsp", UNWIND_SP}, {"rbp", UNWIND_BP},
                                            {"rbx", UNWIND_BX}, {"r10", UNWIND_R10},
                                            {"sp", UNWIND_SP},  {"x29", UNWIND_BP}};
  const auto kind = kinds.find(cfa.substr(0, sign));
  const bool exp = cfa == "exp", vfork = ra == "r5";  // rdi
  const bool told = kind != kinds.end() && (arm64 ? ra == "u" || ra[0] == 'c' : ra == "c-8") &&
                    (bp == "u" || bp == "exp" || bp[0] == 'c');
  const auto at = [](int slot, const std::string& text) {
    return text == "u"      ? slot == 0
           : text[0] != 'c' ? slot != 0
                            : slot == std::stoi(text.substr(1)) / 8;
  };
  bool same = false;
  // readelf prints the same for "undefined" and for "as it was", which is usual on arm64.
  if (rule.cfa == UNWIND_END || (ra == "u" && !arm64))
    same = ra == "u" && rule.cfa == UNWIND_END;
  else if (rule.cfa == UNWIND_OTHER)
    same = vfork || exp || bp == "exp" || !told;
  else if (rule.cfa == UNWIND_SIGNAL)
    same = exp;
  else if (rule.cfa == UNWIND_VFORK)
    same = vfork && cfa == "rsp+" + std::to_string(rule.offset);
  else
    same =
        (exp ? rule.cfa == UNWIND_PLT || rule.cfa == UNWIND_SP_DEREF || rule.cfa == UNWIND_BP_DEREF
             : told && rule.cfa == kind->second && rule.offset == std::stoi(cfa.substr(sign))) &&
        (rule.bp == UNWIND_BP_SAME) == (bp == "u") && at(rule.bx_slot, bx) &&
        (bp[0] != 'c' || (rule.bp == UNWIND_BP_AT_CFA && at(rule.bp_slot, bp))) &&
        (arm64 ? at(rule.ra_slot, ra) : rule.ra_slot == 0);
  return same ? ""
              : test::text(rule) + " as: CFA " + cfa + " bp " + bp + " rbx " + bx + " ra " + ra;
}

// The test, its libraries, and programs that exist nearly everywhere.
WordSet real_files() {
  WordSet files;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        char path[PATH_MAX];
        if (info->dlpi_name[0] == '/' && ::realpath(info->dlpi_name, path) != nullptr)
          static_cast<WordSet*>(to)->insert(path);
        return 0;
      },
      &files);
  for (const char* name : {"/proc/self/exe", "/bin/bash", "/usr/bin/perl", "/usr/bin/python3",
                           "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"}) {
    char path[PATH_MAX];
    if (::realpath(name, path) != nullptr) files.insert(path);
  }
  return files;
}

void expect_as_readelf(const WordSet& paths, std::uint16_t machine) {
  std::size_t files = 0, compared = 0, wrong = 0;
  for (const auto& file : paths) {
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    const auto table = read_table(Image(fd.get()), machine);
    if (table.elf.state != ElfCode::usable) continue;
    const auto oracle = ask_readelf(file);
    if (!oracle) continue;
    ++files;
    EXPECT_TRUE(table.readable) << file;
    // Both are sorted: they must agree at each address where one of them changes.
    std::size_t next = 0;
    unwind_rule rule{};
    for (const auto& [begin, said] : *oracle) {
      if (begin >= said.end) continue;
      std::vector<std::uint64_t> places = {begin};
      for (auto i = next; i < table.rows.size() && table.rows[i].address < said.end; ++i)
        if (table.rows[i].address > begin) places.push_back(table.rows[i].address);
      for (const auto place : places) {
        while (next < table.rows.size() && table.rows[next].address <= place)
          rule = table.rows[next++].rule;
        ++compared;
        const auto text = difference(rule, said, machine);
        if (!text.empty() && ++wrong < 20)
          ADD_FAILURE() << file << " at " << std::hex << place << ": " << text;
      }
    }
    // Where readelf has no rule, only the C runtime's code has one.
    std::size_t more = 0;
    auto said = oracle->begin();
    for (const auto& row : table.rows) {
      while (said != oracle->end() && said->second.end <= row.address) ++said;
      if (said != oracle->end() && said->first <= row.address) continue;
      if (row.rule.cfa == UNWIND_NONE) continue;
      ++more;
      EXPECT_EQ(row.rule.cfa, UNWIND_SP) << file << std::hex << " at " << row.address;
    }
    EXPECT_LE(more, 40u) << file;
  }
  if (files == 0) GTEST_SKIP() << "needs readelf, and such files";
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(compared, 10000u);
}

TEST(CfiOfRealFiles, IsWhatReadelfSays) { expect_as_readelf(real_files(), EM_X86_64); }

TEST(CfiOfRealFiles, OfArm64) {
  WordSet files;
  for (const std::string directory : {"/usr/aarch64-linux-gnu/lib/", "/usr/lib/aarch64-linux-gnu/"})
    for (auto* name : {"libc.so.6", "libm.so.6", "libstdc++.so.6", "ld-linux-aarch64.so.1"})
      if (::access((directory + name).c_str(), R_OK) == 0) files.insert(directory + name);
  expect_as_readelf(files, EM_AARCH64);
}

}  // namespace
}  // namespace coretap::unwind
