// symbolize with a workload, whose debug information has its functions and lines.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

Result symbolize(const Strings& arguments) { return result_of("coretap" + arguments); }

/// The address of a function; a linker places code of shared objects at its offset in the file.
std::uint64_t address_in(const std::string& file, const std::string& function) {
  auto found = symbolize(Strings("tplist -f --json") + Strings{"-l", file, function});
  EXPECT_EQ(found.status, 0) << found.err;
  return Json::parse(found.out)["offset_bytes"].u64();
}

std::string hexadecimal(std::uint64_t number) {
  char text[32];
  snprintf(text, sizeof text, "0x%lx", number);
  return text;
}

TOOL_TEST(Symbolize, HasTheLineOfAFunction) {
  const auto file = workload_path("probes");
  const auto address = address_in(file, "main");
  auto found = symbolize(Strings{"symbolize", file, hexadecimal(address).substr(2)});
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_TRUE(found.out.starts_with(hexadecimal(address) + " main at /")) << found.out;
  expect_contains(found.out, {"/workload.h:"});

  found = symbolize(Strings{"symbolize", "--json", file, hexadecimal(address), "0x1"});
  EXPECT_EQ(found.status, 0) << found.err;
  auto all = lines(found.out);
  ASSERT_EQ(all.size(), 2u) << found.out;
  auto known = Json::parse(all[0]), unknown = Json::parse(all[1]);
  EXPECT_EQ(known["type"].str(), "symbol");
  EXPECT_EQ(known["address"].u64(), address);
  EXPECT_EQ(known["frames"].items().at(0)["function"].str(), "main");
  EXPECT_GT(known["frames"].items().at(0)["line"].u64(), 0u);
  EXPECT_TRUE(unknown["frames"].items().empty());
}

TOOL_TEST(Symbolize, SaysWhatIsWrong) {
  const auto file = workload_path("probes");
  auto expect = [](const Strings& arguments, int status, const std::string& words) {
    auto found = symbolize(arguments);
    EXPECT_EQ(found.status, status) << found.err;
    expect_contains(found.err, {words});
  };
  expect({"symbolize", file, "main"}, 2, "'main' is no address");
  expect({"symbolize", file, "0x"}, 2, "is no address");
  expect({"symbolize", file, "11111111111111111"}, 2, "is no address");
  expect({"symbolize", "/nonexistent", "1"}, 1, "No such file");
  expect({"symbolize", "/proc/self/maps", "1"}, 1, "is no program or library");
  EXPECT_EQ(symbolize({"symbolize", file, "0x1"}).status, 1);
}

}  // namespace
}  // namespace coretap::tooltest
