// mountsnoop against a program that prints the expected line of each of its calls.
#include "calls.hpp"

namespace coretap::tooltest {
namespace {

/// The calls that the kernel has.
std::vector<Json> known(std::vector<Json> calls) {
  std::erase_if(calls, [](auto& call) { return call["ret"].i64() == -ENOSYS; });
  return calls;
}

TOOL_TEST(Mountsnoop, EveryCallWithItsArguments) {
  auto [seen, other] =
      watch_each({{"mounts --unmounts 20 --scene", {"mountsnoop --json --strict -p {pid}"}},
                  {"mounts --scene"}},
                 {});
  auto calls = known(seen.truth["scene"].items()), events = known(seen.body());
  ASSERT_EQ(events.size(), 20 + calls.size());
  for (std::size_t i = 0; i < events.size(); i++) {
    SCOPED_TRACE(i);
    auto& event = events[i];
    EXPECT_EQ("mnt:[" + event["mount_namespace"].text() + "]", seen.truth["mount_ns"].str());
    if (i < 20) {
      expect_fields(event, {{"arguments_text", "umount(\"/no/where\", MNT_FORCE) = ENOENT"}});
      continue;
    }
    auto& call = calls[i - 20];
    auto ret = call["ret"].i64();
    auto result =
        ret < 0 ? std::string(::strerrorname_np(static_cast<int>(-ret))) : std::to_string(ret);
    expect_same(event, call, {"call", "ret"});
    expect_fields(event, {{"arguments_text", call["text"].str() + " = " + result}});
    if (!call["source"].str().empty()) expect_same(event, call, {"source"});
    if (!call["target"].str().empty()) expect_same(event, call, {{"mount_point", "target"}});
  }
  expect_fields(events[20],
                {{"fs_type", "tmpfs"}, {"data", "size=1M"}, {"flags_text", "MS_NOSUID|MS_NODEV"}});
}

TESTS_OF(mountsnoop, .events = {{}, "mounts --unmounts 3"},
         .stress = event_row("mounts --unmounts {n}", 20000, "calls"));

}  // namespace
}  // namespace coretap::tooltest
