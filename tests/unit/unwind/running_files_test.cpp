#include "unwind/running_files.hpp"

#include "expect.hpp"
#include "symbols/test_files.hpp"

namespace coretap::unwind {
namespace {

using Clock = RunningFiles::Clock;
constexpr std::chrono::hours kLong{1};

class RunningFilesTest : public ::testing::Test {
 protected:
  void process(int pid, const std::string& maps) {
    scratch_.write(std::to_string(pid) + "/maps", maps);
  }
  static std::string code(const std::string& path, int inode) {
    return "1000-2000 r-xp 00000000 08:01 " + std::to_string(inode) + " " + path + "\n";
  }
  void SetUp() override {
    process(1, code("/once", 11));
    process(22, code("/often", 12) + "3000-4000 r-xp 00000000 00:00 0 [vdso]\n");
    process(333, code("/often", 12));
    process(4444, "1000-2000 rw-p 00000000 08:01 13 /data\n" + code("/often", 12));
    std::filesystem::create_directory(scratch_.path() + "/5x");
    std::filesystem::create_directory(scratch_.path() + "/66");  // has ended
  }

  ScratchDirectory scratch_;
};

TEST_F(RunningFilesTest, CodeOfMostProcessesFirstAndGoesOnWhereItStopped) {
  RunningFiles running(scratch_.path());
  std::vector<std::string> known;
  auto know = [&](pid_t pid, const symbols::Mapping& m) {
    known.push_back(m.path);
    EXPECT_TRUE(m.path != "/once" || pid == 1);
    return true;
  };
  EXPECT_TRUE(running.go_on(Clock::now(), know)) << "no time";
  EXPECT_TRUE(known.empty());
  EXPECT_FALSE(running.go_on(Clock::now() + kLong, know));
  EXPECT_EQ(known, (std::vector<std::string>{"/often", "/once"}));
}

TEST_F(RunningFilesTest, StopsWhereThereIsNoRoom) {
  RunningFiles running(scratch_.path());
  int known = 0;
  auto know = [&](pid_t, const symbols::Mapping&) { return ++known < 1; };
  EXPECT_FALSE(running.go_on(Clock::now() + kLong, know));
  EXPECT_EQ(known, 1);
}

}  // namespace
}  // namespace coretap::unwind
