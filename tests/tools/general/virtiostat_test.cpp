// virtiostat against the kernel's statistics of a virtio disk. Only guests are sure to have one.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Upper bounds of the queue's bytes of a virtio disk for this I/O: per request 16 bytes of header
/// to the device and one byte of status from it, and the data.
struct Handed {
  std::uint64_t in = 0, out = 0;
};
Handed handed(const DiskNumbers& d) {
  constexpr std::uint64_t kBytes = 512, kHeader = 16;
  auto requests = d[0] + d[4] + d[15];  // reads, writes (flushes among them), flushes
  return {d[2] * kBytes + requests, d[6] * kBytes + requests * kHeader};
}

TOOL_TEST(Virtiostat, DataOfADisk) {
  if (!in_guest()) throw Skip("a virtio disk that only this test uses is in guests");
  auto device = std::filesystem::canonical("/sys/block/vda/device").filename().string();
  Scene scene("blockio --path /mnt/disk --count 40 --size 64k");
  ASSERT_EQ(scene.ready()["disk"].str(), "vda");
  auto before = handed(*diskstats("vda"));
  scene.trace("virtiostat --json --strict -d virtio_blk 600 -n " + device);
  scene.trace("virtiostat --json -d virtio");
  auto seen = scene.finish();
  auto report = seen.report();
  auto after = handed(*diskstats("vda"));
  auto count = seen.truth["count"].u64();
  EXPECT_GE(report.sum("buffers"), count);
  EXPECT_GE(report.sum("out_bytes"), seen.truth["bytes"].u64() + 16 * count);
  EXPECT_LE(report.sum("out_bytes"), after.out - before.out);
  EXPECT_GE(report.sum("in_bytes"), count);
  EXPECT_LE(report.sum("in_bytes"), after.in - before.in);
  for (auto& line : report.body) {
    expect_fields(line, {{"driver", "virtio_blk"}, {"device", device}});
    EXPECT_TRUE(line["queue"].str().starts_with("req")) << line["queue"].str();
  }
  EXPECT_TRUE(seen.report(1).body.empty()) << "part of a driver's name";
}

TESTS_OF(virtiostat, .events = {{}, "blockio --count 5"}, .nothing_when_idle = true,
         .stress = count_row("blockio --count {n} --span 4m", 1500, "buffers", "count",
                             "-d virtio_blk"));

}  // namespace
}  // namespace coretap::tooltest
