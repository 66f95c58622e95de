// The kernel objects in the executable: complete, and small.
#include "coretap/tool.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::size_t kMostBytes = 40 << 10;     // of one object, compressed
constexpr std::size_t kMostMeanBytes = 8 << 10;  // average over all; scripts/budget.py uses it

TEST(KernelObject, AreWhole) {
  for (auto& entry : registry()) {
    auto object = build(entry).object;
    if (object.compressed.empty()) continue;
    EXPECT_TRUE(object.bytes().starts_with("\177ELF")) << entry.name;
    EXPECT_LT(object.compressed.size(), object.bytes().size()) << entry.name;
  }
}

TEST(KernelObject, AreSmall) {
  std::size_t all = 0, objects = 0;
  for (auto& entry : registry()) {
    auto size = build(entry).object.compressed.size();
    EXPECT_LE(size, kMostBytes) << entry.name
                                << ": does it touch types with members that no program uses?";
    all += size;
    objects += size > 0;
  }
  ASSERT_GT(objects, 0u);
  EXPECT_LE(all / objects, kMostMeanBytes);
}

TEST(KernelObject, DamagedGivesNothing) {
  auto object = build(registry().front()).object;
  std::string good(object.compressed);
  const auto model = object.model;
  ASSERT_FALSE(model.empty());
  ASSERT_FALSE((KernelObject{good, model}.bytes().empty()));
  EXPECT_TRUE(KernelObject{}.bytes().empty());
  for (std::size_t length : {std::size_t{1}, std::size_t{8}, good.size() / 2, good.size() - 1})
    EXPECT_TRUE((KernelObject{std::string_view(good).substr(0, length), model}.bytes().empty()))
        << length;
  auto other = good;
  other[0] = static_cast<char>(~other[0]);
  EXPECT_TRUE((KernelObject{other, model}.bytes().empty()));
}

}  // namespace
}  // namespace coretap
