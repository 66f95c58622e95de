// Functions and types from debug information, against the compiled program itself: it prints
// offsetof and sizeof, and its registers are read at the start of a function.
#include "expression/dwarf.hpp"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "expect.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/test_files.hpp"

namespace coretap::expression {
namespace {

using symbols::test::open_file;

constexpr const char* kNoDebugRoot = "/nonexistent";

/// With "facts" it prints members: name, first bit, bits of a bit field, bytes. Otherwise it calls.
constexpr std::string_view kC = R"(
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#ifdef __clang__
#define EXACT __attribute__((noinline, optnone))
#else
#define EXACT __attribute__((noipa))
#endif
#define LOCAL __attribute__((noinline)) static
enum state { IDLE = 1, BUSY = 7, BELOW = -3, MANY = 200, MORE = 40000, MOST = 0x7fffffff };
enum unsigned_state { TOP = 0xf0000000u };
typedef unsigned long word;
typedef word word2;
typedef const volatile word2 chain;
struct request;
typedef int (*callback)(struct request *, int);
struct point { int x, y; };
typedef struct { short lone; char pad; } nameless;
struct __attribute__((packed)) packed { char first; unsigned six : 6, over : 29; unsigned long most : 40; };
struct request {
  const char *path;
  struct point at;
  unsigned flags : 3, kind : 5;
  int level : 4;
  unsigned long long far : 40;
  _Bool on : 1;
  enum state state;
  struct request *next;
  union {
    long number;
    char text[16];
    struct { char in; struct { short innermost; }; };
  };
  short sizes[2][3];
  double weight;
  signed char small;
  callback call;
  int (*plain)(int);
  nameless named;
  chain value;
  struct point *points[4];
  struct hidden *hidden;
  __int128 big;
  char tail[];
};
typedef struct request request_t;
struct large { long values[4]; };
volatile long sink;
extern int cold_path(int, const char *);

EXACT long plain(request_t *r, double ratio, const int count, char letter) {
  return r->state + (long)ratio + count + letter;
}
EXACT int by_value(int before, struct point p, int after) { return before + p.x + after; }
EXACT struct large large_result(int seed) { struct large l = {{seed}}; return l; }
EXACT int many(int a, long b, short c, unsigned char d, word e, int f, int seventh, int eighth) {
  return a + b + c + d + e + f + seventh + eighth;
}
EXACT long wide(__int128 huge, int behind) { return (long)huge + behind; }
EXACT int floats(float f, int one, long double l, int two, double d, int three) {
  return f + one + l + two + d + three;
}
EXACT enum state result_of_enum(_Bool yes, callback call) { return yes && call ? BUSY : IDLE; }
EXACT void nothing(void) { sink++; }
LOCAL int changed(struct point *q, int unused, int factor) { return q->x * factor + rand(); }
LOCAL int dropped(int unused, int used) { return used * 3 + rand(); }
__attribute__((noinline)) int in_parts(int number, const char *text) {
  if (__builtin_expect(number == 77, 0)) { puts(text); puts(text); abort(); }
  return number + (int)strlen(text);
}
static int called(struct request *r, int n) { return r != 0 && n; }

#define PLACE(m) printf(#m " %zu 0 %zu\n", 8 * offsetof(struct request, m), sizeof ((struct request *)0)->m)
#define FIELD(m) do { \
    static struct request r; \
    unsigned char *bytes = (unsigned char *)&r; \
    int first = -1, bits = 0; \
    memset(&r, 0, sizeof r); \
    r.m = -1; \
    for (int i = 0; i < 8 * (int)sizeof r; i++) \
      if (bytes[i / 8] >> i % 8 & 1) { if (first < 0) first = i; bits++; } \
    printf(#m " %d %d 0\n", first, bits); \
  } while (0)

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "facts")) {
    PLACE(path); PLACE(at); FIELD(flags); FIELD(kind); FIELD(level); FIELD(far); FIELD(on);
    PLACE(state); PLACE(next); PLACE(number); PLACE(text); PLACE(in); PLACE(innermost);
    PLACE(sizes); PLACE(small); PLACE(call); PLACE(plain); PLACE(named); PLACE(value);
    PLACE(points); PLACE(hidden);
    printf("tail %zu 0 0\n", 8 * offsetof(struct request, tail));
    printf("= %zu\n", sizeof(struct request));
    return 0;
  }
  struct request r = {.state = BUSY};
  struct point p = {argc, 2};
  volatile int k = 4711, part = 1018;
  sink += plain(&r, 0.5, 1001, 't') + by_value(1002, p, 1003) + large_result(1004).values[0];
  sink += many(1005, 1006, 1007, 108, 1009, 1010, 1011, 1012) + wide(1013, 1014);
  sink += floats(1, 1015, 2, 1016, 3, 1017) + result_of_enum(1, called);
  nothing();
  sink += changed(&p, 7, k) + dropped(3, k) + in_parts(part, argv[0]);
  return 0;
}
)";

/// A program in a private directory.
struct Program {
  ScratchDirectory directory;
  std::string path = directory.in("program");

  bool build(std::string_view source, const std::string& compiler, const std::string& flags) {
    const bool cxx = compiler.find("++") != compiler.npos;
    auto file = directory.write(cxx ? "program.cc" : "program.c", source);
    // Not relocated when it is loaded: an address in the file is one in the process.
    return succeeds(fmt::format("cd {} && {} -w -no-pie {} {} -o {}", directory.path(), compiler,
                                flags, file, path));
  }
  struct Symbol {
    std::uint64_t address = 0, offset = 0;
  };
  /// The function with this name, or the compiler's copy of it (NAME.constprop.0).
  Symbol symbol(const std::string& name) const {
    const auto fd = open_file(path);
    const auto all = symbols::find_functions(
        fd.get(),
        [&](const char* known) {
          const std::string_view word(known);
          return word == name || (word.starts_with(name + ".") && !word.ends_with(".cold"));
        },
        8);
    if (all.functions.empty()) return {};
    const auto offset = all.functions.front().offset;
    const auto elf = symbols::ElfSymbols::read(fd.get());
    return {elf->address_of_offset(offset).value_or(0), offset};
  }
  Result<UserFunction> ask(const std::string& name,
                           const std::string& debug_root = kNoDebugRoot) const {
    const auto fd = open_file(path);
    return user_function(fd.get(), symbol(name).offset, debug_root);
  }
};

/// The first six integer registers of a program's process when it reaches these addresses.
std::map<std::uint64_t, Numbers> registers_at(const std::string& path, const Numbers& addresses) {
  std::map<std::uint64_t, Numbers> seen;
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::execl(path.c_str(), path.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return seen;
#if defined(__x86_64__)
  constexpr long kTrapMask = 0xff, kTrap = 0xcc;
  constexpr std::uint64_t kBack = 1;
#else
  constexpr long kTrapMask = 0xffffffff, kTrap = 0xd4200000;
  constexpr std::uint64_t kBack = 0;
#endif
  std::map<std::uint64_t, long> before;
  auto patch = [&](std::uint64_t address, long to) {
    const long now = ::ptrace(PTRACE_PEEKTEXT, child, address, nullptr);
    ::ptrace(PTRACE_POKETEXT, child, address, (now & ~kTrapMask) | (to & kTrapMask));
    return now;
  };
  for (auto address : addresses)
    if (address && !before.contains(address)) before[address] = patch(address, kTrap);
  while (::ptrace(PTRACE_CONT, child, nullptr, nullptr) == 0 &&
         ::waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
         WSTOPSIG(status) == SIGTRAP) {
    user_regs_struct regs{};
    iovec part{&regs, sizeof regs};
    ::ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &part);
#if defined(__x86_64__)
    auto& at = regs.rip;
    Numbers values{regs.rdi, regs.rsi, regs.rdx, regs.rcx, regs.r8, regs.r9};
#else
    auto& at = regs.pc;
    Numbers values(regs.regs, regs.regs + 6);
#endif
    at -= kBack;
    if (!before.contains(at)) break;
    seen[at] = values;
    patch(at, before[at]);
    ::ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &part);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return seen;
}

/// Compares a record with lines of "NAME BIT BITS BYTES" and "= BYTES".
void expect_facts(const Type& record, const std::string& facts) {
  ASSERT_EQ(record.kind, Type::record);
  std::istringstream lines(facts);
  std::size_t members = 0;
  for (std::string name; lines >> name;) {
    SCOPED_TRACE(name);
    std::uint32_t bit = 0, bits = 0, bytes = 0;
    if (name == "=") {
      lines >> bytes;
      EXPECT_EQ(record.bytes, bytes);
      continue;
    }
    lines >> bit >> bits >> bytes;
    auto member = record.members->find(name);
    ASSERT_TRUE(member);
    members++;
    EXPECT_EQ(member->bit, bit);
    EXPECT_EQ(member->bits, bits);
    if (!bits) {
      EXPECT_EQ(member->type->bytes, bytes);
    }
    const auto names = record.members->names();
    EXPECT_TRUE(std::ranges::find(names, name) != names.end());
  }
  EXPECT_GT(members, 3U) << facts;
}

/// With a compiler, the first word, and its flags.
class Dwarf : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#ifdef CORETAP_STATIC
    GTEST_SKIP() << "the static executable reads no debug information";
#endif
    const auto blank = GetParam().find(' ');
    const auto compiler = GetParam().substr(0, blank), flags = GetParam().substr(blank);
    if (!has_command(compiler)) GTEST_SKIP() << "there is no " << compiler;
    if (!program.build(source(), compiler, flags))
      GTEST_SKIP() << "this compiler does not know " << flags;
  }
  virtual std::string_view source() const = 0;
  UserFunction ask(const std::string& name) const {
    auto f = program.ask(name);
    EXPECT_TRUE(f) << name << ": " << f.error().what;
    return f ? *f : UserFunction();
  }
  /// Each "FUNCTION PARAMETER VALUE", or instead of the value the reason why it is in no register;
  /// "?": either, as the compiler chose.
  void expect_in_registers(const Words& cases) const;

  Program program;
};

void Dwarf::expect_in_registers(const Words& cases) const {
  Numbers addresses;
  for (auto& c : cases) addresses.push_back(program.symbol(c.substr(0, c.find(' '))).address);
  auto seen = registers_at(program.path, addresses);
  if (seen.empty()) GTEST_SKIP() << "no process can be traced here";
  for (std::size_t i = 0; i < cases.size(); i++) {
    SCOPED_TRACE(cases[i]);
    std::istringstream words(cases[i]);
    std::string function, name, expected;
    std::uint64_t value = 0;
    words >> function >> name >> value >> std::ws;
    std::getline(words, expected);
#if !defined(__x86_64__)
    if (expected == "it is passed on the stack") continue;
#endif
    const auto f = ask(function);
    const auto at = std::ranges::find(f.parameters, name, &Parameter::name) - f.parameters.begin();
    const bool there = at < std::ssize(f.parameters);
    const auto why = f.elsewhere.contains(name) ? f.elsewhere.at(name) : "";
    EXPECT_NE(there, !why.empty()) << why;
    if (expected != "?") {
      EXPECT_EQ(why, expected);
    }
    if (!there) continue;
    const auto bytes = f.parameters[static_cast<std::size_t>(at)].type->bytes;
    const auto mask = bytes < 8 ? (std::uint64_t{1} << 8 * bytes) - 1 : UINT64_MAX;
    ASSERT_GT(std::ssize(seen[addresses[i]]), at);
    EXPECT_EQ(seen[addresses[i]][static_cast<std::size_t>(at)] & mask, value);
  }
}

class DwarfOfC : public Dwarf {
  std::string_view source() const override { return kC; }
};

TEST_P(DwarfOfC, MembersAreWhereTheProgramHasThem) {
  const auto f = ask("plain");
  ASSERT_FALSE(f.parameters.empty());
  auto& r = *f.parameters[0].type;
  ASSERT_EQ(r.kind, Type::pointer);
  EXPECT_TRUE(r.user);
  expect_facts(*r.to, output_of(program.path + " facts"));
}

TEST_P(DwarfOfC, TypesAreThoseOfTheSource) {
  const auto types = ask("plain").types;
  ASSERT_TRUE(types);
  auto record = types->named("struct request");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->name, "struct request");
  auto of = [&](const char* name) { return record->members->find(name)->type; };
  EXPECT_TRUE(of("path")->is_text());
  EXPECT_TRUE(of("text")->is_text());
  EXPECT_EQ(of("text")->count, 16U);
  EXPECT_EQ(of("tail")->kind, Type::array);
  EXPECT_EQ(of("tail")->count, 0U);
  EXPECT_EQ(of("sizes")->count, 2U);
  EXPECT_EQ(of("sizes")->to->count, 3U);
  EXPECT_EQ(of("sizes")->to->to->bytes, 2U);
  EXPECT_EQ(of("state")->name, "enum state");
  EXPECT_TRUE(of("state")->is_signed);
  EXPECT_TRUE(of("on")->truth);
  EXPECT_TRUE(of("level")->is_signed);
  EXPECT_FALSE(of("far")->is_signed);
  EXPECT_EQ(of("call")->kind, Type::pointer);
  EXPECT_EQ(of("call")->to->kind, Type::nothing);
  EXPECT_EQ(of("value")->kind, Type::integer) << "behind typedefs and qualifiers";
  EXPECT_TRUE(says(of("value")->name, "unsigned"));
  EXPECT_EQ(of("weight")->kind, Type::nothing);
  EXPECT_EQ(of("big")->kind, Type::nothing) << "wider than a value of an expression";
  EXPECT_EQ(of("named")->members->find("lone")->type->bytes, 2U);
  EXPECT_EQ(of("points")->to->to->name, "struct point");
  EXPECT_EQ(of("hidden")->to->bytes, 0U) << "only declared";
  EXPECT_TRUE(of("hidden")->to->members->names().empty());
  EXPECT_EQ(of("next")->to->members->find("next")->bit, record->members->find("next")->bit);
  EXPECT_EQ(types->enumerator("BUSY"), 7);
  EXPECT_EQ(types->enumerator("BELOW"), -3);
  EXPECT_EQ(types->enumerator("MANY"), 200);
  EXPECT_EQ(types->enumerator("MORE"), 40000);
  EXPECT_EQ(types->enumerator("MOST"), 0x7fffffff);
  EXPECT_FALSE(types->enumerator("NONE"));
  EXPECT_EQ(types->named("request_t")->name, "struct request");
  EXPECT_EQ(types->named("chain")->bytes, 8U);
  EXPECT_FALSE(types->named("struct nowhere"));
  EXPECT_FALSE(types->named("union request"));
}

TEST_P(DwarfOfC, ResultsHaveTheirTypes) {
  EXPECT_EQ(ask("plain").result->bytes, 8U);
  EXPECT_EQ(ask("by_value").result->name, "int");
  EXPECT_EQ(ask("large_result").result->kind, Type::record);
  EXPECT_EQ(ask("large_result").result->bytes, 32U);
  EXPECT_EQ(ask("result_of_enum").result->name, "enum state");
  EXPECT_EQ(ask("nothing").result->kind, Type::nothing);
  EXPECT_TRUE(ask("nothing").parameters.empty());
}

/// Each parameter is in the register given by the debug information, or reported as not in one.
TEST_P(DwarfOfC, ParametersAreInTheirRegisters) {
  expect_in_registers({"plain count 1001",
                       "plain letter 116",
                       "plain ratio 0 it is no integer and no pointer",
                       "by_value before 1002",
                       "by_value p 0 it is a struct that is passed by value",
                       "by_value after 1003 ?",
                       "large_result seed 1004",
                       "many a 1005",
                       "many b 1006",
                       "many c 1007",
                       "many d 108",
                       "many e 1009",
                       "many f 1010",
                       "many seventh 0 it is passed on the stack",
                       "many eighth 0 it is passed on the stack",
                       "wide huge 0 it is no integer and no pointer",
                       "wide behind 1014 ?",
                       "floats one 1015",
                       "floats two 1016",
                       "floats three 1017",
                       "result_of_enum yes 1",
                       "changed unused 7 ?",
                       "changed factor 4711",
                       "dropped unused 3 ?",
                       "dropped used 4711",
                       "in_parts number 1018"});
}

INSTANTIATE_TEST_SUITE_P(
    All, DwarfOfC,
    testing::Values("gcc -g -O0", "gcc -g -O2", "gcc -g -Og", "gcc -gdwarf-2 -gstrict-dwarf -O1",
                    "gcc -gdwarf-3 -O0", "gcc -gdwarf-4 -O2",
                    "gcc -gdwarf-5 -O2 -ffunction-sections",
                    "gcc -gdwarf-4 -O1 -fdebug-types-section",
                    "gcc -gdwarf-5 -O1 -fdebug-types-section", "gcc -g -O2 -gz",
                    "gcc -gdwarf-4 -O2 -gz=zlib-gnu", "gcc -g -O3 -fpatchable-function-entry=4",
#if defined(__x86_64__)
                    "gcc -g -Os -fcf-protection=full",
#endif
                    "gcc -g -O2 -flto", "clang -g -O0", "clang -g -O2", "clang -gdwarf-4 -O2",
                    "clang -gdwarf-5 -O2 -ffunction-sections", "clang -gdwarf-3 -O1",
                    "clang -g -O1 -gz"));

constexpr std::string_view kCxx = R"(
#include <cstddef>
#include <cstdio>
#ifdef __clang__
#define EXACT __attribute__((noinline, optnone))
#else
#define EXACT __attribute__((noipa))
#endif
typedef unsigned long word;
namespace app {
struct Base { int id; char mark; };
struct Second { long weight; virtual ~Second() = default; };
enum class Mode : unsigned char { off, on = 9 };
template <class T> struct Box { T inner; Box<T> *next; T twice() const { return inner * 2; } };
class Request : public Base, public Second {
 public:
  EXACT int handle(int first) { return first + only; }
  EXACT int handle(const char *text, long second) { return *text + (int)second; }
  EXACT static int shared(unsigned short alone) { return alone; }
  EXACT virtual int run(Mode mode) { return (int)mode; }
  static int all;
  int only = 3;
  bool fast : 1;
  int &back = only;
  Box<word> box{};
};
int Request::all = 1;
namespace { EXACT int hidden(Request &r, Box<int> &&box, decltype(nullptr) none, int behind) { return r.id + box.inner + behind; } }
template <class T> EXACT T twice(T value, const T &other) { return value + other; }
EXACT int to_member(int Request::*place, int (Request::*function)(int), int behind) { return behind + (place != nullptr) + (function != nullptr); }
}
int main(int argc, char **argv) {
  using app::Request;
  alignas(Request) static unsigned char room[sizeof(Request)];
  if (argc > 1) {
    auto *r = reinterpret_cast<Request *>(room);
    auto at = [&](const void *member) { return 8 * (std::size_t)(static_cast<const unsigned char *>(member) - room); };
#define PLACE(m) printf(#m " %zu 0 %zu\n", at(&r->m), sizeof r->m)
    PLACE(id), PLACE(mark), PLACE(weight), PLACE(only), PLACE(box);
    printf("= %zu\n", sizeof *r);
    return 0;
  }
  Request r;
  r.id = 1;
  long sum = r.handle(2001) + r.handle("x", 2002) + Request::shared(2003) + r.run(app::Mode::on);
  int (*volatile hidden)(Request &, app::Box<int> &&, decltype(nullptr), int) = app::hidden;
  sum += hidden(r, app::Box<int>{1, nullptr}, nullptr, 2004) + app::twice<word>(2005, 5);
  sum += app::to_member(&Request::only, static_cast<int (Request::*)(int)>(&Request::handle), 2006);
  return sum == 0;
}
)";

class DwarfOfCxx : public Dwarf {
  std::string_view source() const override { return kCxx; }
};

TEST_P(DwarfOfCxx, MembersOfBaseClassesAndTemplates) {
  const auto f = ask("_ZN3app7Request6handleEi");
  ASSERT_FALSE(f.parameters.empty());
  EXPECT_EQ(f.parameters[0].name, "this");
  auto& record = *f.parameters[0].type->to;
  expect_facts(record, output_of(program.path + " facts"));
  EXPECT_FALSE(record.members->find("all")) << "a static member has no place";
  EXPECT_EQ(record.members->find("fast")->bits, 1U);
  EXPECT_EQ(record.members->find("back")->type->kind, Type::pointer) << "a reference is one";
  auto box = record.members->find("box")->type;
  EXPECT_EQ(box->members->find("inner")->type->bytes, 8U);
  EXPECT_EQ(box->members->find("next")->type->to->members->find("inner")->bit, 0U);
}

TEST_P(DwarfOfCxx, OverloadsMethodsAndReferences) {
  const std::string hidden = "_ZN3app12_GLOBAL__N_16hiddenERNS_7RequestEONS_3BoxIiEEDni ";
  const std::string to_member = "_ZN3app9to_memberEMNS_7RequestEiMS0_FiiEi ";
  expect_in_registers(
      {"_ZN3app7Request6handleEi first 2001", "_ZN3app7Request6handleEPKcl second 2002",
       "_ZN3app7Request6sharedEt alone 2003", "_ZN3app7Request3runENS_4ModeE mode 9",
       hidden + "none 0", hidden + "behind 2004", "_ZN3app5twiceImEET_S1_RKS1_ value 2005",
       to_member + "place 0 it is no integer and no pointer", to_member + "behind 2006 ?"});
  const auto reference = ask("_ZN3app5twiceImEET_S1_RKS1_");
  EXPECT_EQ(reference.parameters.at(1).type->kind, Type::pointer);
  EXPECT_EQ(reference.parameters.at(1).type->to->bytes, 8U);
}

INSTANTIATE_TEST_SUITE_P(All, DwarfOfCxx,
                         testing::Values("g++ -g -O0", "g++ -g -O2", "g++ -gdwarf-4 -O1",
                                         "clang++ -g -O0", "clang++ -gdwarf-4 -O2"));

// ---- files ----

class DwarfFiles : public testing::Test {
 protected:
  void SetUp() override {
#ifdef CORETAP_STATIC
    GTEST_SKIP() << "the static executable reads no debug information";
#endif
    for (auto* tool : {"gcc", "objcopy", "strip"})
      if (!has_command(tool)) GTEST_SKIP() << "there is no " << tool;
  }
  void build(const std::string& flags) { ASSERT_TRUE(program.build(kC, "gcc", flags)); }
  std::string in(const std::string& name) const { return program.directory.in(name); }
  /// Moves the debug information to a separate file. The program keeps its symbols: the tests name
  /// functions.
  void separate(const std::string& file, bool link) {
    fs::create_directories(fs::path(file).parent_path());
    ASSERT_TRUE(succeeds(fmt::format("objcopy --only-keep-debug {} {}", program.path, file)));
    ASSERT_TRUE(succeeds("strip --strip-debug " + program.path));
    if (link) {
      ASSERT_TRUE(succeeds(fmt::format("objcopy --add-gnu-debuglink={} {}", file, program.path)));
    }
  }
  std::string said(const std::string& function = "plain", const std::string& root = kNoDebugRoot) {
    auto f = program.ask(function, root);
    if (!f) return f.error().what;
    return f->parameters.size() == 3 && f->parameters[1].name == "count" ? "known" : "other";
  }
  Program program;
};

TEST_F(DwarfFiles, StrippedAndWithoutDebugInformation) {
  build("-O1");
  EXPECT_EQ(said(), "the file has no debug information");
  ASSERT_TRUE(program.build(kC, "gcc", "-g -O1"));
  EXPECT_EQ(said(), "known");
  const auto fd = open_file(program.path);
  auto other = user_function(fd.get(), program.symbol("_start").offset, kNoDebugRoot);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().what, "the file's debug information does not have this function");
  ASSERT_TRUE(succeeds("strip --strip-debug " + program.path));
  EXPECT_EQ(said(), "the file has no debug information");
}

TEST_F(DwarfFiles, FoundByBuildId) {
  build("-g -O1 -Wl,--build-id");
  const auto id = symbols::build_id(open_file(program.path).get());
  ASSERT_GT(id.size(), 8U);
  const auto root = in("root");
  separate(fmt::format("{}/.build-id/{}/{}.debug", root, id.substr(0, 2), id.substr(2)), false);
  EXPECT_EQ(said("plain", root), "known");
  EXPECT_EQ(said("plain", in("elsewhere")), "the file has no debug information");
}

TEST_F(DwarfFiles, FoundByDebugLink) {
  for (bool with_id : {true, false})
    for (std::string place : {"", ".debug/", "root"}) {
      SCOPED_TRACE(place + (with_id ? " with build id" : ""));
      build(with_id ? "-g -O1 -Wl,--build-id" : "-g -O1 -Wl,--build-id=none");
      const auto root = in("root");
      const auto file = place == "root" ? root + program.directory.path() + "/program.debug"
                                        : in(place + "program.debug");
      separate(file, true);
      EXPECT_EQ(said("plain", root), "known");
      if (with_id) {
        fs::remove(file);
        continue;
      }
      std::ofstream(file, std::ios::app) << "other";
      EXPECT_EQ(said("plain", root), "the file has no debug information") << "another checksum";
      fs::remove(file);
    }
}

TEST_F(DwarfFiles, SplitIntoAFileOfItsOwn) {
  for (auto* version : {"-gdwarf-4", "-gdwarf-5"}) {
    build(fmt::format("{} -gsplit-dwarf -O1", version));
    EXPECT_TRUE(says(said(), "-gsplit-dwarf"));
  }
}

TEST_F(DwarfFiles, WhatSeveralFilesHaveInCommon) {
  if (!has_command("dwz")) GTEST_SKIP() << "there is no dwz";
  build("-gdwarf-4 -O1");
  fs::copy_file(program.path, in("second"));
  ASSERT_TRUE(succeeds(
      fmt::format("cd {} && dwz -m common.debug -r program second", program.directory.path())));
  EXPECT_EQ(said(), "known");
  expect_facts(*program.ask("plain")->parameters.at(0).type->to,
               output_of(program.path + " facts"));
  fs::remove(in("common.debug"));
  EXPECT_EQ(said(), fmt::format("the file's debug information needs {}, which is not here",
                                in("common.debug")));
}

/// Opening a file named by another file must not block.
TEST_F(DwarfFiles, AnAlternateFileThatIsAPipe) {
  build("-g -O1");
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  program.directory.write("link", in("pipe") + std::string(1, '\0') + std::string(20, 'i'));
  ASSERT_TRUE(succeeds(
      fmt::format("objcopy --add-section .gnu_debugaltlink={} {}", in("link"), program.path)));
  EXPECT_EQ(said(),
            fmt::format("the file's debug information needs {}, which is not here", in("pipe")));
}

/// For these libdw would take unbounded memory or time.
TEST_F(DwarfFiles, WhatNoCompilerWrites) {
  struct Case {
    std::string name, abbreviations, units, said;
  };
  const std::string unit = ".long 8; .short 4; .long 0; .byte 8, 0;";
  const std::string one = ".byte 1, 0x11, 0, 0, 0;";
  const std::string beyond = "the file's debug information has more than any compiler writes";
  for (auto& c :
       {Case{"nothing much", one, unit, "the file's debug information does not have this function"},
        Case{"attributes", ".byte 1, 0x11, 0; .rept 200; .byte 3, 0x19; .endr; .byte 0, 0;", unit,
             beyond},
        Case{"units", one, ".rept 300000;" + unit + ".endr;", beyond},
        Case{"abbreviations that units share", ".rept 1000000;" + one + ".endr;",
             ".rept 100;" + unit + ".endr;", beyond}}) {
    SCOPED_TRACE(c.name);
    const auto text = fmt::format(
        "{}\n__asm__(\".pushsection .debug_abbrev,\\\"\\\",@progbits; {} .byte 0;\"\n"
        "\".section .debug_info,\\\"\\\",@progbits; {} .popsection\");\n",
        kC, c.abbreviations, c.units);
    ASSERT_TRUE(program.build(text, "gcc", "-O1"));
    EXPECT_EQ(said(), c.said);
  }
}

/// In the older format: the name shows that it is compressed, its header has the uncompressed size.
TEST_F(DwarfFiles, UnpacksToMoreThanItCan) {
  build("-O1");
  program.directory.write("packed",
                          std::string("ZLIB\0\0\0\1\0\0\0\0", 12) + std::string(4096, 'x'));
  ASSERT_TRUE(succeeds(
      fmt::format("objcopy --add-section .hdebug_info={0} --add-section .debug_abbrev={0} {1}",
                  in("packed"), program.path)));
  auto bytes = places::file_text(program.path);
  const auto name = bytes.find(".hdebug_info");
  ASSERT_NE(name, bytes.npos);
  bytes[name + 1] = 'z';
  program.directory.write("program", bytes);
  EXPECT_EQ(said(), "the file has no debug information");
}

TEST_F(DwarfFiles, CutShort) {
  build("-g -O1");
  const auto offset = program.symbol("plain").offset;
  const auto whole = places::file_text(program.path);
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 64) {
    const auto part = program.directory.write("part", whole.substr(0, size));
    EXPECT_FALSE(user_function(open_file(part).get(), offset, kNoDebugRoot)) << size;
  }
}

}  // namespace
}  // namespace coretap::expression
