// `coretap serve` against programs that know the number of their events, and with clients and tools
// that misbehave.
#include <future>

#include "profile_reader.hpp"
#include "served.hpp"

namespace coretap::tooltest {
namespace {

// ---- numbers ----

constexpr char kOpens[] = "coretap_opensnoop_events_total";

TOOL_TEST(Serve, CountsAreTheWorkloads) {
  TemporaryDirectory logs;
  Workload workload("opener", "--count 500", kLinger);
  auto log = logs.path() + "/opens.jsonl";
  double opens = 0;
  {
    Server server(entry("opensnoop -p " + workload.id(),
                        "labels = [\"comm\"]\nevents = { file = \"" + log + "\" }"));
    opens = opens_of(workload);
    // New series start at 0.
    EXPECT_TRUE(server.await([&](auto& p) { return p.count(kOpens) && p.sum(kOpens) == 0; }));
    auto page = server.page();
    EXPECT_EQ(page.sum(kOpens), opens);
    EXPECT_EQ(page.sum(kOpens, {{"comm", "opener"}}), opens);
    EXPECT_EQ(page.sum("coretap_events_total", {{"tool", "opensnoop"}, {"outcome", "shown"}}),
              opens);
    EXPECT_EQ(page.types[kOpens], "counter");
  }
  double written = 0;
  std::string last;
  for (auto& line : lines(slurp(log))) {
    auto json = Json::parse(line);
    last = json["type"].str();
    expect_fields(json, {{"tool", "opensnoop"}});
    written += last == "event";
  }
  EXPECT_EQ(written, opens);
  EXPECT_EQ(last, "ledger");
}

TOOL_TEST(Serve, Histograms) {
  Server server(entry("runqlat"));
  server.page();
  auto page = server.page();
  EXPECT_EQ(page.types["coretap_runqlat_seconds"], "histogram");
  double before = 0, bound = 0, last = 0;
  for (auto& s : page.samples) {
    if (s.name != "coretap_runqlat_seconds_bucket") continue;
    EXPECT_GE(s.value, last);
    last = s.value;
    auto le = s.label("le");
    if (le == "+Inf") continue;
    bound = strtod(le.c_str(), nullptr);
    if (before > 0) {
      EXPECT_DOUBLE_EQ(bound, 2 * before);
    }
    before = bound;
  }
  EXPECT_GT(last, 0);
  EXPECT_EQ(last, page.sum("coretap_runqlat_seconds_count"));
  EXPECT_EQ(last, page.sum("coretap_events_total", {{"tool", "runqlat"}, {"outcome", "shown"}}));
}

// Tasks of known states, current at each page.
TOOL_TEST(Serve, LoadsAreThoseOfNow) {
  Workload load("load", "--spinning 4 --blocked 3 --comm theload");
  Server server(entry("loads -p " + load.id(), "labels = [\"comm\"]"));
  for (int i = 0; i < 2; i++) {
    auto page = server.page();
    EXPECT_EQ(page.types["coretap_loads"], "gauge");
    EXPECT_EQ(page.sum("coretap_loads", {{"state", "R"}, {"comm", "theload"}}), 4);
    EXPECT_EQ(page.sum("coretap_loads", {{"state", "D"}, {"comm", "theload"}}), 3);
    EXPECT_EQ(page.count("coretap_loads"), 2u);
    EXPECT_EQ(page.sum("coretap_loads_runnable_tasks"), 4);
    EXPECT_EQ(page.sum("coretap_loads_uninterruptible_tasks"), 3);
    auto of_kernel = strtod(slurp("/proc/loadavg").c_str(), nullptr);
    EXPECT_NEAR(page.sum("coretap_loads_load_1m"), of_kernel, 0.5 + 0.2 * of_kernel);
  }
  load.release();
  load.truth();
  EXPECT_TRUE(server.await([](auto& p) { return p.count("coretap_loads") == 0; }));
  EXPECT_EQ(server.page().sum("coretap_loads_runnable_tasks"), 0);
  EXPECT_EQ(server.page().up("loads"), 1);
}

// The same numbers as --json, of nearly the same free blocks.
TOOL_TEST(Serve, FragmentationOfZones) {
  Server server(entry("extfrag --unusable", "name = \"unusable\"") +
                entry("extfrag --index", "name = \"index\""));
  for (auto& [option, keys, name] :
       {std::tuple{"--unusable", "unusable_indices", "coretap_extfrag_unusable_ratio"},
        {"--index", "fragmentation_indices", "coretap_extfrag_fragmentation_index"}}) {
    auto page = server.page();
    EXPECT_EQ(page.types[name], "gauge");
    std::size_t all = 0, other = 0;
    for (auto& json : report_of(Strings("extfrag --json") + option).body) {
      auto indices = json[keys].items();
      for (std::size_t order = 0; order < indices.size(); order++, all++) {
        std::map<std::string, std::string> labels{{"node", std::to_string(json["node"].u64())},
                                                  {"zone", json["zone"].str()},
                                                  {"order", std::to_string(order)}};
        other += std::abs(page.sum(name, labels) - indices[order].real()) > 0.05;
      }
    }
    EXPECT_GT(all, 0u);
    EXPECT_LE(other, all / 10);
    EXPECT_EQ(page.count(name), all);
  }
}

// Two entries of one tool, under separate names.
TOOL_TEST(Serve, OneToolTwice) {
  Workload one("opener", "--count 30", kLinger);
  Workload other("opener", "--count 70", kLinger);
  Server server(entry("opensnoop -p " + one.id(), "name = \"one\"") +
                entry("opensnoop -p " + other.id(), "name = \"other\""));
  auto opens = opens_of(one), more = opens_of(other);
  EXPECT_TRUE(server.await([&](auto& p) {
    return p.sum(kOpens, {{"entry", "one"}}) == opens &&
           p.sum(kOpens, {{"entry", "other"}}) == more;
  }));
}

// ---- failures ----

TOOL_TEST(Serve, AToolThatEndsStartsAgain) {
  Server server(entry("opensnoop"));
  auto killed = server.tool();
  kill(killed, SIGKILL);
  EXPECT_TRUE(server.await([&](auto& p) {
    return p.sum("coretap_tool_restarts_total", {{"tool", "opensnoop"}}) == 1 &&
           p.up("opensnoop") == 1;
  })) << server.process().err();
  EXPECT_NE(server.tool(), killed);
}

TOOL_TEST(Serve, AToolThatStopsIsLeftOut) {
  Server server(entry("opensnoop") + entry("runqlat"));
  auto stopped = server.tool();
  kill(stopped, SIGSTOP);
  auto page = server.page();
  EXPECT_EQ(page.up("opensnoop") + page.up("runqlat"), 1);
  kill(stopped, SIGCONT);
  EXPECT_TRUE(server.all_up({"opensnoop", "runqlat"}));
}

TOOL_TEST(Serve, ReadsItsFileAgain) {
  Workload workload("opener", "--count 40", kLinger);
  auto kept = entry("opensnoop -p " + workload.id());
  Server server(kept + entry("runqlat"));
  auto opens = opens_of(workload);
  ASSERT_TRUE(server.await([&](auto& p) { return p.sum(kOpens) == opens; }));

  server.write("[[tool]]\nrum = 1\n");
  server.process().signal(SIGHUP);
  EXPECT_TRUE(
      server.await([&](auto& p) { return p.sum("coretap_config_last_reload_successful") == 0; }));
  expect_contains(server.process().err(), {"serve.toml:2: unknown key 'rum'"});
  EXPECT_TRUE(server.all_up({"opensnoop", "runqlat"}));

  server.write(kept + entry("execsnoop"));
  server.process().signal(SIGHUP);
  EXPECT_TRUE(server.await([&](auto& p) {
    return p.sum("coretap_config_last_reload_successful") == 1 && p.up("execsnoop") == 1;
  }));
  auto page = server.page();
  EXPECT_EQ(page.sum(kOpens), opens) << "an entry that is unchanged keeps its counters";
  EXPECT_EQ(page.count("coretap_runqlat_seconds_count"), 0u);
  EXPECT_EQ(server.children().size(), 3u);
}

TOOL_TEST(Serve, TheListenerHasNoRights) {
  Server server(entry("opensnoop"));
  auto listener = server.listener();
  auto proc = "/proc/" + std::to_string(listener);
  auto status = slurp(proc + "/status");
  for (std::string set : {"CapPrm", "CapEff", "CapInh", "CapAmb"})
    expect_contains(status, {set + ":\t0000000000000000"});
  expect_contains(status, {"NoNewPrivs:\t1"});
  std::error_code gone;
  for (auto& fd : std::filesystem::directory_iterator(proc + "/fd")) {
    auto to = std::filesystem::read_symlink(fd.path(), gone).string();
    EXPECT_FALSE(contains(to, "bpf")) << to;
  }

  kill(listener, SIGKILL);
  EXPECT_TRUE(until([&] { return contains(server.get("/metrics"), "200 OK"); }))
      << server.process().err();
  EXPECT_TRUE(server.all_up({"opensnoop"}));
}

TOOL_TEST(Serve, ClientsThatMisbehave) {
  Server server(entry("opensnoop"));
  for (auto& request : {std::string("POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n"),
                        "GET /metrics HTTP/1.0\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n",
                        std::string("\0\xff\r\n\r\n", 6)})
    EXPECT_FALSE(contains(server.answer(request), "200 OK"));
  EXPECT_TRUE(contains(server.get("/nothing"), "404"));
  EXPECT_TRUE(contains(server.answer("HEAD /metrics HTTP/1.0\r\n\r\n"), "200 OK"));
  // Idle connections are closed, and others are then served.
  std::vector<int> silent;
  silent.reserve(40);
  for (int i = 0; i < 40; i++) silent.push_back(connected(server.socket()));
  EXPECT_TRUE(contains(server.get("/metrics"), "200 OK"));
  for (int fd : silent)
    if (fd >= 0) close(fd);
  EXPECT_EQ(server.page().up("opensnoop"), 1);
  EXPECT_EQ(server.page().sum("coretap_tool_restarts_total"), 0);
}

// ---- profiles ----

/// The profile in a response.
Json profile_of(const std::string& answer) {
  auto body = answer.find("\r\n\r\n");
  if (!contains(answer, " 200 ") || body == answer.npos) throw std::runtime_error(answer);
  TemporaryDirectory dir;
  auto file = dir.path() + "/p.pb.gz";
  std::ofstream(file) << answer.substr(body + 4);
  return read_profile(file);
}

/// How often a process waits in this function, by the profile in a response.
std::uint64_t waits_in(const std::string& answer, pid_t pid, const std::string& function) {
  std::uint64_t count = 0;
  for (auto& s : profile_of(answer)["samples"].items()) {
    if (s["pid"].i64() != pid) continue;
    auto frames = s["frames"].items();
    if (std::any_of(frames.begin(), frames.end(),
                    [&](auto& f) { return f["name"].str() == function; }))
      count += s["values"].items()[0].u64();
  }
  return count;
}

TOOL_TEST(Serve, ProfilesOfATime) {
  Workload before("sleeper", "--sleeps 20 --ms 2", kLinger);
  Workload meanwhile("sleeper", "--sleeps 30 --ms 2", kLinger);
  // Not where it is preempted.
  Server server(entry("offcputime --state 1", "name = \"waits\"") + entry("runqlat"));
  before.release();
  before.truth();
  auto asked =
      std::async(std::launch::async, [&] { return server.get("/debug/pprof/waits?seconds=5"); });
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(server.page().up("waits"), 1) << "pages are answered meanwhile";
  meanwhile.release();
  meanwhile.truth();
  auto of_a_time = asked.get();
  EXPECT_EQ(waits_in(of_a_time, meanwhile.pid(), "workload_middle"), 30u);
  EXPECT_EQ(waits_in(of_a_time, before.pid(), "workload_middle"), 0u);
  auto of_all = server.get("/debug/pprof/waits");
  EXPECT_EQ(waits_in(of_all, meanwhile.pid(), "workload_middle"), 30u);
  EXPECT_EQ(waits_in(of_all, before.pid(), "workload_middle"), 20u);

  auto symbols = server.answer(
      "POST /debug/pprof/symbol HTTP/1.1\r\nHost: coretap\r\n"
      "Content-Length: 8\r\n\r\n0x400123");
  // Clients would keep a connection for each file.
  expect_contains(symbols, {"num_symbols: 0", "Connection: close"});
  auto list = server.get("/debug/pprof/");
  EXPECT_TRUE(contains(list, "\r\n\r\n/debug/pprof/waits\n")) << "runqlat has none: " << list;
  EXPECT_TRUE(contains(server.get("/debug/pprof/runqlat"), " 404 "));
  for (std::string seconds : {"61", "-1", "x", "1e9"})
    expect_contains(server.get("/debug/pprof/waits?seconds=" + seconds), {" 400 "});
}

// Each child has a separate sum, and there are more children than room.
TOOL_TEST(Serve, StacksOfThreadsThatEndMakeRoom) {
  // Several times as much room as one round needs: a busy machine reads the table late.
  constexpr int kRounds = 12, kChildren = 40, kRoom = 400;
  static_assert(kRounds * kChildren > kRoom);
  Server server(entry("offcputime --comm forker --stack-storage-size " + std::to_string(kRoom)));
  auto events = [](const Metrics& page, const std::string& outcome) {
    return page.sum("coretap_events_total", {{"tool", "offcputime"}, {"outcome", outcome}});
  };
  double shown = 0;
  for (int i = 0; i < kRounds; i++) {
    Workload workload("forker", "--serial --ms 2 --children " + std::to_string(kChildren));
    workload.release();
    workload.truth();
    auto page = server.page();
    EXPECT_EQ(events(page, "untracked"), 0);
    EXPECT_GE(events(page, "shown"), shown + kChildren);
    shown = events(page, "shown");
  }
  double counted = 0, left_out = 0;
  auto profile = profile_of(server.get("/debug/pprof/offcputime"));
  for (auto& s : profile["samples"].items())
    counted += static_cast<double>(s["values"].items()[0].u64());
  for (auto& c : profile["comments"].items())
    if (contains(c.str(), "are left out")) left_out = std::stod(c.str());
  EXPECT_GT(left_out, 0);
  EXPECT_EQ(counted + left_out, shown);
}

TOOL_TEST(Serve, MemoryThatIsNotFreed) {
  constexpr std::uint64_t kBlocks = 1000, kBytes = 4800;  // most of all its allocations
  Workload workload("leaker", "--rounds 0 --blocks 1000 --block-bytes 4800", kLinger);
  Server server(entry("memleak -p " + workload.id()));
  workload.release();
  workload.truth();
  auto bytes = [](const Metrics& page) { return page.sum("coretap_memleak_outstanding_bytes"); };
  EXPECT_TRUE(server.await([&](auto& p) { return bytes(p) >= double{kBlocks * kBytes}; }));
  auto page = server.page();
  EXPECT_EQ(page.types["coretap_memleak_outstanding_bytes"], "gauge");
  EXPECT_LT(bytes(page), 1.1 * kBlocks * kBytes);
  EXPECT_GE(page.sum("coretap_memleak_outstanding_allocations"), double{kBlocks});

  auto profile = profile_of(server.get("/debug/pprof/memleak"));
  std::uint64_t count = 0;
  for (auto& s : profile["samples"].items())
    if (s["values"].items()[1].u64() == kBlocks * kBytes) count = s["values"].items()[0].u64();
  EXPECT_EQ(count, kBlocks);
}

TOOL_TEST(Serve, RequestsForProfilesThatEndOtherwise) {
  Server server(entry("offcputime"));
  const std::string request = "GET /debug/pprof/offcputime?seconds=15 HTTP/1.0\r\n\r\n";
  std::vector<std::future<std::string>> asked;
  for (int i = 0; i < 3; i++)
    asked.push_back(std::async(std::launch::async, [&] { return server.answer(request); }));
  int gone = connected(server.socket());
  ASSERT_EQ(send(gone, request.data(), request.size(), 0), std::ssize(request));
  std::this_thread::sleep_for(500ms);
  EXPECT_TRUE(contains(server.answer(request), " 503 ")) << "a fifth one";
  close(gone);  // a client that does not wait
  kill(server.tool(), SIGKILL);
  for (auto& a : asked) EXPECT_TRUE(contains(a.get(), "the tool has ended"));
  EXPECT_TRUE(server.await([](auto& p) { return p.up("offcputime") == 1; })) << "it starts again";
  EXPECT_TRUE(contains(server.get("/debug/pprof/offcputime?seconds=1"), " 200 "));
}

TOOL_TEST(Serve, WhatIsWrongStartsNothing) {
  TemporaryDirectory dir;
  auto file = dir.path() + "/x.toml";
  std::ofstream(file) << "[[tool]]\nrun = \"biolatencie\"\n";
  expect_refused("coretap serve " + file + " --listen unix:" + dir.path() + "/socket",
                 {"x.toml:1: there is no tool 'biolatencie'"});
  EXPECT_NE(::access((dir.path() + "/socket").c_str(), F_OK), 0);
  for (auto& more :
       {std::string(), dir.path() + "/none", std::string("--run runqlat --listen 1.2.3.4:99999")})
    expect_refused("coretap serve " + more);
}

// ---- without a socket ----

TOOL_TEST(Serve, PrintsWhatItsEnginesTake) {
  auto print = [](const Strings& words) { return result_of("coretap serve --print" + words); };
  auto count = [](const std::string& text, std::string_view what) {
    int n = 0;
    for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) n++;
    return n;
  };
  constexpr std::string_view kTable = "CREATE TABLE IF NOT EXISTS coretap_";
  auto two = print({"tables", "--run", "opensnoop", "--run", "biolatency -D"});
  EXPECT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(count(two.out, kTable), 2) << two.out;
  EXPECT_GT(count(print("tables").out, kTable), 100);
  auto rules = print("rules");
  EXPECT_EQ(rules.status, 0) << rules.err;
  EXPECT_GE(count(rules.out, "- alert: Coretap"), 5);
  expect_refused("coretap serve --print rule", {"rules or tables"});
  EXPECT_EQ(print("tables --run opensnop").status, 2);
}

TOOL_TEST(Serve, OnePage) {
  require_tool("opensnoop");
  Workload workload("opener", "--count 60", kLinger);
  Process once({.argv = Strings(tool_path("coretap") + " serve --once --every 3 --run") +
                        Strings{"opensnoop -p " + workload.id()}});
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(slowness(), 2.0)));
  auto opens = opens_of(workload);
  EXPECT_EQ(once.wait(), 0) << once.err();
  auto page = parse_page(once.out());
  // Without an earlier page nothing is shown as 0.
  EXPECT_EQ(page.sum(kOpens), opens);
}

TOOL_TEST(Serve, TextFilesAreWhole) {
  require_tool("opensnoop");
  TemporaryDirectory dir;
  auto file = dir.path() + "/coretap.prom";
  Process server(
      {.argv = tool_path("coretap") + " serve --every 0.05 --run opensnoop --textfile " + file,
       .death_signal = SIGTERM});
  ASSERT_TRUE(until([&] { return ::access(file.c_str(), F_OK) == 0; })) << server.err();
  std::set<std::string> different;
  auto end = std::chrono::steady_clock::now() + 2s;
  while (std::chrono::steady_clock::now() < end) {
    auto text = slurp(file);
    if (!different.insert(text).second) continue;
    EXPECT_NO_THROW(parse_page(text));
    EXPECT_TRUE(text.ends_with("\n"));
    expect_contains(text, {"coretap_build_info{"});
  }
  EXPECT_GT(different.size(), 2u);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

}  // namespace
}  // namespace coretap::tooltest
