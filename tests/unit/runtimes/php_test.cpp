#include "runtimes/php.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "coretap/fd.hpp"
#include "made_memory.hpp"
#include "runtimes/code_names.hpp"
#include "runtimes/runtimes.hpp"

namespace coretap::runtimes {
namespace {

using namespace std::string_literals;

// lea rdx, executor_globals; a given name: mov rax, [rdx + 6b0]; test; je; ret; the running frame.
const std::string kStart = "\x48\x8d\x15\x49\x84\x29\x00"s,
                  kGiven = "\x48\x8b\x82\xb0\x06\x00\x00\x48\x85\xc0\x74\x05\xc3"s,
                  kCurrent = "\x48\x8b\x82\xe8\x01\x00\x00\x48\x85\xc0\x74\x24"s,
                  kLoop =
                      "\x48\x8b\x50\x18\x48\x85\xd2\x74\x05\x80\x3a\x01\x75\x0a"
                      "\x48\x8b\x40\x30\x48\x85\xc0\x75\xe9\xc3"s,
                  kFile = "\x48\x8b\x82\x98\x00\x00\x00\xc3"s;

TEST(Php, OffsetsAreInItsCode) {
  for (const auto& code : {kStart + kGiven + kCurrent + kLoop + kFile,  // 8.2
                           "\xf3\x0f\x1e\xfa"s + kStart + kGiven + kCurrent + kLoop + kFile,
                           kStart + kCurrent + kLoop + kFile}) {
    const auto found = php_layout_in(code);
    EXPECT_EQ(found.current, 0x1e8);
    EXPECT_EQ(found.file, 0x98);
  }
}

TEST(Php, OtherCodeHasNone) {
  auto changed = [](std::string of, std::size_t at, char to) {
    of[at] = to;
    return of;
  };
  for (const auto& code :
       {""s, kLoop, kCurrent + kLoop, kCurrent + kFile, kStart + kFile + kLoop,
        kCurrent + kLoop + changed(kFile, 3, '\x99'), kCurrent + kLoop + changed(kFile, 4, '\x01'),
        changed(kCurrent, 4, '\x11') + kLoop + kFile, changed(kCurrent, 3, '\xe9') + kLoop + kFile,
        std::string(512, '\x48')})
    EXPECT_EQ(php_layout_in(code).current, 0);
}

TEST(Php, ProgramsWithoutIt) {
  Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(php_in(fd.get(), 0));
}

TEST(Php, NamesOfFunctions) {
  CodeNames names;
  auto sent = [&, number = 0ULL](std::string_view name, std::string of, std::string_view file,
                                 std::uint32_t line) mutable {
    if (!of.empty()) of.resize(PHP_CLASS_NAME);
    const auto n = ++number << RUNTIME_KIND_BITS | RUNTIME_PHP;
    send(names, {n, std::string(name), std::string(file), of, line, 0});
    return word(n, 0);
  };
  const auto method = sent("run", "App\\Job", "/srv/job.php", 7),
             main = sent("", "", "/srv/index.php", 1), internal = sent("usleep", "", "", 0);
  auto frame = names.find(method | 12);
  EXPECT_EQ(frame.function, "App\\Job::run");
  EXPECT_EQ(frame.file, "/srv/job.php");
  EXPECT_EQ(frame.line, 12u);
  EXPECT_EQ(names.find(method).line, 7u);
  EXPECT_EQ(names.find(main | 3).function, "<main>");
  EXPECT_EQ(names.find(main | 3).line, 3u);
  EXPECT_EQ(names.find(internal).function, "usleep");
  EXPECT_EQ(names.find(internal).file, "");
  EXPECT_EQ(
      names.find(STACK_RUNTIME | RUNTIME_PHP << RUNTIME_MARK_BITS | RUNTIME_MARK_VERSION).function,
      "[php: unknown version]");
  EXPECT_EQ(kind_of(method), RUNTIME_PHP);
  EXPECT_TRUE(has_loop(RUNTIME_PHP));
}

}  // namespace
}  // namespace coretap::runtimes
