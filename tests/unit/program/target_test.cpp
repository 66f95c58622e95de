// Arguments that name targets, and the kernel's lists of functions.
#include "program/target.hpp"

#include "expect.hpp"
#include "program/kernel_functions.hpp"
#include "program/targets.hpp"

namespace coretap {
namespace {

TargetWord parsed(std::string_view word) {
  auto t = parse_target(word);
  EXPECT_TRUE(t) << word << ": " << t.error().what;
  return t ? *t : TargetWord{};
}

/// "r:c:malloc: function at return, library c, name malloc" and so on: all parts of an argument.
std::string said(std::string_view word) {
  auto t = parsed(word);
  const char* kinds[] = {"function", "tracepoint", "usdt"};
  std::string text = kinds[t.kind];
  if (t.at_return) text += " return";
  for (auto& part : {t.place, t.provider, t.name}) text += " '" + std::string(part) + "'";
  return text;
}

TEST(TargetWords, AreAsBccSpellsThem) {
  for (auto [word, wanted] :
       {std::pair{"vfs_*", "function '' '' 'vfs_*'"},
        {"p::vfs_*", "function '' '' 'vfs_*'"},
        {"p::vfs_read", "function '' '' 'vfs_read'"},
        {"r::vfs_read", "function return '' '' 'vfs_read'"},
        {"::vfs_read", "function '' '' 'vfs_read'"},
        {"ext4:ext4_*", "function 'ext4' '' 'ext4_*'"},
        {"c:malloc", "function 'c' '' 'malloc'"},
        {"p:/usr/bin/bash:readline", "function '/usr/bin/bash' '' 'readline'"},
        {"r:c:malloc", "function return 'c' '' 'malloc'"},
        {"t:sched:*", "tracepoint 'sched' '' '*'"},
        {"u:/usr/bin/node:http*", "usdt '/usr/bin/node' '' 'http*'"},
        {"u:pthread:libc:mutex", "usdt 'pthread' 'libc' 'mutex'"},
        {"u::probe", "usdt '' '' 'probe'"},
        {"c:[[:alpha:]]+$", "function 'c' '' '[[:alpha:]]+$'"},
        // C++ names contain colons.
        {"/bin/app:ns::Class::run", "function '/bin/app' '' 'ns::Class::run'"},
        {"r:app:ns::run", "function return 'app' '' 'ns::run'"}})
    EXPECT_EQ(said(word), wanted) << word;
}

TEST(TargetWords, PlacesWithinFunctions) {
  auto place = [](const char* word, bool regular_expression = false) {
    auto t = parse_target(word, regular_expression);
    return t ? *t : TargetWord{.name = "refused"};
  };
  EXPECT_EQ(place("vfs_read+0x1c").within, 0x1cU);
  EXPECT_EQ(place("vfs_read+0x1c").name, "vfs_read");
  EXPECT_EQ(place("c:malloc+12").within, 12U);
  EXPECT_EQ(place("c:malloc+0").within, 0U) << "that is the entry";
  EXPECT_FALSE(place("c:malloc+0").is_place());
  EXPECT_EQ(place("p:/bin/sh:0x1139").address, 0x1139U);
  EXPECT_EQ(place("app:app::operator+").name, "app::operator+");
  EXPECT_EQ(place("app:operator+").within, 0U);
  EXPECT_EQ(place("c:a+1", true).name, "a+1") << "a regular expression";
  EXPECT_EQ(place("t:sched:x+1").name, "x+1");
  for (auto* bad : {"r::vfs_read+4", "vfs_*+4", "c:0x", "c:0x11g", "r:c:0x1139"})
    EXPECT_EQ(parse_target(bad) ? 0 : parse_target(bad).error().status, kUsage) << bad;
}

TEST(TargetWords, SayWhatIsMissing) {
  for (auto* bad : {"", "t:sched", "u:probe", "p:vfs_read", "c:", "t::x", ":vfs_read", "t:"}) {
    auto t = parse_target(bad);
    ASSERT_FALSE(t) << bad;
    EXPECT_EQ(t.error().status, kUsage);
    EXPECT_FALSE(t.error().why.empty());
  }
  EXPECT_TRUE(says(parse_target("r:vfs_read").error().hint, "r:PROGRAM:vfs_read"));
  EXPECT_TRUE(says(parse_target(":vfs_read").error().hint,
                   "PROGRAM:vfs_read is a function of a program, p::vfs_read"));
  EXPECT_FALSE(parse_target(std::string(5000, 'x')));
}

TEST(NamePatterns, Wildcards) {
  const auto many = std::string(64, 'a');
  for (auto [pattern, name] :
       std::initializer_list<std::pair<const char*, std::string>>{{"", ""},
                                                                  {"*", ""},
                                                                  {"vfs_*", "vfs_"},
                                                                  {"a*b*c", "a-b-b-c"},
                                                                  {"**", "anything"},
                                                                  {"*a*a*a*a*a*a*b", many + "b"}})
    EXPECT_TRUE(matches_wildcard(pattern, name)) << pattern;
  for (auto [pattern, name] :
       std::initializer_list<std::pair<const char*, std::string>>{{"", "a"},
                                                                  {"vfs_*", "xvfs_a"},
                                                                  {"vfs_", "vfs_a"},
                                                                  {"a*b*c", "a-c-b"},
                                                                  {"*a*a*a*a*a*a*b", many}})
    EXPECT_FALSE(matches_wildcard(pattern, name)) << pattern;
}

TEST(NamePatterns, RegularExpressions) {
  auto p = NamePattern::make("tcp_(send|recv)msg", true);
  ASSERT_TRUE(p);
  EXPECT_TRUE(p->matches("tcp_sendmsg"));
  EXPECT_TRUE(p->matches("tcp_recvmsg_locked")) << "as bcc: from the start of the name on";
  EXPECT_FALSE(p->matches("mptcp_sendmsg"));
  EXPECT_FALSE(p->exact());
  EXPECT_FALSE(NamePattern::make("(", true));
  EXPECT_TRUE(NamePattern::make("vfs_read", false)->exact());
}

struct Files {
  ScratchDirectory scratch;
  FunctionLists lists;
  explicit Files(bool addresses) {
    lists.kallsyms = scratch.write("kallsyms",
                                   "ffffffff81000000 T __x64_call\n"
                                   "ffffffff81000000 T vfs_read\n"
                                   "ffffffff81000100 t vfs_inline\n"
                                   "ffffffff81000200 t __pfx_vfs_read\n"
                                   "ffffffff81000300 t vfs_read.cold\n"
                                   "ffffffff81000400 T vfs_probe\n"
                                   "ffffffff81000500 t same\n"
                                   "ffffffff81000600 t same\n"
                                   "ffffffff81000700 d vfs_data\n"
                                   "ffffffff81000000 T ksys_read_alias\n"
                                   "ffffffffc0000000 t vfs_in_module\t[ext4]\n"
                                   "ffffffffc0000100 t bpf_prog_1\t[bpf]\n"
                                   "damaged\n");
    lists.names = scratch.write("names",
                                "vfs_read\nvfs_probe\nsame\nsame\nksys_read_alias\n"
                                "vfs_in_module [ext4]\n");
    if (addresses)
      lists.addresses = scratch.write("addresses",
                                      "ffffffff81000004 vfs_read\nffffffff81000400 vfs_probe\n"
                                      "ffffffff81000504 same\n"
                                      "ffffffffc0000004 vfs_in_module [ext4]\n");
    lists.blacklist =
        scratch.write("blacklist", "0xffffffff81000400-0xffffffff81000410\tvfs_probe\n");
  }
};

KernelFunctions matching(const FunctionLists& lists, const char* pattern,
                         std::string_view module = {}) {
  return kernel_functions(lists, module,
                          [&](const char* name) { return matches_wildcard(pattern, name); });
}

TEST(KernelFunctions, AreThoseThatCanBeTraced) {
  for (bool addresses : {false, true}) {
    SCOPED_TRACE(addresses);
    Files files(addresses);
    auto found = matching(files.lists, "*vfs_*");
    EXPECT_EQ(found.functions,
              (std::vector<KernelFunction>{{"vfs_in_module", "ext4", 0xffffffffc0000000},
                                           {"vfs_read", "", 0xffffffff81000000}}));
    EXPECT_EQ(found.left_out["padding or a cold part of a function"], 2u);
    EXPECT_EQ(found.left_out["on the kernel's list of what must not be probed"], 1u);
    EXPECT_EQ(found.left_out["notrace, or not built for tracing"], 1u);
    EXPECT_EQ(matching(files.lists, "*", "ext4").functions.size(), 1u);
    // Of two with the same name only the address shows which one ftrace can trace.
    EXPECT_EQ(matching(files.lists, "same").functions.size(), addresses ? 1u : 2u);
    auto aliases = matching(files.lists, "*read*");
    EXPECT_EQ(aliases.functions.size(), 1u);
    EXPECT_EQ(aliases.left_out["another name of one that is traced"], 1u);
    EXPECT_EQ(matching(files.lists, "__x64_call").functions.size(), 1u)
        << "the list has one name of each function";
  }
}

TEST(KernelFunctions, WithoutLists) {
  Files files(false);
  files.lists.names.clear();
  files.lists.blacklist.clear();
  EXPECT_EQ(matching(files.lists, "vfs_inline").functions.size(), 1u) << "the kernel decides";
  files.lists.kallsyms = "/nonexistent";
  EXPECT_TRUE(matching(files.lists, "*").functions.empty());
}

TEST(KernelFunctions, Names) {
  Files files(false);
  EXPECT_EQ(function_names(files.lists),
            (Words{"__x64_call", "vfs_read", "vfs_inline", "vfs_probe", "same", "same",
                   "ksys_read_alias", "vfs_in_module"}));
}

TEST(TargetKinds, SectionsAreTold) {
  EXPECT_EQ(kind_of("target/kernel"), TargetPoint::kernel);
  EXPECT_EQ(kind_of("target/user.return"), TargetPoint::user_return);
  EXPECT_EQ(kind_of("tp_btf/sys_exit"), TargetPoint::call_end);
  EXPECT_FALSE(kind_of("uprobe/libc:malloc"));
}

}  // namespace
}  // namespace coretap
