// Expressions run by the kernel, against C's rules and against known values of this process.
#include "expression/compile.hpp"

#include <sys/types.h>

#include "expect.hpp"
#include "run_code.hpp"

namespace coretap::expression {
namespace {

#define NEEDS_ROOT \
  if (!can_run_code()) GTEST_SKIP() << "programs are loaded by root"

Scope usual_scope() {
  Scope scope{&types()};
  add_common_names(scope);
  add_arguments(scope, {});
  return scope;
}

Parser parser_of(const std::string& text) {
  return Parser(text, 0, [](std::string_view word) { return types().starts_type(word); });
}

struct Ran {
  std::uint64_t value = 0;
  bool fault = false;
  std::string error;  ///< the compiler's message

  /// Its error, or "fault", or its signed value.
  std::string shown() const {
    if (!error.empty()) return error;
    return fault ? "fault" : std::to_string(static_cast<std::int64_t>(value));
  }
};

Ran run(const std::string& text, const expression_in& in = {}, const Scope* scope = nullptr) {
  auto usual = usual_scope();
  if (!scope) scope = &usual;
  auto parser = parser_of(text);
  auto node = parser.expression();
  if (!node) return {0, false, node.error().what};
  if (parser.peek()) return {0, false, "rest"};
  Code code;
  Compiler compiler(text, *scope, code);
  auto type = compiler.value(**node);
  if (!type) return {0, false, type.error().what + type.error().hint};
  auto memory = run_code(code, in);
  if (!memory) return {0, false, "not run"};
  return {memory->result, memory->faulted != 0, {}};
}

// ---- arithmetic: random expressions, against a C compiler ----

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}

  std::string make(int depth) {
    if (depth == 0 || pick(5) == 0) return leaf();
    const auto part = [&] { return "(" + make(depth - 1) + ")"; };
    const auto kind = pick(9);
    const auto a = part();
    if (kind == 0) return one_of({"-", "~", "!", "+"}) + a;
    if (kind == 1)
      return one_of({"(int)", "(unsigned int)", "(long)", "(unsigned long)", "(char)", "(u8)",
                     "(unsigned short)", "(s16)", "(bool)"}) +
             a;
    auto b = part();
    if (kind == 2) return fmt::format("({} ? {} : {})", a, b, part());
    const auto word = one_of({"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">",
                              ">=", "==", "!=", "&&", "||"});
    if (word == "<<" || word == ">>") b = "(" + b + " & 31)";  // undefined in C for larger counts
    return fmt::format("{} {} {}", a, word, b);
  }
  expression_in in{};

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string one_of(std::initializer_list<const char*> words) {
    return *(words.begin() + pick(static_cast<unsigned>(words.size())));
  }
  std::string leaf() {
    const std::uint64_t interesting[] = {
        0,        1,     2,     7,          63,         127,        128,
        255,      32767, 65535, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff,
        random_()};
    const auto bits = interesting[pick(std::size(interesting))];
    const auto kind = pick(6);
    if (kind == 0) return fmt::format("{}", bits & 0x7fffffff);
    if (kind == 1) return fmt::format("{}U", bits & 0xffffffff);
    if (kind == 2) return fmt::format("{}L", bits & INT64_MAX);
    if (kind == 3) return fmt::format("{:#x}UL", bits);
    auto& argument = in.arguments[kind - 3];
    if (!argument) argument = bits | 1;
    return kind == 4 ? "(int)arg2" : "arg3";
  }
  std::mt19937_64 random_;
};

constexpr std::string_view kProgram = R"(
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
typedef unsigned char u8;
typedef short s16;
static unsigned long arg2, arg3;
static sigjmp_buf back;
static void undefined(int signal) { siglongjmp(back, signal); }
static void show(unsigned long long (*value)(void), unsigned long two, unsigned long three) {
  arg2 = two;
  arg3 = three;
  int signal = sigsetjmp(back, 1);
  if (signal) puts(signal == SIGILL ? "fault" : "undefined"); else printf("%llu\n", value());
}
)";

TEST(Expressions, AreCalculatedAsInC) {
  NEEDS_ROOT;
  if (!has_command("gcc")) GTEST_SKIP() << "there is no gcc";
  std::string program(kProgram), calls;
  std::vector<std::pair<std::string, expression_in>> all;
  for (unsigned seed = 1; seed <= 1600; seed++) {
    Random random(seed);
    auto text = random.make(1 + static_cast<int>(seed % 5));
    if (text.size() > 2000) continue;
    program += fmt::format("static unsigned long long f{}(void) {{ return {}; }}\n", seed, text);
    calls += fmt::format("show(f{}, {}UL, {}UL);\n", seed, random.in.arguments[1],
                         random.in.arguments[2]);
    all.emplace_back(text, random.in);
  }
  ScratchDirectory scratch;
  auto file = scratch.write(
      "program.c", program +
                       "int main(void) {\nsignal(SIGFPE, undefined), signal(SIGILL, undefined);\n" +
                       calls + "return 0;\n}\n");
  // Beyond int's range C is undefined; the kernel's arithmetic wraps. A division by zero traps,
  // even if the result is unused.
  ASSERT_TRUE(
      succeeds(fmt::format("gcc -w -fwrapv -fsigned-char -fsanitize=integer-divide-by-zero "
                           "-fsanitize-undefined-trap-on-error {} -o {}",
                           file, scratch.in("it"))));
  auto expected = lines_of(output_of(scratch.in("it")));
  ASSERT_EQ(expected.size(), all.size());
  int checked = 0;
  for (std::size_t i = 0; i < all.size() && !HasFailure(); i++) {
    auto& [text, in] = all[i];
    auto ran = run(text, in);
    ASSERT_EQ(ran.error, "") << text;
    if (expected[i] == "undefined") continue;
    EXPECT_EQ(ran.fault ? "fault" : std::to_string(ran.value), expected[i]) << text;
    checked++;
  }
  EXPECT_GT(checked, 1000);
}

/// Expects "EXPRESSION => RESULT".
void expect_values(const expression_in& in, const Scope& scope,
                   std::initializer_list<std::string_view> cases) {
  expect_each([&](const std::string& text) { return run(text, in, &scope).shown(); }, cases);
}

TEST(Expressions, WhatCSaysNothingOf) {
  NEEDS_ROOT;
  expect_values({}, usual_scope(),
                {"1 << 33 => 2", "1L << 33 => 8589934592", "-8 >> 33 => -4", "1UL << 65 => 2",
                 "1 << -1 => -2147483648", "7 / arg1 => fault", "7 % (int)arg1 => fault",
                 // The right side is not evaluated.
                 "arg1 != 0 && 7 / arg1 > 1 => 0", "arg1 ? 7 / arg1 : 5 => 5"});
}

TEST(Expressions, ReadTheKernelsMemory) {
  NEEDS_ROOT;
  for (auto* own : {"$task->tgid", "(*$task).tgid", "*&$task->tgid",
                    "((struct task_struct *)(u64)$task)->tgid"})
    EXPECT_EQ(run(own).shown(), std::to_string(getpid())) << own;
  EXPECT_EQ(run("$task->real_parent->tgid").shown(), std::to_string(getppid()));
  expect_values({}, usual_scope(),
                {"$task->group_leader->pid == $task->tgid => 1", "$task->cred->uid.val => 0",
                 "sizeof(struct list_head) => 16", "sizeof $task->comm => 16",
                 "&$task->comm[3] - &$task->comm[0] => 3",
                 // An enumerator.
                 "TASK_COMM_LEN => 16",
                 // Bit fields: the running test is a normal task that has not been reset.
                 "$task->sched_reset_on_fork => 0", "$task->in_execve => 0",
                 "$task->signal->is_child_subreaper => 0"});
}

TEST(Expressions, ReadTextAndElements) {
  NEEDS_ROOT;
  expression_in in{};
  in.arguments[0] = 2;
  memcpy(in.comm, "sshd", 5);
  const std::string comm = "unit_tests";
  EXPECT_EQ(run("$task->comm[0]").value, static_cast<std::uint64_t>(comm[0]));
  EXPECT_EQ(run("$task->comm[arg1]", in).value, static_cast<std::uint64_t>(comm[2]));
  expect_values(in, usual_scope(),
                {// STRCMP compares the start.
                 "STRCMP(\"unit\", $task->comm) => 1", "STRCMP(\"unix\", $task->comm) => 0",
                 "STREQ(\"unit\", $task->comm) => 0", "STREQ(\"unit_tests\", $task->comm) => 1",
                 "$task->comm == \"unit_tests\" => 1", "\"unit_tests.\" != $task->comm => 1",
                 "STRNCMP(\"unix\", 3, $task->comm) => 1", "$comm == \"sshd\" => 1",
                 "$comm == \"ssh\" => 0", "STRCMP(\"ssh\", $comm) => 1"});
}

TEST(Expressions, ReadTheProcessMemory) {
  NEEDS_ROOT;
  const std::int16_t numbers[4] = {-1, 2, -3, 4};
  const char* words = "hello";
  expression_in in{};
  in.arguments[0] = reinterpret_cast<std::uintptr_t>(&numbers);
  in.arguments[1] = reinterpret_cast<std::uintptr_t>(&words);
  auto scope = usual_scope();
  expect_values(in, scope, {"((s16 *)arg1@user)[0] => -1"});
  scope.user = true;
  expect_values(
      in, scope,
      {"((s16 *)arg1)[2] => -3", "STREQ(\"hello\", *(char **)arg2) => 1", "*(short *)arg1 => -1"});
  in.arguments[0] = 8;
  expect_values(in, scope, {"*(int *)arg1 => fault", "STREQ(\"x\", (char *)arg1) => fault"});
  scope.user = false;
  expect_values(in, scope, {"*(int *)arg1 => fault"});
}

TEST(Expressions, ArgumentsKeepTheirTypes) {
  NEEDS_ROOT;
  auto scope = usual_scope();
  add_arguments(scope, {{"count", types().named("int")},
                        {"name", pointer_to(types().named("char"))},
                        {"flags", types().named("u8")}});
  expression_in in{};
  in.arguments[0] = 0xdeadbeefffffffff;  // bits above an int are ignored
  in.arguments[2] = 0x1ff;
  EXPECT_EQ(run("arg1", in, &scope).value, 0xdeadbeefffffffffU);
  expect_values(in, scope,
                {"count => -1", "count < 0 => 1", "flags => 255", "ntohs(0x1234) == 0x3412 => 1",
                 "ntohl(0x12345678) == 0x78563412 => 1"});
}

TEST(Expressions, ErrorsNameTheNearest) {
  expect_says(
      [](const std::string& text) { return run(text).error; },
      {"$pdi => $pid", "$task->tgdi => tgid", "((struct task_strut *)arg1)->pid => task_struct",
       "$task.tgid => ->", "$task->comm[16] => 16 elements", "$task->cred->uid => struct",
       "STRCP(\"a\", $comm) => STRCMP"});
  for (auto* text : {"arg1->x", "STRCMP(1, $comm)", "\"text\""}) EXPECT_NE(run(text).error, "");
  auto scope = usual_scope();
  add_arguments(scope, {parse_declaration("struct timespec *ts", types())});
  EXPECT_EQ(run("ts->tv_nsec", {}, &scope).error,
            "struct timespec is not a type of this kerneldid you mean 'struct __kernel_timespec'?");
}

TEST(Expressions, FiltersSayWhyNot) {
  NEEDS_ROOT;
  auto verdict = [&](const std::string& text) {
    auto scope = usual_scope();
    Code code;
    EXPECT_TRUE(Compiler(text, scope, code).filter(**parser_of(text).expression()));
    auto memory = run_code(code);
    return memory ? memory->result : ~0ULL;
  };
  EXPECT_EQ(verdict("arg1 == 0"), EXPRESSION_YES);
  EXPECT_EQ(verdict("arg1"), EXPRESSION_NO);
  EXPECT_EQ(verdict("*(int *)8 == 0"), EXPRESSION_FAULT);
  EXPECT_EQ(verdict("$task"), EXPRESSION_YES);
}

TEST(Expressions, OutputsAreValuesTextAndBytes) {
  NEEDS_ROOT;
  auto scope = usual_scope();
  const std::string text = "$task->tgid, $task->comm, *(int *)8, $comm, \"";
  auto parser = parser_of(text);
  Code code;
  Compiler compiler(text, scope, code);
  std::uint32_t next = sizeof(expression_out);
  std::vector<Output> outputs;
  const Wanted wanted[] = {Wanted::number, Wanted::text, Wanted::number, Wanted::text};
  for (std::uint32_t i = 0; i < 4; i++) {
    auto node = parser.expression();
    ASSERT_TRUE(node);
    auto out = compiler.output(**node, wanted[i], i, i == 3 ? 2 : 20, next);
    ASSERT_TRUE(out) << out.error().what;
    outputs.push_back(*out);
    parser.take(',');
  }
  expression_in in{};
  memcpy(in.comm, "sshd", 5);
  auto memory = run_code(code, in);
  ASSERT_TRUE(memory);
  auto text_at = [&](const Output& o) {
    return std::string(reinterpret_cast<char*>(&memory->out) + o.at);
  };
  EXPECT_EQ(memory->out.values[0], static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(text_at(outputs[1]), "unit_tests");
  EXPECT_EQ(memory->out.faults, 1U << 2);
  EXPECT_EQ(text_at(outputs[3]).substr(0, 2), "ss");
  EXPECT_EQ(memory->out.cut, 1U << 3);
  EXPECT_EQ(compiler.uses(), EXPRESSION_USES_COMM | EXPRESSION_USES_TASK);
}

/// The record of a tracepoint, as described by its format file.
TypePtr record_of_tracepoint() {
  Type type{Type::record, "record"};
  type.members = format_members(
      "name: test\nID: 1\nformat:\n"
      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
      "\n"
      "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:char name[8];\toffset:12;\tsize:8;\tsigned:0;\n"
      "\tfield:__data_loc char[] path;\toffset:20;\tsize:4;\tsigned:0;\n"
      "\tfield:__u8 address[4];\toffset:24;\tsize:4;\tsigned:0;\n"
      "\tfield:int beside;\toffset:26;\tsize:4;\tsigned:1;\n"
      "\nprint fmt: \"%d\", REC->number\n",
      types());
  return std::make_shared<const Type>(type);
}

/// In the format file, each argument of a system call has the size of a register, and no sign.
TEST(Expressions, ArgumentsOfSystemCallsHaveTheirTypes) {
  const auto members = format_members(
      "name: sys_enter_test\nID: 1\nformat:\n"
      "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
      "\tfield:unsigned int fd;\toffset:24;\tsize:8;\tsigned:0;\n"
      "\tfield:off_t offset;\toffset:32;\tsize:8;\tsigned:0;\n"
      "\tfield:struct nowhere_t number;\toffset:40;\tsize:8;\tsigned:0;\n",
      types(), 64);
  struct {
    const char* name;
    std::uint32_t bytes;
    bool is_signed;
  } const kWanted[] = {{"dfd", 4, true}, {"fd", 4, false}, {"offset", 8, true}};
  std::uint32_t at = 64;
  for (auto& [name, bytes, is_signed] : kWanted) {
    SCOPED_TRACE(name);
    const auto member = members->find(name);
    ASSERT_TRUE(member);
    EXPECT_EQ(member->place, Member::input);
    EXPECT_EQ(member->bit, at);
    EXPECT_EQ(member->type->bytes, bytes);
    EXPECT_EQ(member->type->is_signed, is_signed);
    at += 8;
  }
  EXPECT_EQ(members->find("__syscall_nr")->type->bytes, 4U);
}

TEST(Expressions, ReadRecordsOfTracepoints) {
  NEEDS_ROOT;
  struct Record {
    std::uint64_t common = 0;
    std::int32_t number = -7;
    char name[8] = "abc";
    std::uint32_t path = 32 | 6 << 16;
    std::uint8_t address[4] = {192, 0, 2, 1};
    std::uint32_t pad = 0;
    char text[8] = "/tmp/";
  };
  static const Record record;
  const auto type = record_of_tracepoint();
  auto scope = usual_scope();
  scope.names["args"] = {pointer_to(type, true),
                         static_cast<std::uint32_t>(offsetof(expression_in, context))};
  expression_in in{};
  in.context = reinterpret_cast<std::uintptr_t>(&record);
  expect_values(in, scope,
                {"args->number => -7", "args->address[3] => 1", "STREQ(\"abc\", args->name) => 1"});
  EXPECT_TRUE(says(run("args->nmuber", in, &scope).error, "number"));
  EXPECT_EQ(std::ranges::count(type->members->names(), "path"), 1);
}

// For a program at a single tracepoint; the tool's own tests run it.
TEST(Expressions, LoadFieldsOfARecordAtHand) {
  auto scope = usual_scope();
  scope.names["args"] = {pointer_to(record_of_tracepoint(), true),
                         static_cast<std::uint32_t>(offsetof(expression_in, context)), false,
                         EXPRESSION_USES_CONTEXT};
  auto uses = [&](const std::string& text) {
    Code code;
    Compiler compiler(text, scope, code);
    EXPECT_TRUE(compiler.value(**parser_of(text).expression())) << text;
    return compiler.uses();
  };
  EXPECT_EQ(uses("args->number == 3"), EXPRESSION_USES_CONTEXT);
  scope.record_at_hand = true;
  EXPECT_EQ(uses("args->number == 3"), EXPRESSION_USES_RECORD);
  for (auto* text : {"args->common_type", "args->beside", "args->name[0]", "*args->path"})
    EXPECT_EQ(uses(text), EXPRESSION_USES_CONTEXT) << text;
}

}  // namespace
}  // namespace coretap::expression
