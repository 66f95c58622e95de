// tcpsynbl against a queue that grows by one with each connection, and the kernel's counts of
// refusals by a full one.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t counted_from(const Json& histogram, std::uint64_t from) {
  return sum(lines_with(histogram["histogram"].items(), {{"from", from}}), "count");
}

// The first connection finds an empty queue, the last one six connections in it.
void expect_queue(const Family& family, const std::string& ip, const std::string& other) {
  const std::string here = "tcpsynbl --json --strict --netns {pid} ";
  auto seen = watch({here + ip + " --by-port -L {server_port}", here, here + other},
                    "--queued 7 --backlog 50", family);
  auto of_port = only(seen.body(0)), all = only(seen.body(1));
  EXPECT_FALSE(all.has("local_port"));
  for (auto& h : {of_port, all}) {
    expect_fields(h, {{"backlog_max", 50}, {"count", 7}, {"total", 0 + 1 + 2 + 3 + 4 + 5 + 6}});
    EXPECT_EQ(counted_from(h, 0), 2u);
    EXPECT_EQ(counted_from(h, 2), 2u);
    EXPECT_EQ(counted_from(h, 4), 3u);
  }
  expect_same(of_port, seen.ready, {{"local_port", "server_port"}});
  expect_fields(only(seen.body(2)), "count 0 backlog_max null");  // only for the counters
}

TOOL_TEST(Tcpsynbl, Queue) { expect_queue(kFour, "-4", "-6"); }
TOOL_TEST(Tcpsynbl, QueueIpv6) { expect_queue(kSix, "-6", "-4"); }
// An IPv6 socket that is bound to an IPv4 address.
TOOL_TEST(Tcpsynbl, MappedAddresses) { expect_queue(kMapped, "-4", "-6"); }

TOOL_TEST(Tcpsynbl, Refused) {
  // One more than the backlog has room for.
  Scene scene("tcp --queued 4 --backlog 3 --overflow 5", {});
  auto path = "/proc/" + scene.workload().id() + "/ns/net";
  auto there = [&path] {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET)) _exit(126);
  };
  scene.trace("tcpsynbl --json --strict --netns {pid}", {.in_child = there});
  scene.trace("tcpsynbl --netns {pid}", {.in_child = there});
  auto seen = scene.finish();
  auto row = only(seen.report().body);
  auto overflows = seen.truth["listen_overflows"].u64(), drops = seen.truth["listen_drops"].u64();
  EXPECT_GE(overflows, 5u);
  expect_fields(row, "backlog_max 3 count 4");
  expect_same(row, seen.truth, {"listen_overflows", "listen_drops"});
  expect_contains(seen.text(1), {"ListenOverflows/ListenDrops: " + std::to_string(overflows) + "/" +
                                     std::to_string(drops) + "\n",
                                 "\nbacklog_max = 3\n", "backlog  "});
}

void expect_owner(const Family& family) {
  auto [own, other] = watch_each({{"tcp --queued 3 --listens-late --family " + family.name,
                                   {"tcpsynbl --json --strict -p {pid}"}},
                                  {"tcp --queued 3"}},
                                 {});
  EXPECT_EQ(own.report().sum("count"), 3u);
  EXPECT_GE(own.report().lost("filtered"), 3u);
}

TOOL_TEST(Tcpsynbl, Owner) { expect_owner(kFour); }
TOOL_TEST(Tcpsynbl, OwnerIpv6) { expect_owner(kSix); }
TOOL_TEST(Tcpsynbl, OwnerMappedAddresses) { expect_owner(kMapped); }

TESTS_OF(tcpsynbl, .events = {"--by-port", "tcp --queued 3"},
         .stress = count_row("tcp --queued {n} --backlog 1000 --listens-late", 400, "count",
                             for_each_client(1), "--by-port"),
         .long_run = {{.arguments = "--by-port"}});

}  // namespace
}  // namespace coretap::tooltest
