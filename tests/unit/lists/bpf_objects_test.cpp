// Descriptors of processes, by a /proc that is laid out here.
#include "lists/bpf_objects.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

class Holders : public testing::Test {
 protected:
  void process(const std::string& pid, const std::string& comm) {
    fs::create_directories(proc_ / pid / "fd");
    fs::create_directories(proc_ / pid / "fdinfo");
    std::ofstream(proc_ / pid / "comm") << comm << '\n';
  }
  void descriptor(const std::string& pid, const std::string& fd, const std::string& link,
                  const std::string& info) {
    fs::create_symlink(link, proc_ / pid / "fd" / fd);
    std::ofstream(proc_ / pid / "fdinfo" / fd) << "pos:\t0\nflags:\t02000002\n" << info;
  }
  ScratchDirectory directory_;
  const fs::path proc_ = directory_.path();
};

TEST_F(Holders, ByTheKindOfTheirDescriptors) {
  process("20", "second");
  descriptor("20", "3", "anon_inode:bpf-prog", "prog_type:\t26\nprog_id:\t7\nmemlock:\t4096\n");
  process("3", "first one");
  descriptor("3", "3", "anon_inode:bpf-map", "map_type:\t1\nmap_id:\t7\n");
  descriptor("3", "4", "anon_inode:bpf-map", "map_type:\t1\nmap_id:\t7\n");
  descriptor("3", "5", "anon_inode:bpf_link", "link_type:\ttracing\nlink_id:\t9\nprog_id:\t7\n");
  descriptor("3", "11", "anon_inode:[perf_event]", "");
  descriptor("3", "12", "/dev/null", "map_id:\t8\n");
  process("4", "without");
  descriptor("4", "0", "/dev/null", "");
  process("self", "no number");
  descriptor("self", "3", "anon_inode:bpf-map", "map_id:\t1\n");
  auto all = bpf_holders(proc_.string());
  EXPECT_EQ(all.unreadable, 0u);
  ASSERT_EQ(all.holders.size(), 2u);
  EXPECT_EQ(all.holders[0].pid, 3u);
  EXPECT_EQ(all.holders[0].comm, "first one");
  EXPECT_EQ(all.holders[0].objects, (std::set<BpfId>{{BpfKind::map, 7}, {BpfKind::link, 9}}))
      << "two descriptors of one map";
  EXPECT_EQ(all.holders[0].perf_events, std::vector<std::uint32_t>{11});
  EXPECT_EQ(all.holders[1].pid, 20u);
  EXPECT_EQ(all.holders[1].objects, (std::set<BpfId>{{BpfKind::prog, 7}}));
}

TEST_F(Holders, OfDamagedFilesAndNothing) {
  process("1", "");
  descriptor("1", "3", "anon_inode:bpf-map", "map_id:\tseven\n");
  descriptor("1", "4", "anon_inode:bpf-prog", "");
  EXPECT_TRUE(bpf_holders(proc_.string()).holders.empty());
  EXPECT_TRUE(bpf_holders("/nonexistent").holders.empty());
}

}  // namespace
}  // namespace coretap
