#include "kernel/min_core_btf.hpp"

#include <bpf/btf.h>

#include "coretap/tool.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

using Types = std::unique_ptr<btf, decltype(&btf__free)>;

std::string object_of(std::string_view tool) { return build(*find_tool(tool)).object.bytes(); }

/// The trimmed types against libbpf's own reading of this kernel.
class Trim : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel.open()) GTEST_SKIP() << "no readable /sys/kernel/btf/vmlinux";
    all.reset(btf__parse("/sys/kernel/btf/vmlinux", nullptr));
    ASSERT_TRUE(all);
  }

  Types trimmed(std::string_view tool) {
    auto object = object_of(tool);
    auto bytes = trimmed_types(kernel, object.data(), object.size());
    return {btf__new(bytes.data(), static_cast<__u32>(bytes.size())), btf__free};
  }

  Btf kernel;
  Types all{nullptr, btf__free};
};

/// Members of a struct, including unnamed ones: "offset in bits, bits of a bit field, size".
void layout(const btf* types, int id, __u32 base, WordSet& lines) {
  auto* type = btf__type_by_id(types, static_cast<__u32>(id));
  auto* members = btf_members(type);
  for (__u16 i = 0; i < btf_vlen(type); i++) {
    std::string name = btf__name_by_offset(types, members[i].name_off);
    auto at = base + btf_member_bit_offset(type, i);
    auto inner = btf__resolve_type(types, members[i].type);
    if (name.empty() && inner > 0 &&
        btf_is_composite(btf__type_by_id(types, static_cast<__u32>(inner))))
      layout(types, inner, at, lines);
    else
      lines.insert(name + " " + std::to_string(at) + " " +
                   std::to_string(btf_member_bitfield_size(type, i)) + " " +
                   std::to_string(btf__resolve_size(types, members[i].type)));
  }
}

TEST_F(Trim, AllStructsOfAllToolsAreLaidOutAsInTheKernel) {
  for (auto& tool : registry()) {
    if (build(tool).object.compressed.empty()) continue;
    auto few = trimmed(tool.name);
    ASSERT_TRUE(few) << tool.name;
    EXPECT_LT(btf__type_cnt(few.get()) * 10, btf__type_cnt(all.get())) << tool.name;
    unsigned compared = 0;
    for (__u32 id = 1; id < btf__type_cnt(few.get()); id++) {
      auto* type = btf__type_by_id(few.get(), id);
      std::string name = btf__name_by_offset(few.get(), type->name_off);
      if (!btf_is_composite(type) || name.empty()) continue;
      // A name may have several types; one of them is this one.
      WordSet expected, have;
      layout(few.get(), static_cast<int>(id), 0, have);
      bool found = false;
      for (__u32 other = 1; other < btf__type_cnt(all.get()) && !found; other++) {
        auto* candidate = btf__type_by_id(all.get(), other);
        if (btf_kind(candidate) != btf_kind(type) || candidate->size != type->size ||
            name != btf__name_by_offset(all.get(), candidate->name_off))
          continue;
        expected.clear();
        layout(all.get(), static_cast<int>(other), 0, expected);
        found = expected == have;
      }
      EXPECT_TRUE(found) << tool.name << ": " << name;
      if (++compared == 40) break;  // each is searched among all
    }
    EXPECT_GT(compared, 3u) << tool.name;
  }
}

TEST_F(Trim, WhatIsAskedIsThereAndWhatIsNotIsNot) {
  auto few = trimmed("offcputime");
  ASSERT_TRUE(few);
  EXPECT_GT(btf__find_by_name_kind(few.get(), "task_struct", BTF_KIND_STRUCT), 0);
  EXPECT_LT(btf__find_by_name_kind(few.get(), "ext4_inode_info", BTF_KIND_STRUCT), 0);
  EXPECT_LT(btf__find_by_name_kind(few.get(), "vfs_read", BTF_KIND_FUNC), 0);
}

TEST_F(Trim, EnumeratorsKeepTheirValues) {
  for (auto& tool : registry()) {
    if (build(tool).object.compressed.empty()) continue;
    auto few = trimmed(tool.name);
    ASSERT_TRUE(few);
    for (__u32 id = 1; id < btf__type_cnt(few.get()); id++) {
      auto* type = btf__type_by_id(few.get(), id);
      auto* name = btf__name_by_offset(few.get(), type->name_off);
      if (!btf_is_enum(type) || !*name) continue;
      auto same = kernel.enumerators(kernel.type(kernel.find(name, BTF_KIND_ENUM)));
      ASSERT_EQ(same.size(), btf_vlen(type)) << name;
      for (__u16 i = 0; i < btf_vlen(type); i++)
        EXPECT_EQ(btf__name_by_offset(few.get(), btf_enum(type)[i].name_off), same[i].first);
    }
  }
}

TEST_F(Trim, DamagedObjectsAreRefused) {
  EXPECT_EQ(trimmed_types(kernel, nullptr, 0), "");
  EXPECT_EQ(trimmed_types(kernel, "ELF", 3), "");
}

TEST(TrimWithoutKernel, NothingComesOfNothing) {
  auto object = object_of("biolatency");
  EXPECT_EQ(trimmed_types(Btf(), object.data(), object.size()), "");
}

}  // namespace
}  // namespace coretap
