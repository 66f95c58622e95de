// C's words for types, from type information that is made here.
#include "lists/prototype.hpp"
#include "../made_btf.hpp"
#include "expect.hpp"

namespace coretap {
TEST(Declaration, AsCWritesIt) {
  Made made;
  auto whole = made.add("int", BTF_KIND_INT, 0, 4, {32});
  auto letter = made.add("char", BTF_KIND_INT, 0, 1, {8});
  auto fixed = made.add("", BTF_KIND_CONST, 0, letter);
  auto text = made.add("", BTF_KIND_PTR, 0, fixed);
  auto kept = made.add("", BTF_KIND_CONST, 0, text);
  auto four = made.add("", BTF_KIND_ARRAY, 0, 0, {whole, whole, 4});
  auto of_pointers = made.add("", BTF_KIND_ARRAY, 0, 0, {text, whole, 2});
  auto to_array = made.add("", BTF_KIND_PTR, 0, four);
  auto record = made.add("file", BTF_KIND_STRUCT, 0, 8);
  auto file = made.add("", BTF_KIND_PTR, 0, record);
  auto unnamed = made.add("", BTF_KIND_UNION, 0, 8);
  auto size = made.add("size_t", BTF_KIND_TYPEDEF, 0, whole);
  auto call = made.add("", BTF_KIND_FUNC_PROTO, 2, 0, {made.text("file"), file, 0, size});
  auto callback = made.add("", BTF_KIND_PTR, 0, call);
  auto variadic = made.add("", BTF_KIND_FUNC_PROTO, 2, whole, {made.text("format"), text, 0, 0});
  auto& btf = made.open();
  EXPECT_EQ(declaration(btf, whole, "n"), "int n");
  EXPECT_EQ(declaration(btf, whole, ""), "int");
  EXPECT_EQ(declaration(btf, 0, ""), "void");
  EXPECT_EQ(declaration(btf, text, "name"), "const char *name");
  EXPECT_EQ(declaration(btf, kept, "name"), "const char *const name");
  EXPECT_EQ(declaration(btf, four, "all"), "int all[4]");
  EXPECT_EQ(declaration(btf, of_pointers, "all"), "const char *all[2]");
  EXPECT_EQ(declaration(btf, to_array, "all"), "int (*all)[4]");
  EXPECT_EQ(declaration(btf, file, "f"), "struct file *f");
  EXPECT_EQ(declaration(btf, unnamed, "u"), "union {...} u");
  EXPECT_EQ(declaration(btf, callback, "run"), "void (*run)(struct file *file, size_t)");
  EXPECT_EQ(declaration(btf, variadic, "print"), "int print(const char *format, ...)");
  EXPECT_EQ(declaration(btf, 999, "x"), "? x") << "no such type";
}

TEST(Declaration, OfTypesWithoutAnEnd) {
  Made made;
  made.add("", BTF_KIND_PTR, 0, 2);
  made.add("", BTF_KIND_PTR, 0, 1);
  auto text = declaration(made.open(), 1, "x");
  EXPECT_TRUE(text.starts_with("? ")) << text;
  EXPECT_LT(text.size(), 100u);
  Made constants;
  constants.add("", BTF_KIND_CONST, 0, 1);
  EXPECT_LT(declaration(constants.open(), 1, "x").size(), 500u);
}

TEST(Prototypes, OfFunctionsAndTracepoints) {
  Made made;
  auto whole = made.add("int", BTF_KIND_INT, 0, 4, {32});
  auto data = made.add("", BTF_KIND_PTR, 0, 0);
  auto sum =
      made.add("", BTF_KIND_FUNC_PROTO, 2, whole, {made.text("a"), whole, made.text("b"), whole});
  made.add("sum", BTF_KIND_FUNC, 0, sum);
  auto bare = made.add("", BTF_KIND_FUNC_PROTO, 2, 0, {0, data, 0, whole});
  auto pointer = made.add("", BTF_KIND_PTR, 0, bare);
  made.add("btf_trace_plain", BTF_KIND_TYPEDEF, 0, pointer);
  made.add("btf_trace_named", BTF_KIND_TYPEDEF, 0, pointer);
  auto named =
      made.add("", BTF_KIND_FUNC_PROTO, 2, 0, {made.text("__data"), data, made.text("cpu"), whole});
  made.add("__probestub_named", BTF_KIND_FUNC, 0, named);
  Prototypes prototypes(made.open());
  EXPECT_EQ(prototypes.function("sum"), "int sum(int a, int b)");
  EXPECT_EQ(prototypes.function("none"), "");
  EXPECT_EQ(prototypes.tracepoint("plain"), "plain(int)");
  EXPECT_EQ(prototypes.tracepoint("named"), "named(int cpu)");
  EXPECT_EQ(prototypes.tracepoint("none"), "");
  EXPECT_EQ(prototypes.tracepoints().size(), 2u);
}

TEST(Prototypes, OfModules) {
  Made kernel;
  auto whole = kernel.add("int", BTF_KIND_INT, 0, 4, {32});
  auto common = kernel.add("", BTF_KIND_FUNC_PROTO, 1, whole, {kernel.text("a"), whole});
  kernel.add("common", BTF_KIND_FUNC, 0, common);
  Made module(kernel);
  auto own = module.add("own", BTF_KIND_STRUCT, 1, 4, {module.text("member"), whole, 0});
  auto pointer = module.add("", BTF_KIND_PTR, 0, own);
  auto call = module.add("", BTF_KIND_FUNC_PROTO, 1, whole, {module.text("it"), pointer});
  module.add("call", BTF_KIND_FUNC, 0, call);
  Prototypes prototypes(module.open());
  EXPECT_EQ(prototypes.function("call"), "int call(struct own *it)");
  EXPECT_EQ(prototypes.function("common"), "") << "that is the kernel's";
}

}  // namespace coretap
