// The configuration of `coretap serve`: accepted files, and the errors of rejected ones.
#include "serve/config.hpp"

#include <fstream>

#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "cli/words.hpp"
#include "expect.hpp"
#include "metrics/names.hpp"
#include "places.hpp"
#include "serve/config_keys.hpp"

namespace coretap::serve {
namespace {

Result<ServeConfig> config(std::string_view text) {
  auto parsed = parse_config(text, "x.toml");
  if (!parsed) return parsed;
  if (auto r = check(*parsed); !r) return r.error();
  return parsed;
}

TEST(ServeConfig, WordsAsAShellHasThem) {
  EXPECT_EQ(*command_words("biolatency -D"), (Words{"biolatency", "-D"}));
  EXPECT_EQ(*command_words("  a 'b c' \"d\\\"e\" f\\ g ''"),
            (Words{"a", "b c", "d\"e", "f g", ""}));
  EXPECT_FALSE(command_words("a 'b"));
  EXPECT_FALSE(command_words("a\\"));
  EXPECT_TRUE(command_words("")->empty());
}

TEST(ServeConfig, Everything) {
  auto c = config(R"(
[serve]
listen = "unix:/run/x"
max_series = 2000
[otlp]
endpoint = "http://127.0.0.1:4318"
every = 15
headers = { X-Scope-OrgID = "ops", Authorization = "Basic eA==" }
[[tool]]
run = "coretap biolatency -D"
max_series = 600
[[tool]]
run = "execsnoop"
name = "exec"
labels = ["comm"]
max_events_per_second = 5
events = { file = "/var/log/x.jsonl", max_bytes = "1M", keep = 2, per_second = 10 }
)");
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_EQ(c->listen, "unix:/run/x");
  EXPECT_EQ(c->max_series, 2000u);
  ASSERT_EQ(c->entries.size(), 2u);
  EXPECT_EQ(c->entries[0].arguments, (Words{"biolatency", "-D"}));
  EXPECT_EQ(c->entries[0].name, "biolatency");
  EXPECT_FALSE(c->entries[0].named);
  EXPECT_EQ(c->entries[0].max_rate, std::nullopt);
  auto& exec = c->entries[1];
  EXPECT_EQ(exec.name, "exec");
  EXPECT_TRUE(exec.named);
  EXPECT_EQ(*exec.max_rate, 5u);
  EXPECT_EQ(exec.arguments, (Words{"execsnoop", "--json", "--output=/var/log/x.jsonl", "--append",
                                   "--rotate=1M,2", "--max-rate=10"}));
  ASSERT_TRUE(c->otlp);
  EXPECT_EQ(c->otlp->endpoint, "http://127.0.0.1:4318");
  EXPECT_EQ(c->otlp->every, 15u);
  EXPECT_EQ(c->otlp->headers, (std::vector<std::pair<std::string, std::string>>{
                                  {"Authorization", "Basic eA=="}, {"X-Scope-OrgID", "ops"}}));
}

TEST(ServeConfig, EventsArePushedOrWrittenOrBoth) {
  auto arguments = [](std::string_view events) {
    auto c =
        config(fmt::format("[otlp]\nendpoint = \"unix:/x\"\n[[tool]]\nrun = \"execsnoop\"\n"
                           "events = {{ {} }}\n",
                           events));
    EXPECT_TRUE(c) << c.error().what;
    return c ? c->entries[0].arguments : Words();
  };
  EXPECT_EQ(arguments("otlp = true, per_second = 7"),
            (Words{"execsnoop", "--json", "--max-rate=7"}));
  EXPECT_EQ(arguments("otlp = true, file = \"/x\""),
            (Words{"execsnoop", "--json", "--output=/x", "--append", "--rotate=50M,3"}));
  EXPECT_EQ(config("[otlp]\nendpoint = \"unix:/x\"\n[[tool]]\nrun = \"runqlat\"")->otlp->every,
            60u);
  EXPECT_EQ(config("[[tool]]\nrun = \"ext4dist\"")->entries[0].arguments,
            (Words{"fsdist", "--type=ext4"}));
}

// Each key in the manual page is read: a date is not a valid value of any.
TEST(ServeConfig, EachKeyIsRead) {
  auto refuses = [](const std::string& before, std::string_view key, std::string_view after = "") {
    auto text = fmt::format("{}{} = 1979-05-27{}", before, key, after);
    auto c = parse_config(text, "x.toml");
    ASSERT_FALSE(c) << text;
    EXPECT_TRUE(says(c.error().what, key)) << text;
    EXPECT_FALSE(says(c.error().what, "unknown key"));
  };
  const std::string otlp = "[otlp]\nendpoint = \"unix:/x\"\n",
                    tool = "[[tool]]\nrun = \"runqlat\"\n";
  const std::string events = "[[tool]]\nrun = \"execsnoop\"\nevents = { ";
  for (auto& key : kServeKeys) refuses("[serve]\n", key.name);
  for (auto& key : kOtlpKeys) refuses(key.name == "endpoint" ? "[otlp]\n" : otlp, key.name);
  for (auto& key : kHindsightKeys) refuses("[hindsight]\n", key.name);
  for (auto& key : kToolKeys) refuses(key.name == "run" ? "[[tool]]\n" : tool, key.name);
  for (auto& key : kEventKeys)
    refuses(key.name == "file" ? events : events + "file = \"/x\", ", key.name, " }");
}

TEST(ServeConfig, Hindsight) {
  const ScratchDirectory place;
  std::ofstream(place.in("token")) << "0123456789abcdef\n";
  auto c = config(fmt::format(R"(
[hindsight]
directory = "/var/lib/x"
last = "2m"
after = "0s"
most = "64M"
keep = 3
at_most = "2/1h"
free = "1M"
token_file = "{}"
on = ["load > 1000", "oomkill", "coretap_oomkill_events_total > 3/s for 5s", "execsnoop > 500/s"]
[[tool]]
run = "execsnoop"
hindsight = true
[[tool]]
run = "oomkill"
name = "oom-1"
hindsight = true
[[tool]]
run = "runqlat"
)",
                              place.in("token")));
  ASSERT_TRUE(c) << c.error().what;
  ASSERT_TRUE(c->hindsight);
  auto& h = *c->hindsight;
  EXPECT_EQ(h.store.directory, "/var/lib/x");
  EXPECT_EQ(h.store.last, 120);
  EXPECT_EQ(h.store.after, 0);
  EXPECT_EQ(h.store.most, 64u << 20);
  EXPECT_EQ(h.store.keep, 3u);
  EXPECT_EQ(h.store.dumps, 2u);
  EXPECT_EQ(h.store.per, 3600);
  EXPECT_EQ(h.store.free, 1u << 20);
  EXPECT_EQ(h.token, "0123456789abcdef");
  ASSERT_EQ(h.triggers.size(), 3u);
  EXPECT_EQ(h.triggers[1].of, "oomkill");
  ASSERT_EQ(h.thresholds.size(), 1u);
  EXPECT_EQ(h.thresholds[0].seconds, 5);
  EXPECT_TRUE(c->entries[0].hindsight);
  EXPECT_FALSE(c->entries[2].hindsight);
  auto other = *c->hindsight;
  EXPECT_TRUE(other == h);
  other.on[0].text = "load > 2";
  EXPECT_FALSE(other == h);
}

TEST(ServeConfig, SeriesAreDivided) {
  auto limit = [](std::string_view serve, std::size_t tool) {
    auto c = config(std::string(serve) +
                    "[[tool]]\nrun = \"runqlat\"\n[[tool]]\nrun = \"syscount\"\n"
                    "[[tool]]\nrun = \"execsnoop\"\nmax_series = 100\n");
    EXPECT_TRUE(c);
    return c ? c->entries[tool].max_series : 0;
  };
  EXPECT_EQ(limit("", 0), 500u);
  EXPECT_EQ(limit("", 2), 100u);
  EXPECT_EQ(limit("[serve]\nmax_series = 300\n", 0), 100u);
}

TEST(ServeConfig, WhatIsWrongIsSaidWithItsPlace) {
  struct {
    std::string_view text, expected;
  } const kBad[] = {
      {"", "no tool is configured"},
      {"[serve\n", "x.toml:1"},
      {"[[tool]]\nrun = \"biolatency\"\n[[tool]]\nrun = \"biolatency\"", "x.toml:3: there are two"},
      {"[[tool]]\nrum = \"biolatency\"", "x.toml:2: unknown key 'rum'"},
      {"[[tool]]\nrun = \"biolatencie\"", "x.toml:1: there is no tool 'biolatencie'"},
      {"[[tool]]\nrun = \"biolatency --nothing\"", "unknown option --nothing"},
      {"[[tool]]\nrun = 7", "x.toml:2: run must be text"},
      {"[[tool]]\nname = \"x\"", "a tool needs run"},
      {"[[tool]]\nrun = \"\"", "x.toml:2"},
      {"[[tool]]\nrun = \"execsnoop\"\nlabels = [\"pid\"]", "cannot be a label"},
      {"[[tool]]\nrun = \"execsnoop\"\nlabels = \"comm\"", "x.toml:3: labels must be a list"},
      {"[[tool]]\nrun = \"biolatpcts\"", "has no metrics"},
      {"[[tool]]\nrun = \"execsnoop -- true\"", "cannot be served"},
      {"[[tool]]\nrun = \"execsnoop --help\"", "asks for help"},
      {"[[tool]]\nrun = \"execsnoop -o x\"", "--output is not for served tools"},
      {"[[tool]]\nrun = \"runqlat\"\nevents = { file = \"x\" }", "shows no single events"},
      {"[[tool]]\nrun = \"execsnoop\"\nevents = { }", "events needs file"},
      {"[[tool]]\nrun = \"execsnoop\"\nevents = { file = \"x\", max_bytes = \"y\" }", "--rotate"},
      {"[[tool]]\nrun = \"runqlat\"\nmax_series = 0", "x.toml:3: max_series must be"},
      {"[serve]\nmax_series = 400\n[[tool]]\nrun = \"runqlat\"\nmax_series = 500",
       "500 series together"},
      {"[[tool]]\nrun = \"execsnoop\"\nevents = { otlp = false }", "events needs file, or otlp"},
      {"[[tool]]\nrun = \"execsnoop\"\nevents = { otlp = true }", "x.toml:1: its events"},
      {"[otlp]\n", "x.toml:1: otlp needs endpoint"},
      {"otlp = 1\n", "otlp must be a table"},
      {"[otlp]\nendpoint = \"https://127.0.0.1\"", "x.toml:2: endpoint: coretap has no TLS"},
      {"[otlp]\nendpoint = \"http://collector:4318\"", "names of hosts are not resolved"},
      {"[otlp]\nendpoint = \"unix:/x\"\nevery = 0", "x.toml:3: every must be"},
      {"[otlp]\nendpoint = \"unix:/x\"\nheaders = { a = 1 }", "headers: a must be text"},
      {"[otlp]\nendpoint = \"unix:/x\"\nheaders = { Host = \"x\" }", "headers: Host is no header"},
      {"[otlp]\nendpoint = \"unix:/x\"\nheaders = { a = \"x\\r\\ny: z\" }", "a is no header"},
      {"[otlp]\nendpoint = \"unix:/x\"\nheaders = { \"a b\" = \"x\" }", "a b is no header"},
      {"[serve]\nport = 1\n", "x.toml:2: unknown key 'port'"},
      {"serve = 3\n", "serve must be a table"},
      {"tool = 3\n", "tools are a list"},
      {"hindsight = 3\n", "hindsight must be a table"},
      {"[hindsight]\n[[tool]]\nrun = \"runqlat\"", "x.toml:1: hindsight has no tool to keep"},
      {"[[tool]]\nrun = \"runqlat\"\nhindsight = true", "x.toml:1: hindsight = true needs a table"},
      {"[hindsight]\nlast = \"1s\"", "x.toml:2: last must be a time of at least 2 s"},
      {"[hindsight]\nlast = \"soon\"", "x.toml:2: last must be a time"},
      {"[hindsight]\nmost = \"1K\"", "x.toml:2: most must be a size"},
      {"[hindsight]\nkeep = 0", "x.toml:2: keep must be"},
      {"[hindsight]\nat_most = \"often\"", "x.toml:2: at_most: 'often'"},
      {"[hindsight]\ndirectory = \"x\"", "x.toml:2: directory must be an absolute path"},
      {"[hindsight]\non = \"oomkill\"", "x.toml:2: on must be a list"},
      {"[hindsight]\non = [\"load > 1\",\n\"nothing\"]\n[[tool]]\nrun = \"runqlat\"\n"
       "hindsight = true",
       "x.toml:3: 'nothing' is no trigger"},
      {"[hindsight]\non = [\"oomkill\"]\n[[tool]]\nrun = \"runqlat\"\nhindsight = true",
       "x.toml:2: oomkill is no tool that is kept"},
      {"[hindsight]\non = [\"coretap_runqlat_seconds p99 > 20\"]\n[[tool]]\nrun = \"runqlat\"\n"
       "hindsight = true",
       "x.toml:2: 'coretap_runqlat_seconds p99 > 20': coretap_runqlat_seconds is a time"},
      {"[hindsight]\non = [\"coretap_runqlat_seconds p99 20\"]\n[[tool]]\nrun = \"runqlat\"\n"
       "hindsight = true",
       "x.toml:2: 'coretap_runqlat_seconds p99 20' is not a condition on a metric: it has no > or <"},
      {"[hindsight]\non = [\"coretap_execsnoop_events_total > 5/s\"]\n[[tool]]\nrun = \"runqlat\"\n"
       "hindsight = true\n[[tool]]\nrun = \"execsnoop\"",
       "x.toml:2: no tool that is kept has the metric 'coretap_execsnoop_events_total'"},
      {"[hindsight]\n[[tool]]\nrun = \"runqlat\"\nname = \"../x\"\nhindsight = true",
       "x.toml:2: '../x' cannot be the name of files"},
      {"[hindsight]\n[[tool]]\nrun = \"timeline\"\nhindsight = true", "x.toml:2: "},
      {"[hindsight]\ntoken_file = \"/nowhere/x\"\n[[tool]]\nrun = \"runqlat\"\n"
       "hindsight = true",
       "x.toml:1: cannot read token_file /nowhere/x"},
  };
  for (auto& bad : kBad) {
    auto c = config(bad.text);
    ASSERT_FALSE(c) << bad.text;
    EXPECT_EQ(c.error().status, kUsage) << bad.text;
    EXPECT_TRUE(says(c.error().what, bad.expected)) << bad.text;
  }
}

/// A file of packaging/exporter.
std::string shipped(const std::string& file) {
  return places::file_text(places::source_dir() + "/packaging/exporter/" + file);
}

// An entry with room for only one set of labels would show nothing but "other".
TEST(ServeConfig, ShippedEntriesHaveRoomForTheirSeries) {
  auto c = config(shipped("exporter.toml"));
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_EQ(c->entries.size(), 5u);
  for (auto& entry : c->entries) {
    auto tool = build(*find_tool(entry.arguments.front()));
    auto parsed = parse_command_line(tool, {entry.arguments.begin() + 1, entry.arguments.end()});
    auto plan = *metrics::make_plan(tool, parsed->config, entry.labels);
    EXPECT_GE(entry.max_series, plan->lines_per_series() * (plan->labels.empty() ? 1 : 4))
        << entry.run;
  }
}

TEST(ServeConfig, TheDaemonSetRunsTheSameTools) {
  auto c = config(shipped("exporter.toml"));
  auto yaml = shipped("daemonset.yaml");
  auto begin = yaml.find("exporter.toml: |\n");
  ASSERT_NE(begin, yaml.npos);
  auto there =
      config(yaml.substr(yaml.find('\n', begin), yaml.find("---", begin) - yaml.find('\n', begin)));
  ASSERT_TRUE(there) << there.error().what;
  EXPECT_EQ(there->max_series, c->max_series);
  EXPECT_TRUE(there->entries == c->entries);
}

}  // namespace
}  // namespace coretap::serve
