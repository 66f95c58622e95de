// tcpsynbl against a queue that grows by one with each connection, and the kernel's own counts of
// what a full one refuses.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t counted_from(const Json& histogram, std::uint64_t from) {
  for (auto& slot : histogram["histogram"].items())
    if (slot["from"].u64() == from) return slot["count"].u64();
  return 0;
}

// The first finds an empty queue, the last one six connections in it.
void expect_queue(const Strings& options, const char* ip, const char* other) {
  require_tool("tcpsynbl");
  Connections workload(options);
  Strings here{"--json", "--strict", "--netns", workload.id()};
  auto with = [&](Strings more) {
    more.insert(more.begin(), here.begin(), here.end());
    return more;
  };
  auto port = std::to_string(workload.server_port);
  Tracer tracer("tcpsynbl", with({ip, "--by-port", "-L", port}));
  Tracer sum("tcpsynbl", with({})), none("tcpsynbl", with({other}));
  workload.release();
  workload.truth();
  auto rows = tracer.stop().body, all = sum.stop().body, nothing = none.stop().body;
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].has("local_port"));
  for (auto& h : {rows[0], all[0]}) {
    EXPECT_EQ(h["backlog_max"].u64(), 50u);
    EXPECT_EQ(h["count"].u64(), 7u);
    EXPECT_EQ(h["total"].u64(), 0u + 1 + 2 + 3 + 4 + 5 + 6);
    EXPECT_EQ(counted_from(h, 0), 2u);
    EXPECT_EQ(counted_from(h, 2), 2u);
    EXPECT_EQ(counted_from(h, 4), 3u);
  }
  EXPECT_EQ(rows[0]["local_port"].u64(), workload.server_port);
  ASSERT_EQ(nothing.size(), 1u) << "for the counters";
  EXPECT_EQ(nothing[0]["count"].u64(), 0u);
  EXPECT_TRUE(nothing[0]["backlog_max"].is_null());
}

TOOL_TEST(Tcpsynbl, Queue) { expect_queue({"--queued", "7", "--backlog", "50"}, "-4", "-6"); }
TOOL_TEST(Tcpsynbl, QueueIpv6) {
  expect_queue({"--queued", "7", "--backlog", "50", "--family", "6"}, "-6", "-4");
}
// An IPv6 socket that is bound to an IPv4 address.
TOOL_TEST(Tcpsynbl, MappedAddresses) {
  expect_queue({"--queued", "7", "--backlog", "50", "--family", "mapped"}, "-4", "-6");
}

TOOL_TEST(Tcpsynbl, Refused) {
  require_tool("tcpsynbl");
  // One more than the backlog has room.
  Connections workload({"--queued", "4", "--backlog", "3", "--overflow", "5"});
  auto path = "/proc/" + workload.id() + "/ns/net";
  auto there = [&path] {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET)) _exit(126);
  };
  Tracer tracer("tcpsynbl", {"--json", "--strict", "--netns", workload.id()}, {.in_child = there});
  Tracer text("tcpsynbl", {"--netns", workload.id()}, {.in_child = there});
  workload.release();
  auto truth = workload.truth();
  auto rows = tracer.stop().body;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["backlog_max"].u64(), 3u);
  EXPECT_EQ(rows[0]["count"].u64(), 4u);
  EXPECT_GE(truth["listen_overflows"].u64(), 5u);
  EXPECT_EQ(rows[0]["listen_overflows"].u64(), truth["listen_overflows"].u64());
  EXPECT_EQ(rows[0]["listen_drops"].u64(), truth["listen_drops"].u64());
  auto shown = text.stop_text();
  EXPECT_TRUE(contains(
      shown, "ListenOverflows/ListenDrops: " + std::to_string(truth["listen_overflows"].u64()) +
                 "/" + std::to_string(truth["listen_drops"].u64()) + "\n"))
      << shown;
  EXPECT_TRUE(contains(shown, "\nbacklog_max = 3\n")) << shown;
  EXPECT_TRUE(contains(shown, "backlog  ")) << shown;
}

void expect_owner(const char* family) {
  require_tool("tcpsynbl");
  Connections workload({"--queued", "3", "--listens-late", "--family", family});
  Connections other({"--queued", "3"});
  Tracer tracer("tcpsynbl", {"--json", "--strict", "-p", workload.id()});
  for (auto* w : {&workload, &other}) w->release();
  for (auto* w : {&workload, &other}) w->truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.sum("count"), 3u);
  EXPECT_GE(report.lost("filtered"), 3u);
}

TOOL_TEST(Tcpsynbl, Owner) { expect_owner("4"); }
TOOL_TEST(Tcpsynbl, OwnerIpv6) { expect_owner("6"); }
TOOL_TEST(Tcpsynbl, OwnerMappedAddresses) { expect_owner("mapped"); }

const DeclareTests kTcpsynbl{{
    .name = "tcpsynbl",
    .reports = {{ReportKind::aggregate}},
    .events = {"--by-port", "tcp --queued 3"},
    .stress = {.workload = "tcp --queued {n} --backlog 1000 --listens-late",
               .events = 400,
               .options = "--by-port",
               .shown = "count",
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "--by-port"}},
}};

}  // namespace
}  // namespace coretap::tooltest
