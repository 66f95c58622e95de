#include "text/names.hpp"
#include "expect.hpp"
#include "kernel/kernel.hpp"

namespace coretap {
namespace {

/// Expects these names of hexadecimal numbers.
void expect_names(const Format& format, const Names& names,
                  std::initializer_list<std::string_view> cases) {
  expect_each([&](const std::string& n) { return names.name(format, std::stoull(n, nullptr, 16)); },
              cases);
}

// Masks as kernels from 5.10 to 6.9 print them beside their names when memory runs out.
TEST(GfpNames, OfOldKernels) {
  expect_names(as::gfp, {},
               {"cc0 => GFP_KERNEL", "dc0 => GFP_KERNEL|__GFP_ZERO", "400cc0 => GFP_KERNEL_ACCOUNT",
                "100cc0 => GFP_USER", "100cca => GFP_HIGHUSER_MOVABLE",
                "140cca => GFP_HIGHUSER_MOVABLE|__GFP_COMP", "c40 => GFP_NOFS", "c00 => GFP_NOIO",
                "820 => GFP_ATOMIC", "800 => GFP_NOWAIT", "1 => __GFP_DMA", "0 => 0x0",
                "1c20ca => GFP_TRANSHUGE_LIGHT", "1c24ca => GFP_TRANSHUGE",
                // Until 6.2 the set had a third bit, which adds nothing to its name.
                "a20 => GFP_ATOMIC",
                // Unknown bits are kept.
                "80000000 => 0x80000000", "1000cc0 => GFP_KERNEL|0x1000000",
                "8000000000000100 => __GFP_ZERO|0x8000000000000000"});
}

// Numbers that no kernel has: only the names may be used.
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
  expect_names(as::gfp, with_gfp_enum(),
               {"78 => GFP_KERNEL", "f8 => GFP_KERNEL|__GFP_ZERO", "120 => GFP_ATOMIC",
                // Bits newer than this program; the end of the enum is not a flag.
                "200 => __GFP_NEWER", "400 => 0x400", "10000000000 => 0x10000000000", "1 => 0x1",
                "8 => __GFP_FS"});
}

TEST(FlagNames, OfThisKernel) {
  Kernel kernel;
  if (!kernel.has_btf()) GTEST_SKIP() << "no readable /sys/kernel/btf/vmlinux";
  Names names;
  names.learn(as::gfp, kernel);
  expect_names(as::gfp, names, {"cc0 => GFP_KERNEL"});  // these bits are stable
  names.learn(as::block_flags, kernel);
  expect_names(as::block_flags, names, {"0 => Read", "1 => Write", "2 => Flush"});
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

// As in biolatency -F: the highest bit first, and before the operation.
TEST(BlockNames, OperationsAndFlags) {
  auto names = with_block_enums();
  expect_names(
      as::block_flags, names,
      {"0 => Read", "1 => Write", "2 => Flush", "7 => ZoneAppend", "22 => DriverIn", "63 => Op99",
       "801 => Sync-Write", "1000 => Metadata-Read", "80000 => ReadAhead-Read",
       "40001 => PreFlush-Write", "4000 => NoMerge-Read", "3000 => Priority-Metadata-Read",
       "21801 => ForcedUnitAccess-Metadata-Sync-Write", "80000001 => 0x80000000-Write",
       // The end of the enum is not a flag.
       "2000001 => 0x2000000-Write"});
  auto shared = names.name(as::block_flags, 1 << 24 | 1);
  EXPECT_TRUE(shared == "Drv-Write" || shared == "FsPrivate-Write")
      << shared << ": one bit, one name";
  // The letters are the kernel's, by its numbers of operations; some flags have none.
  expect_names(as::rwbs, names,
               {"0 => R", "1 => W", "801 => WS", "80000 => RA", "1801 => WSM", "60801 => FWFS",
                "40002 => FF", "7 => ZA", "22 => N", "4000 => R"});
  // The enum's name until 6.0, and a kernel without type information.
  expect_names(as::block_flags, with_block_enums("req_opf"), {"1 => Write"});
  expect_names(as::rwbs, with_block_enums("req_opf"), {"1 => W"});
  expect_names(as::block_flags, {}, {"801 => 0x800-Op1"});
  expect_names(as::rwbs, {}, {"801 => N"});
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
  expect_names(kResult, with_results(),
               {"1 => skipped", "4 => no_suitable_page", "5 => other", "fffffffffffffffe => minus",
                "63 => 99"});
  EXPECT_EQ(Names().name(kResult, 1), "1");
}

TEST(Show, AlignsToTheWidth) {
  struct {
    Format format;
    Value value;
    std::string_view text;
  } const cases[] = {{as::number, std::uint64_t{5}, "         5"},
                     {as::pid, std::uint64_t{5}, "5      "},
                     {as::number, std::uint64_t{123456789012}, "123456789012"},  // never truncated
                     {as::small, std::int64_t{-1}, "   -1"},
                     {{}, UINT64_MAX, "18446744073709551615"},
                     {{}, INT64_MIN, "-9223372036854775808"},
                     {as::number, Value{}, "         -"},
                     {as::wide(as::text, -4), true, "yes "},
                     {as::wide(as::text, -4), false, "no  "},
                     {as::wide(as::milliseconds, 0), std::uint64_t{1'234'567}, "1.23"},
                     {as::wide(as::milliseconds, 0), std::uint64_t{0}, "0.00"},
                     {as::wide(as::percent, 0), 0.12345, "12.35"},
                     {as::wide(as::percent, 0), 1.0, "100.00"},
                     {as::wide(as::thousandths, 0), std::int64_t{-1000}, "-1.000"},
                     {as::wide(as::thousandths, 0), std::int64_t{789}, "0.789"},
                     {kResult, std::int64_t{1}, "skipped     "},
                     {kResult, std::uint64_t{1}, "skipped     "},
                     {as::disk, std::uint64_t{0}, "-      "},
                     {as::wide(as::disk, 0), std::uint64_t{0xffffffff}, "4095:1048575"}};
  for (auto& c : cases) EXPECT_EQ(show(c.format, c.value, with_results()), c.text);
}

TEST(Show, TextFromOutsideIsHarmless) {
  EXPECT_EQ(show(as::comm, std::string("nginx"), Names()), "nginx           ");
  EXPECT_EQ(show(as::comm, std::string("\x1b[2J\n"), Names()), "\\x1b[2J\\x0a     ");
  // Multi-byte letters take one column.
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
  expect_each([](const std::string& n) { return error_name(std::stoi(n)); },
              {"0 => 0", "2 => ENOENT", "-2 => ENOENT", "512 => ERESTARTSYS",
               "516 => ERESTART_RESTARTBLOCK", "4000 => 4000"});
}

}  // namespace
}  // namespace coretap
