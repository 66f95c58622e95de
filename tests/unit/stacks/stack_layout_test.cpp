#include "stacks/stack_layout.hpp"

#include "expect.hpp"
#include "stacks/wait_rules.hpp"

namespace coretap {
namespace {

StackParty party(std::string_view comm, Frames kernel, Frames user, std::uint32_t tid = 7) {
  StackParty p;
  p.kernel = std::move(kernel);
  p.user = std::move(user);
  p.who.tid = tid;
  p.who.tgid = tid ? 5 : 0;
  memcpy(p.who.comm, comm.data(), std::min(comm.size(), sizeof p.who.comm));
  return p;
}

/// A task that reads from a pipe; frames are leaf first.
StackParty reader() { return party("reader", {"schedule", "pipe_read"}, {"read", "main"}); }
StackParty writer() { return party("writer", {"wake", "pipe_write"}, {"write", "main"}, 8); }
StackParty in_state(stack_state state, StackParty p) {
  p.who.state = state;
  return p;
}

const StackReport kAlone{"microseconds off the CPU"};
const StackReport kSamples{"samples", StackReport::samples};
const StackReport kWaker{"microseconds", StackReport::time, StackReport::waker};
const StackReport kChain{"microseconds", StackReport::time, StackReport::chain};

std::string folded(const StackReport& report, const std::vector<StackParty>& parties,
                   StackLayout::Style style = {}) {
  return StackLayout(report, style).folded(parties);
}

/// "main" as "u:main", "wu:main" for a waker's.
Words kinds(const StackReport& report, const std::vector<StackParty>& parties) {
  Words all;
  for (auto& w : StackLayout(report, {}).path(parties))
    all.push_back((w.waker ? "w" : "") + std::string(1, "tukm"[w.kind]) + ":" + w.text);
  return all;
}

TEST(StackLayout, AloneIsFromTheTaskToTheLeaf) {
  EXPECT_EQ(folded(kAlone, {reader()}), "reader;main;read;pipe_read;schedule");
  EXPECT_EQ(kinds(kAlone, {reader()}),
            (Words{"t:reader", "u:main", "u:read", "k:pipe_read", "k:schedule"}));
  EXPECT_EQ(StackLayout(kAlone, {}).lines({reader()}),
            (Words{"    schedule", "    pipe_read", "    read", "    main",
                   "    -                reader (7)"}));
}

TEST(StackLayout, Preempted) {
  auto task = in_state(STACK_RUNNABLE, reader());
  EXPECT_EQ(kinds(kAlone, {task}).back(), "m:[runnable]") << "above all that it was called from";
  EXPECT_EQ(StackLayout(kAlone, {}).lines({task}).front(), "    [runnable]");
}

TEST(StackLayout, ReasonsFollowTheLeaf) {
  const auto report = kAlone.with_reasons();
  auto task = reader();
  EXPECT_TRUE(StackLayout(report, {}).csv({task}, {}).ends_with(","));
  task.reason = wait_reason("pipe_read");
  EXPECT_EQ(folded(report, {task}), "reader;main;read;pipe_read;schedule;[pipe_read]");
  EXPECT_EQ(StackLayout(report, {}).path({task}).back().kind, StackWord::peer);
  EXPECT_EQ(StackLayout(report, {}).lines({task}).at(0), "    [pipe_read]");
  EXPECT_TRUE(StackLayout(report, {}).csv({task}, {}).ends_with(",pipe_read"));
  EXPECT_TRUE(StackLayout(report, {}).csv_keys().ends_with(",stack,reason"));
}

TEST(StackLayout, StillWaiting) {
  auto waits = kAlone.with_waits(), woken = kWaker.with_waits();
  auto task = in_state(STACK_RUNNABLE, reader());
  task.who.waiting = 1;
  EXPECT_EQ(folded(waits, {task}),
            "reader;main;read;pipe_read;schedule;[runnable];[still waiting]");
  EXPECT_EQ(folded(woken, {task}), "reader;[still waiting]") << "no task has woken it";
  auto lines = StackLayout(waits, {}).lines({task});
  EXPECT_EQ(lines.at(0), "    [still waiting]");
  EXPECT_EQ(lines.at(1), "    [runnable]");
  EXPECT_EQ(StackLayout(woken, {}).lines({task}),
            (Words{"    [still waiting]", "    target:          reader"}));
  StackLayout layout(waits, {});
  EXPECT_TRUE(says(layout.json({task}, {5000, 1}), "\"still_waiting\":true"));
  EXPECT_TRUE(says(layout.json({reader()}, {5000, 1}), "\"still_waiting\":false"));
  EXPECT_EQ(layout.csv_keys(), "comm,pid,tid,runnable,still_waiting,total_ns,count,stack");
  EXPECT_TRUE(layout.csv({task}, {5000, 1}).starts_with("reader,5,7,true,true,5000,1,"));
}

TEST(StackLayout, Styles) {
  EXPECT_EQ(folded(kSamples, {reader()}, {.annotated = true}),
            "reader;main;read;pipe_read_[k];schedule_[k]");
  auto java = party("java", {"futex"}, {"get", "run", "start"});
  const std::vector<FramePlace> places{
      {.compiled = true, .inlined = true}, {.compiled = true}, {.object = "libc.so.6"}};
  java.user_places = places;
  EXPECT_EQ(folded(kSamples, {java}, {.annotated = true}), "java;start;run_[j];get_[i];futex_[k]");
  EXPECT_EQ(folded(kSamples, {java}), "java;start;run;get;futex") << "scripts know the plain form";
  EXPECT_EQ(StackLayout(kSamples, {.annotated = true}).lines({java}).at(1), "    get_[i]");
  EXPECT_EQ(StackLayout(kSamples, {.annotated = true}).path({java})[2].text, "run")
      << "pictures have colours instead";
  EXPECT_EQ(folded(kSamples, {reader()}, {.delimited = true}),
            "reader;main;read;-;pipe_read;schedule");
  EXPECT_EQ(folded(kSamples, {party("kthreadd", {"schedule"}, {})}, {.delimited = true}),
            "kthreadd;schedule")
      << "nothing to keep apart";
  EXPECT_EQ(folded(kSamples, {party("idle", {}, {})}), "idle");
  EXPECT_EQ(folded(kAlone, {party("", {"schedule"}, {"main"})}), ";main;schedule") << "no task";
}

TEST(StackLayout, CutStacksAreMarkedAtTheirOuterEnd) {
  auto task = reader(), waker = writer();
  task.cut = waker.cut = "stack depth";
  EXPECT_EQ(kinds(kAlone, {task}), (Words{"t:reader", "m:[truncated: stack depth]", "u:main",
                                          "u:read", "k:pipe_read", "k:schedule"}));
  auto chain = kinds(kChain, {reader(), waker});
  EXPECT_EQ(chain[chain.size() - 2], "wm:[truncated: stack depth]");
  EXPECT_EQ(chain.back(), "wt:writer");
  auto lines = StackLayout(kAlone, {}).lines({task});
  EXPECT_EQ(lines[lines.size() - 2], "    [truncated: stack depth]");
}

TEST(StackLayout, WakerComesFirstOfTheTaskOnlyTheName) {
  EXPECT_EQ(kinds(kWaker, {reader(), writer()}),
            (Words{"wt:writer", "wu:main", "wu:write", "wk:pipe_write", "wk:wake", "t:reader"}));
  EXPECT_EQ(folded(kWaker, {reader()}), "reader") << "who woke it is not known";
  EXPECT_EQ(StackLayout(kWaker, {}).lines({reader(), party("swapper", {"wake"}, {}, 0)}),
            (Words{"    target:          reader", "    wake", "    waker:           swapper"}));
}

TEST(StackLayout, ChainsGoUpFromWhoWaitsToWhoWoke) {
  auto disk = in_state(STACK_IRQ, party("", {"complete", "disk_irq"}, {}, 0));
  EXPECT_EQ(kinds(kChain, {reader(), writer(), disk}),
            (Words{"t:reader", "u:main", "u:read", "k:pipe_read", "k:schedule", "wm:--", "wk:wake",
                   "wk:pipe_write", "wu:write", "wu:main", "wt:writer", "wm:--", "wk:complete",
                   "wk:disk_irq", "wt:[irq]"}));
  EXPECT_EQ(folded(kChain, {reader(), writer(), disk}),
            "reader;main;read;pipe_read;schedule;--;wake;pipe_write;write;main;writer;--;"
            "complete;disk_irq;[irq]");
  EXPECT_EQ(
      StackLayout(kChain, {}).lines({reader(), writer(), disk}),
      (Words{"    waker2:          [irq]", "    disk_irq", "    complete",
             "    --               --", "    waker1:          writer 8", "    main", "    write",
             "    pipe_write", "    wake", "    --               --", "    schedule",
             "    pipe_read", "    read", "    main", "    target:          reader 7"}));
  EXPECT_EQ(StackLayout(kChain, {}).lines({reader(), writer()}).front(),
            "    waker:           writer 8")
      << "a single one has no number";
}

TEST(StackLayout, WhatIsNoTaskHasANameOfItsOwn) {
  for (auto [state, name] : {std::pair{STACK_IDLE, "[idle]"},
                             {STACK_IRQ, "[irq]"},
                             {STACK_SOFTIRQ, "[softirq]"},
                             {STACK_TASK, "0123456789abcdef"},
                             {STACK_RUNNABLE, "0123456789abcdef"}})
    EXPECT_EQ(in_state(state, party("0123456789abcdef", {}, {})).name(), name);
}

TEST(StackLayout, HostileNames) {
  auto p = party("a;b\n\x1b[2J", {"k;1"}, {"u\n2;3", "\xff"});
  EXPECT_EQ(folded(kAlone, {p}), "a:b\\x0a\\x1b[2J;\\xff;u\\x0a2:3;k:1");
  for (auto& line : StackLayout(kAlone, {}).lines({p}))
    EXPECT_EQ(line.find_first_of("\n\x1b\xff"), line.npos) << line;
  auto json = parsed_json(StackLayout(kAlone, {}).json({p}, {1, 1}));
  EXPECT_STREQ(json["comm"].GetString(), "a;b\n\x1b[2J") << "data is not made printable";
  EXPECT_EQ(members(json, "user_stack"), "[\"u\\n2;3\",\"\xef\xbf\xbd\"]");
  EXPECT_EQ(StackLayout(kSamples, {}).csv({party("a,\"b", {}, {})}, {0, 3}),
            "\"a,\"\"b\",5,7,3,\"a,\"\"b\"");
}

// Frames are leaf first, times are not scaled.
TEST(StackLayout, Json) {
  auto task = in_state(STACK_RUNNABLE, reader());
  EXPECT_EQ(StackLayout(kAlone, {}).json({task}, {123'456'789, 4}),
            R"({"type":"stack","tool":"","comm":"reader","pid":5,"tid":7,"runnable":true,)"
            R"("kernel_stack":["schedule","pipe_read"],"user_stack":["read","main"],)"
            R"("user_stack_truncated":null,"user_stack_guessed":0,)"
            R"("total_ns":123456789,"count":4})");
  EXPECT_EQ(StackLayout(kSamples, {}).json({reader()}, {0, 4}),
            R"({"type":"stack","tool":"","comm":"reader","pid":5,"tid":7,)"
            R"("kernel_stack":["schedule","pipe_read"],"user_stack":["read","main"],)"
            R"("user_stack_truncated":null,"user_stack_guessed":0,"count":4})");
}

TEST(StackLayout, JsonOfChains) {
  auto cut = writer();
  cut.cut = "no frame pointers";
  auto irq = in_state(STACK_SOFTIRQ, party("", {"complete"}, {}, 0));
  EXPECT_EQ(StackLayout(kChain, {}).json({reader(), cut, irq}, {5000, 1}),
            R"({"type":"stack","tool":"","comm":"reader","pid":5,"tid":7,"runnable":false,)"
            R"("kernel_stack":["schedule","pipe_read"],"user_stack":["read","main"],)"
            R"("user_stack_truncated":null,"user_stack_guessed":0,"wakers":[)"
            R"({"context":"task","comm":"writer","pid":5,"tid":8,)"
            R"("kernel_stack":["wake","pipe_write"],"user_stack":["write","main"],)"
            R"("user_stack_truncated":"no frame pointers","user_stack_guessed":0},)"
            R"({"context":"softirq","comm":"[softirq]","pid":null,"tid":null,)"
            R"("kernel_stack":["complete"],"user_stack":[],)"
            R"("user_stack_truncated":null,"user_stack_guessed":0}],"total_ns":5000,"count":1})");
  EXPECT_TRUE(says(StackLayout(kChain, {}).json({reader()}, {5000, 1}), "\"wakers\":[]"));
}

TEST(StackLayout, Csv) {
  StackLayout time(kAlone, {}), samples(kSamples, {});
  EXPECT_EQ(time.csv_keys(), "comm,pid,tid,runnable,total_ns,count,stack");
  EXPECT_EQ(time.csv({reader()}, {5000, 2}),
            "reader,5,7,false,5000,2,reader;main;read;pipe_read;schedule");
  EXPECT_EQ(samples.csv_keys(), "comm,pid,tid,count,stack");
  EXPECT_EQ(samples.csv({reader()}, {5000, 2}), "reader,5,7,2,reader;main;read;pipe_read;schedule");
}

TEST(StackLayout, Measures) {
  StackLayout time(kAlone, {}), samples(kSamples, {});
  EXPECT_EQ(time.value({5999, 2}), 5999u);
  EXPECT_EQ(time.shown(5999), 5u) << "microseconds";
  EXPECT_EQ(samples.value({5999, 2}), 2u);
  EXPECT_EQ(samples.shown(2), 2u);
}

}  // namespace
}  // namespace coretap
