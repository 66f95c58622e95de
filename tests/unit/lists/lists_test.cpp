// Output of bpflist and tplist for a /proc and type information that are made here.
#include "../made_btf.hpp"
#include "expect.hpp"
#include "lists/bpf_objects.hpp"
#include "lists/prototype.hpp"
#include "lists/tracepoints.hpp"

namespace coretap {
namespace {

class Holders : public testing::Test {
 protected:
  void process(const std::string& pid, const std::string& comm) {
    fs::create_directories(proc_ / pid / "fd");
    fs::create_directories(proc_ / pid / "fdinfo");
    std::ofstream(proc_ / pid / "comm") << comm << '\n';
  }
  void descriptor(const std::string& pid, const std::string& fd, const std::string& link,
                  const std::string& info) {
    fs::create_symlink(link, proc_ / pid / "fd" / fd);
    std::ofstream(proc_ / pid / "fdinfo" / fd) << "pos:\t0\nflags:\t02000002\n" << info;
  }
  ScratchDirectory directory_;
  const fs::path proc_ = directory_.path();
};

TEST_F(Holders, ByTheKindOfTheirDescriptors) {
  process("20", "second");
  descriptor("20", "3", "anon_inode:bpf-prog", "prog_type:\t26\nprog_id:\t7\nmemlock:\t4096\n");
  process("3", "first one");
  descriptor("3", "3", "anon_inode:bpf-map", "map_type:\t1\nmap_id:\t7\n");
  descriptor("3", "4", "anon_inode:bpf-map", "map_type:\t1\nmap_id:\t7\n");
  descriptor("3", "5", "anon_inode:bpf_link", "link_type:\ttracing\nlink_id:\t9\nprog_id:\t7\n");
  descriptor("3", "11", "anon_inode:[perf_event]", "");
  descriptor("3", "12", "/dev/null", "map_id:\t8\n");
  process("4", "without");
  descriptor("4", "0", "/dev/null", "");
  process("self", "no number");
  descriptor("self", "3", "anon_inode:bpf-map", "map_id:\t1\n");
  auto all = bpf_holders(proc_.string());
  EXPECT_EQ(all.unreadable, 0u);
  ASSERT_EQ(all.holders.size(), 2u);
  EXPECT_EQ(all.holders[0].pid, 3u);
  EXPECT_EQ(all.holders[0].comm, "first one");
  EXPECT_EQ(all.holders[0].objects, (std::set<BpfId>{{BpfKind::map, 7}, {BpfKind::link, 9}}))
      << "two descriptors of one map";
  EXPECT_EQ(all.holders[0].perf_events, std::vector<std::uint32_t>{11});
  EXPECT_EQ(all.holders[1].pid, 20u);
  EXPECT_EQ(all.holders[1].objects, (std::set<BpfId>{{BpfKind::prog, 7}}));
}

TEST_F(Holders, OfDamagedFilesAndNothing) {
  process("1", "");
  descriptor("1", "3", "anon_inode:bpf-map", "map_id:\tseven\n");
  descriptor("1", "4", "anon_inode:bpf-prog", "");
  EXPECT_TRUE(bpf_holders(proc_.string()).holders.empty());
  EXPECT_TRUE(bpf_holders("/nonexistent").holders.empty());
}

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
  struct {
    std::uint32_t type;
    const char *name, *text;
  } const cases[] = {{whole, "n", "int n"},
                     {whole, "", "int"},
                     {0, "", "void"},
                     {text, "name", "const char *name"},
                     {kept, "name", "const char *const name"},
                     {four, "all", "int all[4]"},
                     {of_pointers, "all", "const char *all[2]"},
                     {to_array, "all", "int (*all)[4]"},
                     {file, "f", "struct file *f"},
                     {unnamed, "u", "union {...} u"},
                     {callback, "run", "void (*run)(struct file *file, size_t)"},
                     {variadic, "print", "int print(const char *format, ...)"},
                     {999, "x", "? x"}};  // no such type
  for (auto& c : cases) EXPECT_EQ(declaration(btf, c.type, c.name), c.text);
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

constexpr std::string_view kFormat = R"(format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:int fd;	offset:8;	size:4;	signed:1;
	field:__data_loc char[] name;	offset:12;	size:4;	signed:0;

print fmt: "field:int x;"
)";

TEST(Wanted, ByPatternsOfTheShell) {
  const std::string name = "sched:sched_switch";
  // The name alone, too.
  for (auto* pattern :
       {"", "sched:sched_switch", "sched_switch", "sched:*", "*switc[gh]", "*d:sched_switc?"})
    EXPECT_TRUE(is_wanted(pattern, name)) << pattern;
  for (auto* pattern : {"sched", "x:sched_switch"})
    EXPECT_FALSE(is_wanted(pattern, name)) << pattern;
  EXPECT_TRUE(is_wanted("vfs_*", "vfs_read"));
  EXPECT_FALSE(is_wanted("[", "vfs_read")) << "no pattern at all";
}

TEST(Fields, AreThoseOfTheTracepointItself) {
  EXPECT_EQ(field_lines(kFormat, false), "    int fd;\n    __data_loc char[] name;\n");
  EXPECT_EQ(field_lines(kFormat, true),
            "    int fd;  offset 8, 4 bytes, signed\n"
            "    __data_loc char[] name;  offset 12, 4 bytes\n");
  EXPECT_EQ(field_lines("field:char \x1b[2J;", false), "    char \\x1b[2J;\n");
  JsonLine line;
  add_fields(line, kFormat);
  EXPECT_EQ(line.finish(),
            R"({"fields":[{"declaration":"int fd","offset_bytes":8,"size_bytes":4,"signed":true},)"
            R"({"declaration":"__data_loc char[] name","offset_bytes":12,"size_bytes":4,)"
            R"("signed":false}]})");
}

TEST(Usdt, ByLevel) {
  std::vector<symbols::UsdtProbe> places = {{"app", "start", "-4@%edi 8@%rsi", 0x1139, 0x4010},
                                            {"app", "start", "-4@$5 8@%rax", 0x1200, 0x4010}};
  EXPECT_EQ(usdt_lines("/bin/\x1b", places, 0), "/bin/\\x1b app:start\n");
  EXPECT_EQ(usdt_lines("/bin/a", places, 1),
            "/bin/a app:start [semaphore 0x4010]\n  2 location(s)\n  2 argument(s)\n");
  EXPECT_EQ(usdt_lines("/bin/a", places, 2),
            "/bin/a app:start [semaphore 0x4010]\n  2 location(s)\n  2 argument(s)\n"
            "  location #0 0x1139\n    arguments -4@%edi 8@%rsi\n"
            "  location #1 0x1200\n    arguments -4@$5 8@%rax\n");
  places = {{"app", "odd", "4@name(%rip)", 0x10, 0}};
  EXPECT_EQ(usdt_lines("a", places, 1),
            "a app:odd\n  1 location(s)\n  argument(s) in a form that is not known\n");
}

}  // namespace
}  // namespace coretap
