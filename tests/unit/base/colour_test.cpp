#include "base/colour.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

class Colour : public testing::Test {
 protected:
  void SetUp() override {
    set_colour_mode(ColourMode::automatic);  // tests of options may have changed it
    ASSERT_GE(terminal_, 0);
    ASSERT_EQ(::grantpt(terminal_), 0);
    ASSERT_EQ(::unlockpt(terminal_), 0);
    screen_ = ::open(::ptsname(terminal_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(screen_, 0);
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
  }
  void TearDown() override {
    set_colour_mode(ColourMode::automatic);
    ::unsetenv("NO_COLOR");
    ::close(screen_);
    ::close(terminal_);
    ::close(file_);
  }

  int terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), screen_ = -1;
  int file_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
};

TEST_F(Colour, OnlyOnTerminals) {
  EXPECT_EQ(painted(screen_, Paint::title, "PID"), "\x1b[1mPID\x1b[0m");
  EXPECT_EQ(painted(screen_, Paint::error, "no\n"), "\x1b[1;31mno\x1b[0m\n");
  EXPECT_EQ(painted(screen_, Paint::loss, ""), "");
  EXPECT_EQ(painted(file_, Paint::error, "no\n"), "no\n");
}

TEST_F(Colour, WhatTheUserHasSet) {
  struct {
    const char *no_color, *term;
    ColourMode mode;
    bool on_screen, in_files;
  } const cases[] = {{"1", "xterm", ColourMode::automatic, false, false},
                     {"1", "xterm", ColourMode::always, true, true},
                     {"", "xterm", ColourMode::never, false, false},
                     {"", "dumb", ColourMode::automatic, false, false},
                     {"", "xterm", ColourMode::automatic, true, false}};  // empty means unset
  for (auto& c : cases) {
    ::setenv("NO_COLOR", c.no_color, 1);
    ::setenv("TERM", c.term, 1);
    set_colour_mode(c.mode);
    for (auto [fd, painting] : {std::pair{screen_, c.on_screen}, {file_, c.in_files}})
      EXPECT_EQ(painted(fd, Paint::title, "PID"), painting ? "\x1b[1mPID\x1b[0m" : "PID");
  }
}

}  // namespace
}  // namespace coretap
