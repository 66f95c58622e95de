// Pushed metrics and events, decoded by their wire format.
#include "metrics/otlp.hpp"

#include <bit>

#include "all_tools.hpp"
#include "metrics/page.hpp"
#include "wire.hpp"

namespace coretap::metrics {
namespace {

using namespace std::string_literals;
using test::Wire;

template <class T>
std::vector<T> packed(const std::string& bytes) {
  std::vector<T> all(bytes.size() / sizeof(T));
  memcpy(all.data(), bytes.data(), all.size() * sizeof(T));
  return all;
}

/// An AnyValue and its type.
std::string any(const Wire& value) {
  if (value.members.empty()) return "nothing";
  auto& m = value.members.at(0);
  switch (m.number) {
    case 1:
      return "'" + m.bytes + "'";
    case 2:
      return m.value ? "true" : "false";
    case 3:
      return fmt::format("{}", static_cast<std::int64_t>(m.value));
    case 4:
      return fmt::format("{}d", std::bit_cast<double>(m.value));
  }
  std::string all;
  for (auto& one : Wire(m.bytes).messages(1)) {
    all += all.empty() ? "" : ",";
    all += m.number == 5 ? any(one) : one.text(1) + "=" + any(one.in(2));
  }
  return m.number == 5 ? "[" + all + "]" : "{" + all + "}";
}

using Attributes = std::map<std::string, std::string>;

Attributes attributes(const Wire& of, unsigned number) {
  Attributes all;
  for (auto& pair : of.messages(number))
    EXPECT_TRUE(all.emplace(pair.text(1), any(pair.in(2))).second) << pair.text(1) << " twice";
  return all;
}

/// A point of a metric, as text.
struct Point {
  std::string name, unit, help;
  /// "gauge", "sum" or "histogram", with its properties.
  std::string type;
  Attributes labels;
  std::uint64_t start, time;
  std::string value;  ///< "7" or "7.0d"; for histograms counts, bounds and the sum
};

std::vector<Point> points(const std::string& request) {
  std::vector<Point> all;
  for (auto& metric : Wire(request).in(1).in(2).messages(2)) {
    const auto kind = metric.has(5) ? 5U : metric.has(7) ? 7U : 9U;
    auto data = metric.in(kind);
    std::string type = kind == 5 ? "gauge" : kind == 7 ? "sum" : "histogram";
    if (data.number(3) == 1) type += " monotonic";
    if (data.number(2) == 2) type += " cumulative";
    for (auto& p : data.messages(1)) {
      auto real = [&](unsigned n) {
        return fmt::format("{}d", std::bit_cast<double>(p.number(n)));
      };
      std::string value;
      if (kind == 9)
        value = fmt::format("{} of {} below {}, sum {}", p.number(4),
                            fmt::join(packed<std::uint64_t>(p.text(6)), ","),
                            fmt::join(packed<double>(p.text(7)), ","), p.has(5) ? real(5) : "");
      else
        value = p.has(4) ? real(4) : fmt::format("{}", static_cast<std::int64_t>(p.number(6)));
      all.push_back({metric.text(1), metric.text(3), metric.text(2), type,
                     attributes(p, kind == 9 ? 9 : 7), p.number(2), p.number(3), value});
    }
  }
  return all;
}

constexpr std::uint64_t kNow = 1'800'000'000'000'000'000, kSince = 1'700'000'000'000'000'000;

struct Pushed {
  std::vector<Point> points;
  std::uint64_t malformed;
};

Pushed pushed(std::string_view page) {
  OtlpMetrics metrics({"1.2", "here"});
  metrics.add(page, kNow, kSince);
  auto all = points(metrics.finish());
  EXPECT_EQ(all.size(), metrics.points());
  return {all, metrics.malformed()};
}

// ---- metrics ----

/// A point: name, unit, type, value, and its start time.
std::string shown(const Point& p) {
  const auto start = p.start == kSince ? "since" : std::to_string(p.start / 1'000'000'000);
  EXPECT_EQ(p.time, kNow);
  return fmt::format("{} {} {} {} {}", p.name, p.unit, p.type, p.value, start);
}

TEST(Otlp, CountersGaugesAndTheirTimes) {
  auto [p, malformed] = pushed(
      "# HELP coretap_filetop_read_bytes_total bytes \\\\ and\\nlines\n"
      "# TYPE coretap_filetop_read_bytes_total counter\n"
      "coretap_filetop_read_bytes_total{comm=\"a\\\"b\\\\c\\nd\",op=\"R,}\"} 9007199254740993\n"
      "coretap_filetop_read_bytes_total 18446744073709551615\n"
      "# HELP coretap_events_total e\n"
      "# TYPE coretap_events_total counter\n"
      "coretap_events_total{tool=\"other\",outcome=\"shown\"} 5\n"
      "# HELP coretap_tool_cpu_seconds_total c\n"
      "# TYPE coretap_tool_cpu_seconds_total counter\n"
      "coretap_tool_cpu_seconds_total{tool=\"filetop\"} 2\n"
      "# HELP coretap_tool_restarts_total r\n"
      "# TYPE coretap_tool_restarts_total counter\n"
      "coretap_tool_restarts_total{tool=\"filetop\"} 1\n"
      "# HELP coretap_tool_start_time_seconds s\n"
      "# TYPE coretap_tool_start_time_seconds gauge\n"
      "coretap_tool_start_time_seconds{tool=\"filetop\"} 1750000000\n");
  EXPECT_EQ(malformed, 0u);
  ASSERT_EQ(p.size(), 6u);
  EXPECT_EQ(p[0].help, "bytes \\ and\nlines");
  EXPECT_EQ(p[0].labels, (Attributes{{"comm", "'a\"b\\c\nd'"}, {"op", "'R,}'"}}));
  EXPECT_TRUE(p[1].labels.empty());
  constexpr std::string_view expected[] = {
      // Not representable as a double.
      "coretap.filetop.read By sum monotonic cumulative 9007199254740993 1750000000",
      "coretap.filetop.read By sum monotonic cumulative 1.8446744073709552e+19d 1750000000",
      // There is no information about this tool.
      "coretap.events {event} sum monotonic cumulative 5 since",
      // Times are doubles, whole or not.
      "coretap.tool.cpu s sum monotonic cumulative 2d 1750000000",
      // Counted by the process that starts tools.
      "coretap.tool.restarts  sum monotonic cumulative 1 since",
      "coretap.tool.start_time s gauge 1750000000d 0"};
  for (std::size_t i = 0; i < p.size(); i++) EXPECT_EQ(shown(p[i]), expected[i]);
}

TEST(Otlp, SeriesOfAnEntryBeginWithIt) {
  auto [p, malformed] = pushed(
      "# TYPE coretap_runqlat_total counter\ncoretap_runqlat_total{entry=\"two\"} 1\n"
      "# TYPE coretap_tool_start_time_seconds gauge\n"
      "coretap_tool_start_time_seconds{tool=\"runqlat\"} 1750000000\n"
      "coretap_tool_start_time_seconds{tool=\"two\"} 1760000000\n");
  ASSERT_EQ(p.size(), 3u);
  EXPECT_EQ(p[0].start, 1'760'000'000'000'000'000u);
}

TEST(Otlp, Histograms) {
  Family f{
      .name = "coretap_h_seconds", .type = Type::histogram, .help = "h", .unit = {"seconds", 1, 1}};
  f.buckets = {.first = 0, .bounds = {2'000, 4'000}};
  const std::uint64_t one[] = {3, 2, 1, 12'345}, none[] = {0, 0, 0, 0};
  Page page;
  page.family(f.name, f.type, f.help);
  page.samples(f, "{disk=\"sda\"}", one);
  page.samples(f, "{disk=\"sdb\"}", none);
  page.samples(f, "", one);
  auto [p, malformed] = pushed(page.take());
  EXPECT_EQ(malformed, 0u);
  ASSERT_EQ(p.size(), 3u);
  EXPECT_EQ(shown(p[0]),
            "coretap.h s histogram cumulative 6 of 3,2,1 below 2e-06,4e-06, sum 1.2345e-05d since");
  EXPECT_EQ(p[0].labels, (Attributes{{"disk", "'sda'"}}));
  EXPECT_EQ(p[1].labels, (Attributes{{"disk", "'sdb'"}}));
  EXPECT_TRUE(p[1].value.starts_with("0 of 0,0,0 below")) << p[1].value;
  EXPECT_EQ(p[2].labels, Attributes());
}

TEST(Otlp, HistogramsThatAreNotWholeAreLeftOut) {
  const std::string head = "# TYPE coretap_h histogram\n";
  const std::string good =
      "coretap_h_bucket{le=\"1\"} 1\ncoretap_h_bucket{le=\"+Inf\"} 2\ncoretap_h_sum 3\n"
      "coretap_h_count 2\n";
  EXPECT_EQ(pushed(head + good).points.size(), 1u);
  for (std::string bad :
       {"coretap_h_bucket{le=\"1\"} 1\ncoretap_h_bucket{le=\"+Inf\"} 2\n",  // no count
        "coretap_h_bucket{le=\"1\"} 1\ncoretap_h_count 2\n",                // incomplete
        "coretap_h_bucket{le=\"+Inf\"} 3\ncoretap_h_count 2\n",             // two sums
        "coretap_h_bucket{le=\"1\"} 3\ncoretap_h_bucket{le=\"2\"} 2\n"      // decreasing
        "coretap_h_bucket{le=\"+Inf\"} 4\ncoretap_h_count 4\n",
        "coretap_h_bucket{le=\"1\"} 3\ncoretap_h_bucket{le=\"+Inf\"} 2\ncoretap_h_count 2\n",
        "coretap_h_bucket{le=\"2\"} 1\ncoretap_h_bucket{le=\"1\"} 2\n"  // out of order
        "coretap_h_bucket{le=\"+Inf\"} 2\ncoretap_h_count 2\n",
        "coretap_h_bucket{le=\"x\"} 1\ncoretap_h_bucket{le=\"+Inf\"} 2\ncoretap_h_count 2\n",
        "coretap_h_bucket 1\ncoretap_h_bucket{le=\"+Inf\"} 2\ncoretap_h_count 2\n",
        "coretap_h_bucket{le=\"1\"} -1\ncoretap_h_bucket{le=\"+Inf\"} 2\ncoretap_h_count 2\n",
        "coretap_h_other 2\n"}) {
    auto [p, malformed] = pushed(head + bad);
    EXPECT_TRUE(p.empty()) << bad;
    EXPECT_GT(malformed, 0u) << bad;
  }
}

TEST(Otlp, HostilePages) {
  for (std::string_view bad :
       {"x", "# TYPE", "# TYPE a b\na 1", "# TYPE a counter\na", "# TYPE a counter\na ",
        "# TYPE a counter\na x\n", "# TYPE a counter\na 1 2\n", "# TYPE a counter\na{ 1\n",
        "# TYPE a counter\na{b} 1\n", "# TYPE a counter\na{b=\"c} 1\n",
        "# TYPE a counter\na{b=\"c\\\"} 1\n", "# TYPE a counter\na{=\"\"} 1\n",
        "# TYPE a counter\na{b=\"\",} 1\n", "# TYPE a counter\na{b=\"\"c} 1\n",
        "# TYPE a counter\n{a=\"\"} 1\n", "# TYPE a counter\nb 1\n", "a 1\n# TYPE a counter\n"})
    EXPECT_TRUE(pushed(bad).points.empty()) << bad;
  EXPECT_TRUE(pushed("").points.empty());
  EXPECT_EQ(pushed("# TYPE a counter\nb 1\n\n# a comment\n").malformed, 1u);
  // Engines reject a whole request for one text that is not UTF-8.
  auto p = pushed("# HELP a \xff\n# TYPE a counter\na{b=\"\xc3\",\xfe=\"\"} 1\n").points;
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].help, "\xef\xbf\xbd");
  EXPECT_EQ(p[0].labels, (Attributes{{"b", "'\xef\xbf\xbd'"}, {"\xef\xbf\xbd", "''"}}));
  // Any number of buckets and of lines.
  std::string many = "# TYPE h histogram\n";
  for (int i = 0; i < 5000; i++) many += fmt::format("h_bucket{{le=\"{}\"}} 1\n", i);
  EXPECT_TRUE(pushed(many + "h_bucket{le=\"+Inf\"} 1\nh_count 1\n").points.empty());
  many = "# TYPE a counter\n";
  for (int i = 0; i < 50'000; i++) many += fmt::format("a{{n=\"{}\"}} {}\n", i, i);
  EXPECT_EQ(pushed(many).points.size(), 50'000u);
}

TEST(Otlp, TheSender) {
  auto resource = Wire(OtlpMetrics({"1.2", "here\xff"}).finish()).in(1).in(1);
  EXPECT_EQ(attributes(resource, 1), (Attributes{{"service.name", "'coretap'"},
                                                 {"service.version", "'1.2'"},
                                                 {"host.name", "'here\xef\xbf\xbd'"},
                                                 {"service.instance.id", "'here\xef\xbf\xbd'"}}));
}

/// As generated by engines with Prometheus names: words, unit, total.
std::string prometheus_name(const OtlpName& otlp, Type type) {
  auto name = otlp.name;
  for (auto& c : name)
    if (c == '.') c = '_';
  const std::map<std::string_view, std::string_view> kWords{{"s", "seconds"}, {"By", "bytes"}};
  WordSet words;
  std::istringstream in(name);
  for (std::string word; std::getline(in, word, '_');) words.insert(word);
  EXPECT_FALSE(words.contains("total")) << name << ": engines take the word for a suffix";
  if (auto unit = kWords.find(otlp.unit);
      unit != kWords.end() && !words.contains(std::string(unit->second)))
    name += fmt::format("_{}", unit->second);
  if (otlp.unit == "1" && type == Type::gauge) name += "_ratio";
  if (type == Type::counter) name += "_total";
  return name;
}

TEST(Otlp, NamesOfAllToolsAreThoseOfTheScrape) {
  WordSet seen;
  auto check = [&](const Family& f) {
    auto otlp = otlp_name(f.name, f.type);
    EXPECT_EQ(prometheus_name(otlp, f.type), f.name);
    EXPECT_EQ(otlp.name.find("_total"), otlp.name.npos) << otlp.name;
    EXPECT_TRUE(otlp.name.starts_with("coretap.")) << otlp.name;
    seen.insert(f.name);
  };
  for (auto& tool : all_tools()) {
    auto plan = make_plan(tool, Config(), {});
    if (!plan) continue;
    for (auto& f : (*plan)->families) check(f);
    for (auto& f : (*plan)->totals) check(f);
  }
  EXPECT_GT(seen.size(), 150u);
  EXPECT_EQ(otlp_name("coretap_biolatency_seconds", Type::histogram).name, "coretap.biolatency");
  EXPECT_EQ(otlp_name("coretap_numamove_timed_migrations_total", Type::counter).name,
            "coretap.numamove.timed_migrations");
  EXPECT_EQ(otlp_name("coretap_x_hit_ratio", Type::gauge).unit, "1");
  EXPECT_EQ(otlp_name("coretap_tool_up", Type::gauge).unit, "");
}

// ---- events ----

Wire record(const std::string& line, std::string_view entry = {}) {
  OtlpLogs logs({"1.2", "here"});
  EXPECT_TRUE(logs.add(line, entry, kNow)) << line;
  EXPECT_EQ(logs.records(), 1u);
  EXPECT_GT(logs.bytes(), line.size());
  auto request = logs.take();
  EXPECT_EQ(logs.records() + logs.bytes(), 0u);
  return Wire(request).in(1).in(2).in(2);
}

std::string event(const std::string& more,
                  const std::string& time = "2026-11-25T15:16:08.123456+01:00") {
  return R"({"type":"event","tool":"execsnoop","time":")" + time + "\"" + more + "}";
}

TEST(Otlp, Events) {
  auto line =
      event(R"(,"monotonic_ns":18446744073709551615,"pid":7,"uid":0,"comm":"a\u0000\"","ret":-2,)"
            R"("error":null,"container":null,"ratio":0.5,"whole":2.0,"incomplete":true,)"
            R"("args":["a",1,["b"]],"by":{"x":1,"y":null})");
  auto r = record(line);
  EXPECT_EQ(r.number(1), 1795616168'123456000u);
  EXPECT_EQ(r.number(11), kNow);
  EXPECT_EQ(r.text(12), "coretap.execsnoop");
  EXPECT_EQ(any(r.in(5)), "'" + line + "'");
  EXPECT_EQ(attributes(r, 6), (Attributes{{"coretap.monotonic_ns", "'18446744073709551615'"},
                                          {"process.pid", "7"},
                                          {"user.id", "'0'"},
                                          {"thread.name", std::string("'a\0\"'", 5)},
                                          {"coretap.ret", "-2"},
                                          {"coretap.ratio", "0.5d"},
                                          {"coretap.whole", "2d"},
                                          {"coretap.incomplete", "true"},
                                          {"coretap.args", "['a',1,['b']]"},
                                          {"coretap.by", "{x=1,y=nothing}"}}));
  EXPECT_FALSE(r.has(7));
  EXPECT_EQ(attributes(record(event(""), "mine"), 6), (Attributes{{"coretap.entry", "'mine'"}}));
  EXPECT_EQ(attributes(record(event(",\"a\":\"x\\udc00\"")), 6),
            (Attributes{{"coretap.a", "'x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd'"}}))
      << "half of a surrogate is no UTF-8";
  EXPECT_EQ(record(event("", "1970-01-01T00:00:00.000001-00:30")).number(1), 1'800'000'001'000u);
}

TEST(Otlp, WhatIsNoEventIsLeftOut) {
  OtlpLogs logs({"1.2", "here"});
  auto refused = [&](const std::string& line) {
    EXPECT_FALSE(logs.add(line, "", kNow)) << line.substr(0, 100);
  };
  for (auto* line : {"", "{}", "[]", "1",
                     R"({"type":"ledger","tool":"x","time":"2026-11-25T15:16:08.123456+01:00"})",
                     R"({"type":"event","time":"2026-11-25T15:16:08.123456+01:00"})"})
    refused(line);
  for (auto& behind : {"x"s, "\0\xff"s}) refused(event("") + behind);
  for (auto* time :
       {"2026-11-25", "2026-11-25T15:16:08.12345x+01:00", "1960-11-25T15:16:08.123456+01:00"})
    refused(event("", time));
  for (auto& value : {"\"\xff\""s, "\"\\ud800\""s, std::string(60'000, '['),
                      "\"" + std::string(OtlpLogs::kLongestLine, 'x') + "\""})
    refused(event(",\"a\":" + value));
  EXPECT_EQ(logs.records() + logs.bytes(), 0u);
}

TEST(Otlp, EventsAreBounded) {
  std::string many;
  for (int i = 0; i < 200; i++) many += fmt::format(",\"k{}\":{}", i, i);
  auto r = record(event(many));
  EXPECT_EQ(attributes(r, 6).size(), 128u);
  EXPECT_EQ(r.number(7), 72u);
  auto deep = record(event(",\"a\":" + std::string(30'000, '[') + std::string(30'000, ']')));
  EXPECT_EQ(attributes(deep, 6).size(), 0u);
  EXPECT_EQ(deep.number(7), 1u);
  std::string items = "1";
  for (int i = 0; i < 2000; i++) items += ",1";
  EXPECT_EQ(record(event(",\"a\":[" + items + "]")).number(7), 1u);
}

// ---- responses ----

TEST(Otlp, WhatAnEngineRefused) {
  EXPECT_EQ(otlp_rejected(""), 0u);
  EXPECT_EQ(otlp_rejected({"\x0a\x02\x08\x07", 4}), 7u);
  EXPECT_EQ(otlp_rejected({"\x0a\x06\x12\x02no\x08\x07", 8}), 7u);
  EXPECT_EQ(otlp_rejected({"\x0a\x00", 2}), 0u);
  EXPECT_EQ(otlp_rejected({"\x0a\x7f\x08", 3}), 0u);
  EXPECT_EQ(otlp_rejected("not found"), 0u);
  EXPECT_EQ(otlp_rejected({"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13}), 0u);
}

}  // namespace
}  // namespace coretap::metrics
