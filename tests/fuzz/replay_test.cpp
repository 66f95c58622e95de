// Stored inputs of the fuzzers, in every build: seeds, findings, and data of other tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include "fuzz.hpp"
#include "places.hpp"

namespace coretap::fuzz {
namespace {

namespace fs = std::filesystem;

/// tests/fuzz/seeds/NAME/*, tests/fuzz/findings/NAME/*, and tests/unit/data/**/NAME*.
std::vector<fs::path> kept_inputs(std::string_view name) {
  std::vector<fs::path> all;
  for (auto* kind : {"seeds", "findings"}) {
    const auto directory = fs::path(places::source_dir()) / "tests/fuzz" / kind / name;
    if (!fs::exists(directory)) continue;
    for (auto& entry : fs::directory_iterator(directory)) all.push_back(entry.path());
  }
  for (auto& entry : fs::recursive_directory_iterator(places::test_data()))
    if (entry.is_regular_file() && entry.path().filename().string().starts_with(name))
      all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

class Fuzzers : public testing::TestWithParam<Fuzzer> {};

TEST_P(Fuzzers, HoldOnKeptInputs) {
  const auto inputs = kept_inputs(GetParam().name);
  EXPECT_FALSE(inputs.empty());
  EXPECT_NO_THROW(GetParam().run({}));
  for (auto& path : inputs) {
    SCOPED_TRACE(path.string());
    EXPECT_NO_THROW(GetParam().run(places::file_text(path)));
  }
}

/// Truncated, or with some bytes replaced, mostly near the ends.
std::string damaged(std::string bytes, std::mt19937& random) {
  if (bytes.empty() || random() % 4 == 0) return bytes.substr(0, random() % (bytes.size() + 1));
  for (auto changes = 1 + random() % 16; changes > 0; changes--) {
    const auto near = std::min<std::size_t>(bytes.size(), random() % 2 ? 1024 : bytes.size());
    const auto at = random() % near;
    auto& byte = bytes[random() % 2 ? at : bytes.size() - 1 - at];
    const char values[] = {static_cast<char>(byte ^ (1 << random() % 8)),
                           static_cast<char>(random()), '\0', '\xff'};
    byte = values[random() % std::size(values)];
  }
  return bytes;
}

/// As many inputs as time allows, the same ones in each run; a failure prints the number.
TEST_P(Fuzzers, HoldOnDamagedOnes) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  std::vector<std::string> inputs;
  for (auto& path : kept_inputs(GetParam().name)) inputs.push_back(places::file_text(path));
  std::mt19937 random(20240511);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (std::size_t i = 0; i < inputs.size() || std::chrono::steady_clock::now() < end; i++) {
    const auto bytes = damaged(inputs[i % inputs.size()], random);
    // A copy of the exact size, so that sanitizers detect reads beyond it.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    ASSERT_NO_THROW(GetParam().run({exact.data(), exact.size()})) << "number " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fuzzers, testing::ValuesIn(fuzzers()),
                         [](auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coretap::fuzz
