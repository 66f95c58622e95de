// Type information of modules, whose ids and texts continue those of the kernel.
#include "kernel/btf.hpp"

#include "../made_btf.hpp"
#include "expect.hpp"
#include "expression/types.hpp"

namespace coretap {
TEST(BtfOfModules, OwnTypesFollowThoseOfTheKernel) {
  Made kernel;
  auto whole = kernel.add("int", BTF_KIND_INT, 0, 4, {1U << 24 | 32});
  auto known = kernel.add("known", BTF_KIND_STRUCT, 1, 4, {kernel.text("first"), whole, 0});
  kernel.add("twice", BTF_KIND_STRUCT, 0, 4);
  kernel.add("choice", BTF_KIND_ENUM, 2, 4, {kernel.text("LEFT"), 1, kernel.text("RIGHT"), 2});
  Made module(kernel);
  auto own = module.add("own", BTF_KIND_STRUCT, 2, 8,
                        {module.text("inner"), known, 0, module.text("last"), whole, 32});
  auto twice = module.add("twice", BTF_KIND_STRUCT, 0, 16);
  module.add("own_choice", BTF_KIND_ENUM, 2, 4, {module.text("LEFT"), 7, module.text("UP"), 8});
  auto pointer = module.add("", BTF_KIND_PTR, 0, own);
  auto call = module.add("", BTF_KIND_FUNC_PROTO, 1, whole, {module.text("it"), pointer});
  module.add("call", BTF_KIND_FUNC, 0, call);

  auto& btf = module.open();
  EXPECT_EQ(btf.first(), own);
  // The module's own types come first.
  const std::vector<std::uint32_t> ids{twice, 0, known, own, 0};
  EXPECT_EQ(btf.find({"twice", "none", "known", "own", "choice"}, BTF_KIND_STRUCT), ids);
  EXPECT_EQ(btf.find("twice", BTF_KIND_STRUCT), twice);
  EXPECT_EQ(btf.find("none", BTF_KIND_STRUCT), 0U);
  EXPECT_EQ(btf.type(btf.count()), nullptr);
  EXPECT_EQ(btf.type(0), nullptr);
  EXPECT_EQ(btf.name(btf.type(known)->name_off), "known");
  EXPECT_TRUE(btf.has_member(btf.type(own), "inner"));
  EXPECT_TRUE(btf.has_member(btf.type(known), "first"));

  const expression::Types types(&btf);
  auto prototype = types.function("call");
  ASSERT_TRUE(prototype);
  ASSERT_EQ(prototype->parameters.size(), 1U);
  auto record = prototype->parameters[0].type->to;
  EXPECT_EQ(record->name, "struct own");
  auto last = record->members->find("last");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->bit, 32U);
  auto inner = record->members->find("inner");
  ASSERT_TRUE(inner);
  EXPECT_TRUE(inner->type->members->find("first"));
  EXPECT_EQ(types.enumerator("LEFT"), 7) << "the module's own comes first";
  EXPECT_EQ(types.enumerator("RIGHT"), 2);
  EXPECT_EQ(types.enumerator("UP"), 8);
  EXPECT_EQ(types.enumerator("DOWN"), std::nullopt);
}

TEST(BtfOfModules, NothingOfItsOwn) {
  Made kernel;
  auto whole = kernel.add("int", BTF_KIND_INT, 0, 4, {32});
  Made module(kernel);
  auto& btf = module.open();
  EXPECT_EQ(btf.count(), whole + 1);
  EXPECT_EQ(btf.find("int", BTF_KIND_INT), whole);
  EXPECT_EQ(btf.find("long", BTF_KIND_INT), 0U);
}

}  // namespace coretap
