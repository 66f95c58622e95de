#include "runtimes/line_table.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace coretap::runtimes {
namespace {

struct Made {
  unsigned minor;
  std::uint32_t first;
  std::string_view table;  // in hexadecimal
  std::vector<int> lines;  // of each unit; 0: none
};

// One function (comments, conditions, loops, try, generator) compiled by each version; the lines
// are those of its co_lines(), of 3.9 dis.findlinestarts().
const Made kMade[] = {
    {9,
     2,
     "0005060102ff060302010201020202fe02ff0605140108010601020102ff080206011e"
     "01",
     {7,  7,  7,  8,  7,  7,  7,  10, 11, 12, 14, 12, 11, 11, 11, 16, 16, 16, 16, 16,
      16, 16, 16, 16, 16, 17, 17, 17, 17, 18, 18, 18, 19, 20, 19, 19, 19, 19, 21, 21,
      21, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 23, 23}},
    {10,
     2,
     "02800605020106ff020302010201020202fe06ff1405080106010201020108ff060202"
     "010aff040210fe0402",
     {0,  7,  7,  7,  8,  7,  7,  7,  10, 11, 12, 14, 12, 11, 11, 11, 16, 16, 16, 16,
      16, 16, 16, 16, 16, 16, 17, 17, 17, 17, 18, 18, 18, 19, 20, 19, 19, 19, 19, 21,
      21, 21, 22, 21, 21, 21, 21, 21, 23, 23, 21, 21, 21, 21, 21, 21, 21, 21, 23, 23}},
    {11,
     2,
     "e800e8008000f00a02090ff00002090fd81213f00302090ff10002090ff40002090f80"
     "41f006060515d80d0ed80d0e8851e00d0ef105020e10f400020e10f103030e108801f0"
     "0a000d0e8801903188718871f888418801903188718875887588758875d80d0ef00003"
     "0512f0000305128801d80b0c880e8868d80f10d80f10f003010f12f000010912f00001"
     "0912f000010912f000010912e0090af00001050d8861d8080cf00301050df00001050d"
     "f00001050df10001050df40001050df00001050df00001050df00001050df00001050d"
     "f00001050df00001050df8f8f8f00001050df00001050df00001050df00001050de00b"
     "0c8048",
     {2,  2,  2,  7,  7,  8,  7,  7,  7,  7,  7,  7,  7,  7,  7,  10, 11, 12, 12, 14, 12, 12,
      12, 12, 12, 12, 12, 11, 11, 11, 16, 16, 16, 16, 16, 0,  16, 16, 16, 16, 16, 16, 16, 16,
      17, 17, 17, 17, 18, 18, 18, 19, 20, 19, 19, 19, 19, 19, 21, 21, 21, 22, 21, 21, 21, 21,
      21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 0,  0,  0,  21, 21, 21, 21, 23, 23}},
    {12,
     2,
     "e800f88000f00c001314f60302090fd80d0ed90c0df205000a0bf00002090f8041f000"
     "02090ff006060515d80d0ed90d0ee00d0ef305020e10f103030e108801f00a000d0e88"
     "0190318871d80d0ef2000305128801d90b0c8868d80f10d80f10f003010f12f3000109"
     "12f005030512f008000a0bf00001050d8861d8080cf70301050de00b0c8048f9f22102"
     "090ff8f012000d0e880190318971faf70a01050de00b0c8048fc",
     {2,  0,  2,  8,  7,  7,  7,  7,  7,  7,  7,  8,  9,  9,  7,  7,  7,  7,  7,
      7,  10, 11, 12, 12, 14, 12, 12, 12, 12, 11, 11, 11, 16, 16, 16, 16, 17, 17,
      17, 17, 17, 18, 18, 18, 19, 20, 19, 19, 19, 19, 19, 17, 21, 21, 21, 22, 21,
      21, 21, 21, 21, 21, 21, 21, 23, 23, 0,  0,  7,  7,  7,  0,  16, 16, 16, 16,
      16, 0,  0,  0,  21, 21, 21, 21, 21, 21, 21, 21, 23, 23, 0,  0,  0,  0,  0}},
    {13,
     2,
     "e9008000f10c001314f30302090fd912138851dc0c0df705000a0bd91213f003000506"
     "f00002090ff006060515d80d0ed90d0ee00d0ef305020e10f103030e108801f00a000d"
     "0e880190318871db0d0e8801de0b0c8968d80f10d80f10f003010f12f400010912f105"
     "000e0ff108000a0b8861d8080cf703000a0be00b0c8048f9f22102090ff8f012000d0e"
     "880190318971faf70a000a0b8c11e00b0c8048fc",
     {2,  2,  2,  8,  8,  7,  7,  7,  7,  8,  8,  8,  9,  9,  9,  9,  9,  7,  7,  7,
      7,  7,  7,  7,  7,  8,  8,  7,  7,  10, 11, 12, 12, 14, 12, 12, 12, 12, 11, 11,
      11, 16, 16, 16, 16, 17, 17, 17, 17, 17, 18, 18, 18, 18, 18, 18, 18, 18, 18, 19,
      20, 19, 19, 19, 19, 19, 19, 17, 17, 21, 21, 21, 22, 21, 21, 21, 21, 21, 21, 21,
      21, 23, 23, 0,  0,  7,  7,  7,  0,  16, 16, 16, 16, 16, 0,  0,  0,  21, 21, 21,
      21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 23, 23, 0,  0,  0,  0,  0}},
    {14,
     2,
     "e9008000f10c001314f30302090fd912138851dc0c0df705000a0b8811d91213f00300"
     "0506f00002090ff006060515d80d0ed90d0ee00d0ef305020e10f503030e108801f00a"
     "000d0e880190318871db0d0e8801df0b0c8968d80f10d80f10f003010f12f400010912"
     "f105000e0ff708000a0b89118861d8080cf703000a0be00b0c8048f9f22102090ff8f0"
     "12000d0e880190318971faf70a000a0b8e11e00b0c8048fc",
     {2,  2,  2,  8,  8,  7,  7,  7,  7,  8,  8,  8,  9,  9,  9,  9,  9,  7,  7,  7,  7,  7,  7,
      7,  7,  7,  8,  8,  7,  7,  10, 11, 12, 12, 14, 12, 12, 12, 12, 11, 11, 11, 11, 11, 11, 11,
      16, 16, 16, 16, 17, 17, 17, 17, 17, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 19, 20, 19, 19,
      19, 19, 19, 19, 17, 17, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 22, 21, 21, 21, 21, 21,
      21, 21, 21, 23, 23, 0,  0,  7,  7,  7,  0,  16, 16, 16, 16, 16, 0,  0,  0,  21, 21, 21, 21,
      21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 23, 23, 0,  0,  0,  0,  0}},
    {15,
     2,
     "e9008100f00c001314f30302090fdb12138851dc0c0df705000a0b8811d91213f00300"
     "0506f00002090ff006060515d80d0ed90d0ee00d0ef305020e10f503030e108801f00a"
     "000d0e880190318871dc0d0e8801df0b0c8968d80f10d80f10f003010f12f500010912"
     "f105000e0ff708000a0b89118861d8080cf703000a0be00b0c8048f9f22102090ff8f0"
     "12000d0e880190318971faf70a000a0b8e11e00b0c8048fc",
     {2,  2,  2,  2,  8,  7,  7,  7,  7,  8,  8,  8,  8,  8,  9,  9,  9,  9,  9,  7,  7,  7,  7,
      7,  7,  7,  7,  7,  8,  8,  7,  7,  10, 11, 12, 12, 14, 12, 12, 12, 12, 11, 11, 11, 11, 11,
      11, 11, 16, 16, 16, 16, 17, 17, 17, 17, 17, 17, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 19,
      20, 19, 19, 19, 19, 19, 19, 19, 17, 17, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 22, 21,
      21, 21, 21, 21, 21, 21, 21, 23, 23, 0,  0,  7,  7,  7,  0,  16, 16, 16, 16, 16, 0,  0,  0,
      21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 21, 23, 23, 0,  0,  0,  0,  0}},
};

std::string bytes_of(std::string_view hexadecimal) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hexadecimal.substr(i, 2)), nullptr, 16));
  return out;
}

TEST(LineTable, AsTheCompilersOfAllVersions) {
  for (auto& made : kMade) {
    const auto table = bytes_of(made.table);
    for (std::size_t unit = 0; unit < made.lines.size(); unit++) {
      const auto line = line_at(made.minor, table, made.first, static_cast<std::uint32_t>(unit));
      EXPECT_EQ(line.value_or(0), static_cast<std::uint32_t>(made.lines[unit]))
          << "3." << made.minor << " unit " << unit;
    }
    EXPECT_TRUE(has_lines(made.minor, table));
  }
}

TEST(LineTable, BehindItsEndThereIsNoLine) {
  for (auto& made : kMade)
    if (made.minor > 9) {
      EXPECT_FALSE(line_at(made.minor, bytes_of(made.table), made.first, 5000)) << made.minor;
    }
  EXPECT_EQ(line_at(9, {}, 7, 3), 7u);  // the only line has no entry
}

TEST(LineTable, CodeWithoutAnyLineIsTheInterpretersOwn) {
  EXPECT_FALSE(has_lines(12, bytes_of("f8f8f8")));
  EXPECT_TRUE(has_lines(12, bytes_of("f88000")));
  EXPECT_TRUE(has_lines(12, {}));  // not received
}

TEST(LineTable, DamagedTablesEnd) {
  for (auto& made : kMade) {
    const auto whole = bytes_of(made.table);
    for (std::size_t cut = 0; cut < whole.size(); cut++)
      for (unsigned place : {0U, 20U, 100'000U})
        line_at(made.minor, std::string_view(whole).substr(0, cut), made.first, place);
    // Numbers without an end.
    line_at(made.minor, std::string(300, '\xff'), made.first, 1 << 20);
  }
}

}  // namespace
}  // namespace coretap::runtimes
