// bitesize against a process that submits a known number of requests of one size.
#include "disks.hpp"

namespace coretap::tooltest {
namespace {

const std::string kOfProcess = "bitesize --json --strict -p {pid} -d {disk} ";

TOOL_TEST(Bitesize, SizesOfTheWritesOfAProcess) {
  for (std::string size : {"4k", "16k", "64k"}) {
    SCOPED_TRACE(size);
    auto seen = on_loop({kOfProcess}, "--count 40 --size " + size);
    auto line = only(seen.body());
    auto bytes = seen.number("size"), count = seen.number("count");
    expect_fields(line, {{"comm", "blockio"}, {"count", count}, {"total_bytes", count * bytes}});
    auto slot = only(line["histogram"].items());  // all have one size
    EXPECT_LE(slot["from_bytes"].u64(), bytes);
    EXPECT_GT(slot["below_bytes"].u64(), bytes);
    expect_same(seen.report().ledger, seen.truth, {{"shown", "count"}});
  }
}

TOOL_TEST(Bitesize, OperationsAndDisksApart) {
  auto seen = on_loop({kOfProcess + "-F -D", "bitesize -p {pid}"}, "--op read --count 30");
  expect_fields(only(seen.body()), "operation Read");
  expect_same(only(seen.body()), seen.truth, {"disk", "count"});
  expect_contains(seen.text(1), {"Process Name = blockio\n",
                                 "     kbytes              : count    distribution\n"});
}

// A CPU that caches the row of one name must not use it for the other.
TOOL_TEST(Bitesize, NamesThatBeginAlike) {
  auto [one, two] = watch_each({{"blockio --make loop --count 40 --comm bite-alike-one",
                                 {"bitesize --json --strict -p {0},{1}"}},
                                {"blockio --make loop --count 30 --comm bite-alike-two"}});
  EXPECT_EQ(one.shown(0), 2u);
  expect_same(line_with(one.body(), {{"comm", "bite-alike-one"}}), one.truth, {"count"});
  expect_same(line_with(one.body(), {{"comm", "bite-alike-two"}}), two.truth, {"count"});
}

TESTS_OF(bitesize, .events = {"-D -F", "blockio --count 5"}, .nothing_when_idle = true,
         .stress = writes_to_loop("count", "-D"), .long_run = {{.arguments = "-D -F 10"}});

}  // namespace
}  // namespace coretap::tooltest
