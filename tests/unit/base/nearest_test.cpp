#include "base/nearest.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

const std::vector<std::string_view> kWords = {"duration", "disk",   "interval", "page-faults",
                                              "pid",      "period", "LLC-loads"};

TEST(Nearest, OneWordThatItBegins) {
  EXPECT_EQ(nearest("dur", kWords), "duration");
  EXPECT_EQ(nearest("page", kWords), "page-faults");
  EXPECT_EQ(nearest("p", kWords), "") << "three begin so";
  EXPECT_EQ(nearest("LLC-loads", kWords), "LLC-loads");
}

TEST(Nearest, UpToTwoLetters) {
  EXPECT_EQ(nearest("duratoin", kWords), "duration") << "swapped";
  EXPECT_EQ(nearest("intrval", kWords), "interval") << "missing";
  EXPECT_EQ(nearest("periodd", kWords), "period") << "added";
  EXPECT_EQ(nearest("page_fault", kWords), "page-faults") << "wrong and missing";
  EXPECT_EQ(nearest("drtion", kWords), "duration");
  EXPECT_EQ(nearest("drton", kWords), "") << "three letters";
  EXPECT_EQ(nearest("something-else", kWords), "");
}

TEST(Nearest, ShortWordsByOneLetter) {
  EXPECT_EQ(nearest("pit", kWords), "pid");
  EXPECT_EQ(nearest("dik", kWords), "disk");
  EXPECT_EQ(nearest("dik", {"pid"}), "");
  EXPECT_EQ(nearest("x", {"y", "z"}), "");
}

TEST(Nearest, NothingToCompare) {
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest("pid", {}), "");
  EXPECT_EQ(nearest(std::string(10000, 'p'), kWords), "");
}

TEST(Nearest, AsAQuestion) {
  EXPECT_EQ(did_you_mean("pidd", kWords), "did you mean 'pid'?");
  EXPECT_EQ(did_you_mean("qqqqqq", kWords), "");
}

}  // namespace
}  // namespace coretap
