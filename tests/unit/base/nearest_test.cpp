#include "coretap/nearest.hpp"
#include "expect.hpp"

namespace coretap {
TEST(Nearest, TheOneThatItBeginsOrThatIsAFewLettersAway) {
  const std::vector<std::string_view> words = {"duration", "disk",   "interval", "page-faults",
                                               "pid",      "period", "LLC-loads"};
  for (auto& [text, wanted, why] : {std::array{"dur", "duration", ""},
                                    {"page", "page-faults", ""},
                                    {"p", "", "three begin so"},
                                    {"LLC-loads", "LLC-loads", ""},
                                    {"duratoin", "duration", "swapped"},
                                    {"intrval", "interval", "missing"},
                                    {"periodd", "period", "added"},
                                    {"page_fault", "page-faults", "wrong and missing"},
                                    {"drtion", "duration", ""},
                                    {"drton", "", "three letters"},
                                    {"something-else", "", ""},
                                    {"pit", "pid", "short words by one letter"},
                                    {"dik", "disk", ""},
                                    {"", "", ""}})
    EXPECT_EQ(nearest(text, words), wanted) << text << " " << why;
  EXPECT_EQ(nearest("dik", {"pid"}), "");
  EXPECT_EQ(nearest("x", {"y", "z"}), "");
  EXPECT_EQ(nearest("pid", {}), "");
  EXPECT_EQ(nearest(std::string(10000, 'p'), words), "");
  EXPECT_EQ(did_you_mean("pidd", words), "did you mean 'pid'?");
  EXPECT_EQ(did_you_mean("qqqqqq", words), "");
}

}  // namespace coretap
