#include "text/names.hpp"
#include "expect.hpp"
#include "kernel/kernel.hpp"

namespace coretap {
namespace {

std::string gfp(std::uint64_t flags, const Names& names = {}) { return names.name(as::gfp, flags); }

// Masks as kernels from 5.10 to 6.9 print them beside their names when memory runs out.
TEST(GfpNames, OfOldKernels) {
  EXPECT_EQ(gfp(0xcc0), "GFP_KERNEL");
  EXPECT_EQ(gfp(0xdc0), "GFP_KERNEL|__GFP_ZERO");
  EXPECT_EQ(gfp(0x400cc0), "GFP_KERNEL_ACCOUNT");
  EXPECT_EQ(gfp(0x100cc0), "GFP_USER");
  EXPECT_EQ(gfp(0x100cca), "GFP_HIGHUSER_MOVABLE");
  EXPECT_EQ(gfp(0x140cca), "GFP_HIGHUSER_MOVABLE|__GFP_COMP");
  EXPECT_EQ(gfp(0xc40), "GFP_NOFS");
  EXPECT_EQ(gfp(0xc00), "GFP_NOIO");
  EXPECT_EQ(gfp(0x820), "GFP_ATOMIC");
  EXPECT_EQ(gfp(0x800), "GFP_NOWAIT");
  EXPECT_EQ(gfp(0x1), "__GFP_DMA");
  EXPECT_EQ(gfp(0x0), "0x0");
  EXPECT_EQ(gfp(0x1c20ca), "GFP_TRANSHUGE_LIGHT");
  EXPECT_EQ(gfp(0x1c24ca), "GFP_TRANSHUGE");
}

// Until 6.2 the set had a third bit, which is no news beside its name.
TEST(GfpNames, AtomicOfOldKernels) { EXPECT_EQ(gfp(0xa20), "GFP_ATOMIC"); }

TEST(GfpNames, UnknownBitsAreKept) {
  EXPECT_EQ(gfp(0x80000000), "0x80000000");
  EXPECT_EQ(gfp(0x1000000 | 0xcc0), "GFP_KERNEL|0x1000000");
  EXPECT_EQ(gfp(1ull << 63 | 0x100), "__GFP_ZERO|0x8000000000000000");
}

// Numbers other than those of any kernel: only the names may count.
Names with_gfp_enum() {
  Names names;
  Names::Enumerators bits;
  int bit = 3;
  for (auto* name :
       {"___GFP_FS_BIT", "___GFP_IO_BIT", "___GFP_KSWAPD_RECLAIM_BIT", "___GFP_DIRECT_RECLAIM_BIT",
        "___GFP_ZERO_BIT", "___GFP_HIGH_BIT", "___GFP_NEWER_BIT", "___GFP_LAST_BIT"})
    bits.emplace_back(name, bit++);
  bits.emplace_back("SOMETHING_ELSE", 40);
  names.learn("gfp bits", bits);
  return names;
}

TEST(GfpNames, OfAnEnum) {
  auto names = with_gfp_enum();
  EXPECT_EQ(gfp(0x78, names), "GFP_KERNEL");
  EXPECT_EQ(gfp(0x78 | 0x80, names), "GFP_KERNEL|__GFP_ZERO");
  EXPECT_EQ(gfp(0x20 | 0x100, names), "GFP_ATOMIC");
  EXPECT_EQ(gfp(0x200, names), "__GFP_NEWER") << "bits that are younger than this program";
  EXPECT_EQ(gfp(0x400, names), "0x400") << "the end of the enum is no flag";
  EXPECT_EQ(gfp(1ull << 40, names), "0x10000000000");
  EXPECT_EQ(gfp(0x1, names), "0x1");
  EXPECT_EQ(gfp(0x8, names), "__GFP_FS");
}

TEST(GfpNames, OfThisKernel) {
  Kernel kernel;
  if (!kernel.has_btf()) GTEST_SKIP() << "no readable /sys/kernel/btf/vmlinux";
  Names names;
  names.learn(as::gfp, kernel);
  EXPECT_EQ(gfp(0xcc0, names), "GFP_KERNEL") << "these bits have not moved in years";
}

Names with_block_enums(const char* operations = "req_op") {
  Names names;
  names.learn(operations, {{"REQ_OP_READ", 0},
                           {"REQ_OP_WRITE", 1},
                           {"REQ_OP_FLUSH", 2},
                           {"REQ_OP_ZONE_APPEND", 7},
                           {"REQ_OP_DRV_IN", 34}});
  names.learn("req_flag_bits", {{"__REQ_FAILFAST_DEV", 8},
                                {"__REQ_SYNC", 11},
                                {"__REQ_META", 12},
                                {"__REQ_PRIO", 13},
                                {"__REQ_NOMERGE", 14},
                                {"__REQ_FUA", 17},
                                {"__REQ_PREFLUSH", 18},
                                {"__REQ_RAHEAD", 19},
                                {"__REQ_DRV", 24},
                                {"__REQ_FS_PRIVATE", 24},
                                {"__REQ_NR_BITS", 25}});
  return names;
}

std::string block(std::uint64_t flags, const Names& names = with_block_enums()) {
  return names.name(as::block_flags, flags);
}

TEST(BlockNames, Operations) {
  EXPECT_EQ(block(0), "Read");
  EXPECT_EQ(block(1), "Write");
  EXPECT_EQ(block(2), "Flush");
  EXPECT_EQ(block(7), "ZoneAppend");
  EXPECT_EQ(block(34), "DriverIn");
  EXPECT_EQ(block(99), "Op99");
  EXPECT_EQ(block(1, with_block_enums("req_opf")), "Write") << "the enum's name until 6.0";
}

TEST(BlockNames, FlagsStandBeforeTheOperation) {
  EXPECT_EQ(block(1 << 11 | 1), "Sync-Write");
  EXPECT_EQ(block(1 << 12), "Metadata-Read");
  EXPECT_EQ(block(1 << 19), "ReadAhead-Read");
  EXPECT_EQ(block(1 << 18 | 1), "PreFlush-Write");
  EXPECT_EQ(block(1 << 14), "NoMerge-Read");
}

// As biolatency -F has always written them: the highest bit first.
TEST(BlockNames, OrderOfFlags) {
  EXPECT_EQ(block(1 << 13 | 1 << 12), "Priority-Metadata-Read");
  EXPECT_EQ(block(1 << 17 | 1 << 12 | 1 << 11 | 1), "ForcedUnitAccess-Metadata-Sync-Write");
}

TEST(BlockNames, UnknownBitsAndAliases) {
  EXPECT_EQ(block(1u << 31 | 1), "0x80000000-Write");
  auto shared = block(1 << 24 | 1);
  EXPECT_TRUE(shared == "Drv-Write" || shared == "FsPrivate-Write")
      << shared << ": one bit, one name";
  EXPECT_EQ(block(1 << 25 | 1), "0x2000000-Write") << "the end of the enum is no flag";
  EXPECT_EQ(block(1 << 11 | 1, Names()), "0x800-Op1") << "a kernel without type information";
}

TEST(BlockNames, OfThisKernel) {
  Kernel kernel;
  if (!kernel.has_btf()) GTEST_SKIP() << "no readable /sys/kernel/btf/vmlinux";
  Names names;
  names.learn(as::block_flags, kernel);
  EXPECT_EQ(block(0, names), "Read");
  EXPECT_EQ(block(1, names), "Write");
  EXPECT_EQ(block(2, names), "Flush");
}

std::string letters(std::uint64_t flags, const Names& names = with_block_enums()) {
  return names.name(as::rwbs, flags);
}

TEST(BlockLetters, AreThoseOfTheKernel) {
  EXPECT_EQ(letters(0), "R");
  EXPECT_EQ(letters(1), "W");
  EXPECT_EQ(letters(1 << 11 | 1), "WS");
  EXPECT_EQ(letters(1 << 19), "RA");
  EXPECT_EQ(letters(1 << 12 | 1 << 11 | 1), "WSM");
  EXPECT_EQ(letters(1 << 18 | 1 << 17 | 1 << 11 | 1), "FWFS");
  EXPECT_EQ(letters(1 << 18 | 2), "FF");
  EXPECT_EQ(letters(7), "ZA") << "as this kernel numbers it";
  EXPECT_EQ(letters(34), "N");
  EXPECT_EQ(letters(1 << 14), "R") << "not every flag has a letter";
  EXPECT_EQ(letters(1, with_block_enums("req_opf")), "W");
  EXPECT_EQ(letters(1 << 11 | 1, Names()), "N") << "a kernel without type information";
}

constexpr auto kResult = as::enumerator("compact_result", "COMPACT_", -12);

Names with_results() {
  Names names;
  names.learn(
      "compact_result",
      {{"COMPACT_SKIPPED", 1}, {"COMPACT_NO_SUITABLE_PAGE", 4}, {"OTHER", 5}, {"MINUS", -2}});
  return names;
}

TEST(EnumeratorNames, LowerCaseWithoutTheirPrefix) {
  auto names = with_results();
  EXPECT_EQ(names.name(kResult, 1), "skipped");
  EXPECT_EQ(names.name(kResult, 4), "no_suitable_page");
  EXPECT_EQ(names.name(kResult, 5), "other") << "without the prefix: as it is";
  EXPECT_EQ(names.name(kResult, static_cast<std::uint64_t>(-2)), "minus");
  EXPECT_EQ(names.name(kResult, 99), "99");
  EXPECT_EQ(Names().name(kResult, 1), "1");
}

TEST(Show, AlignsToTheWidth) {
  Names names;
  EXPECT_EQ(show(as::number, std::uint64_t{5}, names), "         5");
  EXPECT_EQ(show(as::pid, std::uint64_t{5}, names), "5      ");
  EXPECT_EQ(show(as::number, std::uint64_t{123456789012}, names), "123456789012") << "never cut";
  EXPECT_EQ(show(as::small, std::int64_t{-1}, names), "   -1");
  EXPECT_EQ(show({}, UINT64_MAX, names), "18446744073709551615");
  EXPECT_EQ(show({}, INT64_MIN, names), "-9223372036854775808");
  EXPECT_EQ(show(as::number, Value{}, names), "         -");
  EXPECT_EQ(show(as::wide(as::text, -4), true, names), "yes ");
  EXPECT_EQ(show(as::wide(as::text, -4), false, names), "no  ");
}

TEST(Show, Kinds) {
  Names names = with_results();
  EXPECT_EQ(show(as::wide(as::milliseconds, 0), std::uint64_t{1'234'567}, names), "1.23");
  EXPECT_EQ(show(as::wide(as::milliseconds, 0), std::uint64_t{0}, names), "0.00");
  EXPECT_EQ(show(as::wide(as::percent, 0), 0.12345, names), "12.35%");
  EXPECT_EQ(show(as::wide(as::percent, 0), 1.0, names), "100.00%");
  EXPECT_EQ(show(as::wide(as::thousandths, 0), std::int64_t{-1000}, names), "-1.000");
  EXPECT_EQ(show(as::wide(as::thousandths, 0), std::int64_t{789}, names), "0.789");
  EXPECT_EQ(show(kResult, std::int64_t{1}, names), "skipped     ");
  EXPECT_EQ(show(kResult, std::uint64_t{1}, names), "skipped     ");
  EXPECT_EQ(show(as::disk, std::uint64_t{0}, names), "-      ");
  EXPECT_EQ(show(as::wide(as::disk, 0), std::uint64_t{0xffffffff}, names), "4095:1048575");
}

TEST(Show, TextFromOutsideIsHarmless) {
  EXPECT_EQ(show(as::comm, std::string("nginx"), Names()), "nginx           ");
  EXPECT_EQ(show(as::comm, std::string("\x1b[2J\n"), Names()), "\\x1b[2J\\x0a     ");
}

// Letters of several bytes take one column.
TEST(Show, AlignsByColumnsNotBytes) {
  EXPECT_EQ(show(as::wide(as::text, -5), std::string("\xc3\xa9t\xc3\xa9"), Names()),
            "\xc3\xa9t\xc3\xa9  ");
}

TEST(Show, HidesAddressesOfTheKernel) {
  constexpr std::uint64_t kernel = 0xffff888012345678, own = 0x7fff12345678;
  Names open, closed;
  int asked = 0, told = 0;
  open.why_hidden = [] { return std::optional<Error>(); };
  closed.why_hidden = [&] {
    asked++;
    return std::optional<Error>({.what = "", .why = "because"});
  };
  closed.tell_hidden = [&](const Error& why) {
    told++;
    EXPECT_EQ(why.why, "because");
  };
  EXPECT_EQ(show(as::pointer, own, closed), "    0x7fff12345678");
  EXPECT_EQ(asked, 0) << "nothing to hide";
  EXPECT_EQ(show(as::pointer, kernel, open), "0xffff888012345678");
  for (int i = 0; i < 2; i++) EXPECT_EQ(show(as::pointer, kernel, closed), "          [hidden]");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(told, 1);
}

TEST(NamesThings, AgreesWithName) {
  for (auto kind : {Format::disk, Format::enumerator, Format::symbol, Format::gfp,
                    Format::block_flags, Format::rwbs})
    EXPECT_TRUE(names_things({kind}));
  for (auto kind :
       {Format::number, Format::text, Format::milliseconds, Format::percent, Format::thousandths})
    EXPECT_FALSE(names_things({kind}));
}

TEST(NamesThings, SymbolsWithoutAddressesToSee) {
  Names names;
  names.why_hidden = [] { return std::optional<Error>(Error{"hidden"}); };
  EXPECT_EQ(names.name(as::symbol, 0), "-");
  EXPECT_EQ(names.name(as::symbol, 0xffffffff81000000), "[hidden]");
  EXPECT_EQ(names.name(as::symbol, 0x1000), "0x1000");
}

TEST(Names, Errors) {
  EXPECT_EQ(error_name(0), "0");
  EXPECT_EQ(error_name(2), "ENOENT");
  EXPECT_EQ(error_name(-2), "ENOENT");
  EXPECT_EQ(error_name(512), "ERESTARTSYS");
  EXPECT_EQ(error_name(516), "ERESTART_RESTARTBLOCK");
  EXPECT_EQ(error_name(4000), "4000");
}

}  // namespace
}  // namespace coretap
