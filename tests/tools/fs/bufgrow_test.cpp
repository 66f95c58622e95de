// bufgrow against a process that writes a known number of pages of a private device.
#include "shared.hpp"

namespace coretap::tooltest {
// --disk is the whole disk; pages belong to the partition.
TOOL_TEST(Bufgrow, PartitionsOfADisk) {
  require_tool("bufgrow");
  TemporaryDirectory directory;
  const auto image = directory.path() + "/image";
  auto made =
      run({"/bin/sh", "-c",
           "truncate -s 32M " + image + " && d=$(losetup -f --show " + image +
               ") && { addpart $d 1 2048 32768 && echo $d || { losetup -d $d; false; }; }"});
  if (made.status) throw Skip("no partitions of loop devices here: " + made.err);
  const auto device = lines(made.out).at(0), disk = device.substr(device.rfind('/') + 1);
  auto seen = [&](const std::string& of) {
    auto traced = run({tool_path("bufgrow"), "-D", "--json", "-d", of, "--", "dd",
                       "if=" + device + "p1", "of=/dev/null", "bs=1M", "count=8"});
    EXPECT_EQ(traced.status, 0) << traced.err;
    return sum(lines_with(parse_report(traced.out, traced.err).body, {{"disk", disk + "p1"}}),
               "added_bytes");
  };
  const bool there = ::access((device + "p1").c_str(), R_OK) == 0;
  if (there) {
    EXPECT_GE(seen(disk), 8u << 20);
  }
  run({"delpart", device, "1"});
  run({"losetup", "-d", device});
  if (!there) throw Skip("no device files of partitions appear here");
}

// All pages that it writes are new, and all are dropped at the end.
TOOL_TEST(Bufgrow, PagesOfADevice) {
  auto seen = observe_all(
      {"bufgrow --json --strict -D -p {pid} -d {disk}", "bufgrow --json --strict -p {pid}",
       "bufgrow --json -p 1", "bufgrow -D -p {pid} -d {disk}"},
      "blockio --make loop --buffered --count 50 --size 64k");
  auto bytes = seen.truth["bytes"].u64();
  expect_fields(line_with(seen.report().body, {}),
                {is("comm", "blockio"), is("pid", seen.pid), is("disk", seen.ready["disk"].str()),
                 is("added_bytes", bytes), is("removed_bytes", bytes)});
  auto all = line_with(seen.report(1).body, {});
  EXPECT_FALSE(all.has("disk"));
  EXPECT_GE(all["added_bytes"].u64(), bytes) << "and a file system's metadata";
  EXPECT_GE(seen.report(2).lost("filtered"), 50u);

  auto rows = lines(seen.text(3));
  auto kilobytes = std::to_string(bytes / 1024);
  EXPECT_EQ(words(rows.at(2)), (Strings{std::to_string(seen.pid), "blockio",
                                        seen.ready["disk"].str(), kilobytes, kilobytes}));
}

TESTS_OF(bufgrow, .events = {{}, "blockio --make loop --buffered --count 20"},
         .stress = count_row(
             "blockio --make loop --buffered --count {n}", 5000,
             [](const Json& line) {
               auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
               if (!line["disk"].str().starts_with("loop")) return std::uint64_t{0};
               return (line["added_bytes"].u64() + line["removed_bytes"].u64()) / page;
             },
             [](stress::Load& load) { return 2 * load.truth("count"); }, "-D"));

}  // namespace coretap::tooltest
