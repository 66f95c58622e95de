// Kept inputs of the fuzzers, in every build: seeds, findings, and what other tests read.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

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

INSTANTIATE_TEST_SUITE_P(All, Fuzzers, testing::ValuesIn(fuzzers()),
                         [](auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coretap::fuzz
