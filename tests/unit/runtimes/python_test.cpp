#include "runtimes/python.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "coretap/fd.hpp"
#include "expect.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {
namespace {

/// The machine's python3 or its library; empty: none.
std::string python_file() {
  std::error_code error;
  auto program = std::filesystem::canonical("/usr/bin/python3", error).string();
  for (auto& path : {program, "/usr/lib/x86_64-linux-gnu/lib" +
                                  std::filesystem::path(program).filename().string() + ".so.1.0"}) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    constexpr std::array<std::string_view, 1> kName = {"_PyRuntime"};
    if (fd && symbols::find_exported(fd.get(), kName)[0].address) return path;
  }
  return {};
}

TEST(Python, AProgramWithoutItHasNone) {
  Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(python_in(fd.get(), 0));
  Fd text(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(python_in(text.get(), 0));
}

TEST(Python, TheMachinesOwnIsKnown) {
  const auto path = python_file();
  if (path.empty()) GTEST_SKIP() << "no python3 here";
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto file = python_in(fd.get(), 0x1000);
  ASSERT_TRUE(file);
  EXPECT_NE(file->python.frames, PYTHON_NOT_KNOWN);
  constexpr std::array<std::string_view, 1> kName = {"PyCode_Type"};
  EXPECT_EQ(file->other, symbols::find_exported(fd.get(), kName)[0].address - 0x1000);
}

/// A copy of the machine's python3 that says it is of another version.
TEST(Python, AVersionThatIsNotKnownIsMarked) {
  const auto path = python_file();
  if (path.empty()) GTEST_SKIP() << "no python3 here";
  const ScratchDirectory scratch;
  const auto copy = scratch.in("python");
  std::filesystem::copy_file(path, copy);
  Fd changed(::open(copy.c_str(), O_RDWR | O_CLOEXEC));
  constexpr std::array<std::string_view, 2> kNames = {"Py_Version", "_PyRuntime"};
  const auto found = symbols::find_exported(changed.get(), kNames);
  ASSERT_TRUE(found[0].offset) << "older than 3.11";
  for (std::uint64_t version : {0x03080000ULL, 0x03fe0000ULL, 0x04000000ULL, ~0ULL}) {
    ASSERT_EQ(
        ::pwrite(changed.get(), &version, sizeof version, static_cast<off_t>(*found[0].offset)), 8);
    const auto file = python_in(changed.get(), 0);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->python.frames, PYTHON_NOT_KNOWN) << std::hex << version;
  }
  // A version that has a table of offsets, but not in this file.
  std::uint64_t version = 0x030d00f0;
  std::array<char, 1024> none{};
  ASSERT_EQ(::pwrite(changed.get(), &version, sizeof version, static_cast<off_t>(*found[0].offset)),
            8);
  ASSERT_TRUE(found[1].offset);
  ASSERT_EQ(::pwrite(changed.get(), none.data(), none.size(), static_cast<off_t>(*found[1].offset)),
            1024);
  EXPECT_EQ(python_in(changed.get(), 0)->python.frames, PYTHON_NOT_KNOWN);
}

}  // namespace
}  // namespace coretap::runtimes
