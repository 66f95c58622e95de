// tcprtt against a socket's TCP_INFO, and a round trip of known length.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// Number of values in the ranges from the one of `least` to the one that contains `ns`.
std::uint64_t in_ranges(const Json& histogram, std::uint64_t least, std::uint64_t ns = ~0ULL) {
  std::uint64_t count = 0;
  for (auto& slot : histogram["histogram"].items())
    if (slot["below_ns"].u64() > least && slot["from_ns"].u64() <= ns) count += slot["count"].u64();
  return count;
}

// The acknowledgement of the first segment comes 70 ms later; two values then contain it.
TOOL_TEST(Tcprtt, ARoundTripOfKnownLength) {
  const std::string own = "tcprtt --json --strict --netns {pid} -P ";
  auto seen = watch({own + "{server_port}", own + "{server_port} --raw", own + "{server_port} -p 1",
                     "tcprtt -b -e -m --pid {pid}", "tcprtt --json --strict --pid {pid}"},
                    "tcp --sessions 1 --delayed 70");
  if (seen.number("retransmits")) throw Skip("too slow: the segment was sent again");
  auto segments = seen.number("segments_in"), smoothed = seen.number("smoothed_us") * 1000;
  auto all = only(seen.body(0)), each = only(seen.body(1));
  EXPECT_EQ(all["count"].u64(), segments);
  EXPECT_GE(in_ranges(all, smoothed, smoothed), 1u);
  EXPECT_EQ(in_ranges(each, 65'536'000), 1u);
  EXPECT_LT(each["count"].u64(), segments);
  EXPECT_GE(seen.number("round_trip_ns"), 70'000'000u);
  EXPECT_EQ(seen.body(2).at(0)["count"].u64(), 0u);
  EXPECT_GE(seen.report(2).lost("filtered"), segments);
  expect_contains(seen.text(3), {"\nLocal Address = 127.0.0.1", "msecs", "\navg = "});
  expect_fields(only(seen.body(4)), {{"count", segments}});
}

TOOL_TEST(Tcprtt, PerAddress) {
  auto [four, six, mapped] =
      watch_each({{"tcp --sessions 2", {"tcprtt --json --strict -b"}},
                  {"tcp --family 6", {"tcprtt --json --strict -bB -6 --netns {pid}"}},
                  {"tcp --family mapped",
                   {"tcprtt --json -B -4 --netns {pid} -A 127.0.0.0/8 -P {server_port}"}}},
                 {});
  auto local = four.body();
  for (auto& h : local) EXPECT_FALSE(h.has("remote_address"));
  for (auto* address : {"127.0.0.1", "::1"})
    EXPECT_EQ(lines_with(local, {{"local_address", address}}).size(), 1u) << address;
  expect_fields(only(six.body()), "local_address ::1 remote_address ::1");
  expect_fields(only(mapped.body()), mapped.filled("remote_address 127.0.0.1 count {segments_in}"));
}

TESTS_OF(tcprtt, .reports = {{ReportKind::aggregate}}, .events = {{}, "tcp"},
         .stress = {
             .workload = "tcp --sessions {n} --client-bytes 10 --server-bytes 10",
             .events = 400,
             .shown = "count",
             .truth = "segments_in",
             // The kernel merges segments that arrive while the socket is in use (tcp_add_backlog).
             .hidden = "backlog_joined"});

}  // namespace
}  // namespace coretap::tooltest
