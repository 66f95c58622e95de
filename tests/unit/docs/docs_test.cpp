// Generated documents: as in tests/golden, and true to what the reporters write.
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "docs/completion.hpp"
#include "docs/documents.hpp"
#include "docs/keys.hpp"
#include "docs/man.hpp"
#include "docs/readme.hpp"
#include "places.hpp"
#include "program/session.hpp"
#include "reports/histogram.hpp"
#include "reports/reporter.hpp"
#include "text/columns.hpp"

namespace coretap {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// "line 12: 'old' has become 'new'", or empty.
std::string first_difference(const std::string& golden, const std::string& now) {
  auto a = lines(golden), b = lines(now);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); i++) {
    auto old = i < a.size() ? a[i] : "(end)", fresh = i < b.size() ? b[i] : "(end)";
    if (old != fresh) return fmt::format("line {}: '{}' has become '{}'", i + 1, old, fresh);
  }
  return golden == now ? "" : "line ends differ";
}

TEST(Golden, DocumentsAreAsRecorded) {
  fs::path golden = fs::path(places::source_dir()) / "tests/golden";
  ASSERT_TRUE(fs::exists(golden)) << "scripts/golden makes it";
  auto all = documents();
  for (auto& [path, text] : all) {
    EXPECT_TRUE(fs::exists(golden / path)) << path << " is new: run scripts/golden";
    if (fs::exists(golden / path)) {
      EXPECT_EQ(first_difference(content(golden / path), text), "")
          << path << ": run scripts/golden";
    }
  }
  for (auto& entry : fs::recursive_directory_iterator(golden))
    if (entry.is_regular_file()) {
      auto path = fs::relative(entry.path(), golden).generic_string();
      EXPECT_TRUE(all.contains(path)) << path << " is stale: run scripts/golden";
    }
}

TEST(Golden, ReadmeHasTheTable) {
  fs::path readme = fs::path(places::source_dir()) / "README.md";
  if (!fs::exists(readme)) GTEST_SKIP() << "there is no README.md";
  EXPECT_NE(content(readme).find("<!-- tools -->\n" + readme_tool_table() + "<!-- /tools -->"),
            std::string::npos)
      << "run scripts/golden";
}

TEST(Documents, FitATerminalAndName) {
  for (auto& entry : registry()) {
    auto tool = build(entry);
    for (auto& line : lines(help_text(tool)))
      EXPECT_LE(line.size(), 80u) << tool.name << ": " << line;
    EXPECT_NE(coretap_man_page().find(fmt::format(".Xr {} 8", tool.name)), std::string::npos);
    for (auto& script : {bash_completion(), zsh_completion(), fish_completion()})
      for (auto& o : all_options(tool))
        EXPECT_NE(script.find(o.name), std::string::npos) << tool.name << " --" << o.name;
  }
}

TEST(Documents, CallToolsAsTheInstallationDoes) {
  for (auto& naming : {Naming{}, Naming{.prefix = "ct-"}, Naming{.own_names = false}}) {
    auto all = documents(naming);
    for (auto& entry : registry()) {
      auto page = naming.page(entry.name), command = naming.command(entry.name);
      auto& text = all.at(fmt::format("man/{}.8", page));
      EXPECT_NE(text.find(fmt::format(".Sh NAME\n.Nm {}\n", page)), text.npos) << page;
      EXPECT_NE(text.find(fmt::format(".Sh SYNOPSIS\n.Nm {}\n", command)), text.npos) << page;
      auto typed = naming.prefix.empty() ? command : "ct\\-" + std::string(entry.name);
      EXPECT_NE(text.find(fmt::format("\n.Dl {}", typed)), text.npos) << page;
      EXPECT_NE(all.at("man/coretap.8").find(fmt::format(".It Xr {} 8\n", page)), text.npos)
          << page;
      // No page leads to one that this installation has not.
      for (auto& line : lines(text)) {
        if (!line.starts_with(".Xr ")) continue;
        auto other = line.substr(4, line.find(' ', 4) - 4);
        EXPECT_TRUE(all.contains(fmt::format("man/{}.8", other))) << page << ": " << other;
      }
    }
    // The names of others' tools are not ours to complete.
    EXPECT_EQ(all.at("completion/bash/coretap").find("complete -F _coretap coretap\n") ==
                  std::string::npos,
              naming.own_names);
    EXPECT_EQ(all.at("completion/zsh/_coretap").starts_with("#compdef coretap\n"),
              !naming.own_names);
    EXPECT_EQ(
        all.at("completion/fish/coretap.fish").find("complete -c runqlat ") == std::string::npos,
        !naming.own_names || !naming.prefix.empty());
  }
}

TEST(Conditions, AreWords) {
  EXPECT_EQ(condition_words(""), "");
  EXPECT_EQ(condition_words("queued"), "with --queued");
  EXPECT_EQ(condition_words("!queued"), "without --queued");
  EXPECT_EQ(condition_words("pids|tids"), "with --pids or --tids");
  EXPECT_EQ(condition_words("task-filter"), "with a filter by task");
  EXPECT_EQ(condition_words("memcg|task-filter"), "with --memcg or a filter by task");
}

TEST(Help, WrapsAtWords) {
  EXPECT_EQ(wrap("one two three", 2, 9), "  one two\n  three\n");
  EXPECT_EQ(wrap("one\n\ntwo", 0), "one\n\ntwo\n");
  EXPECT_EQ(wrap("incomprehensibilities", 4, 10), "    incomprehensibilities\n");
}

TEST(Man, EscapesWhatWouldBeAMacro) {
  Tool tool;
  tool.name = "example";
  tool.summary = "It is No macro";
  tool.description = ".dots and 'quotes' begin lines. With --json a \\ stays (see /proc/stat).";
  tool.report = AggregateReport{};
  auto page = man_page(tool);
  EXPECT_NE(page.find(".Nd \\&It is \\&No macro\n"), std::string::npos) << page;
  EXPECT_NE(
      page.find("\n\\&.dots and \\(aqquotes\\(aq begin lines.\nWith\n.Fl -json\na \\e stays (see\n"
                ".Pa /proc/stat ) .\n"),
      std::string::npos)
      << page;
}

// --- the keys are those that are written ---------------------------------------------------------

/// Standard output of a session, which needs no kernel for this.
struct Written {
  Written(const Tool& tool, OutputFormat format) {
    Config config;
    config.format = format;
    FILE* file = tmpfile();
    Session s(tool, config);
    s.out = Sink(fileno(file));
    auto reporter = tool.report->reporter();
    reporter->configure(s);
    reporter->begin(s);
    if (tool.report->name() == "event") {
      // Longer than any record without its stack.
      std::vector<std::uint64_t> zeros(128);
      reporter->record(s, zeros.data(), zeros.size() * 8);
    }
    reporter->report(s);
    s.out.flush();
    rewind(file);
    char buffer[4096];
    std::string text;
    while (auto n = fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
    fclose(file);
    all = lines(text);
  }
  std::vector<std::string> all;
};

std::string type_of(const rapidjson::Value& v) {
  if (v.IsString()) return "string";
  if (v.IsBool()) return "boolean";
  if (v.IsArray()) return "array";
  if (v.IsObject()) return "object";
  if (v.IsNull()) return "null";
  return v.IsDouble() ? "number" : "integer";
}

void expect_line(std::string_view line, const std::vector<OutputKey>& keys) {
  rapidjson::Document written;
  written.Parse(line.data(), line.size());
  ASSERT_TRUE(written.IsObject()) << line;
  auto member = written.MemberBegin();
  for (auto& key : keys) {
    if (!Config().holds(key.when)) continue;
    ASSERT_NE(member, written.MemberEnd()) << key.name << " is not written: " << line;
    EXPECT_EQ(member->name.GetString(), key.name) << line;
    EXPECT_NE(key.type.find(type_of(member->value)), std::string::npos)
        << key.name << " is not '" << key.type << "': " << line;
    ++member;
  }
  EXPECT_EQ(member, written.MemberEnd()) << member->name.GetString() << " is not documented";
}

std::string row_of_zeros(const Report& report) {
  Config config;
  config.format = OutputFormat::json;
  Columns columns;
  columns.choose(config, report->fields());
  std::vector<std::uint64_t> zeros(128);
  JsonLine line;
  line.text("type", "row").text("time", "");
  columns.json(line, zeros.data(), {});
  return std::string(line.finish());
}

TEST(Keys, OfJsonAreWritten) {
  for (auto& entry : registry()) {
    auto tool = build(entry);
    SCOPED_TRACE(tool.name);
    auto kinds = json_kinds(tool);
    auto kind = tool.report->name();
    auto expected = 2 + tool.report->json().size();
    for (auto& other : tool.other_reports) expected += other.report->json().size();
    ASSERT_EQ(kinds.size(), expected);
    if (kind == "recorder")
      continue;  // nothing is written without a call: its tool's tests compare
    Written written(tool, OutputFormat::json);
    // Totals by stack and by key come from the kernel alone.
    if (kind == "stacks" || kind == "outstanding") continue;
    if (kinds[1].type == "row") {
      EXPECT_TRUE(written.all.empty()) << "a row of nothing";
      expect_line(row_of_zeros(tool.report), kinds[1].keys);
      continue;
    }
    if (kinds[1].type == "histogram" && kinds[1].keys[2].name != "count" &&
        kinds[1].keys[2].when.empty() && written.all.empty())
      continue;  // one for each key, and nothing has any
    ASSERT_EQ(written.all.size(), 1u);
    expect_line(written.all[0], kinds[1].keys);
  }
}

TEST(Keys, OfCsvAreWritten) {
  for (auto& entry : registry()) {
    auto tool = build(entry);
    SCOPED_TRACE(tool.name);
    std::vector<Report> reports{tool.report};
    for (auto& other : tool.other_reports) reports.push_back(other.report);
    for (auto& report : reports) {
      tool.report = report;
      std::string header;
      auto columns = report->csv();
      // Of these there are as many as the machine asks for.
      if (columns.back().name.ends_with("_N")) columns.pop_back();
      for (auto& key : columns)
        if (Config().holds(key.when)) header += (header.empty() ? "" : ",") + key.name;
      Written written(tool, OutputFormat::csv);
      ASSERT_FALSE(written.all.empty());
      EXPECT_EQ(written.all[0], header);
    }
  }
}

TEST(Keys, OfHistogramsAreWritten) {
  hist h{};
  h.slots[3] = 2;
  const HistogramScale scales[] = {
      {unit::ns, 1000}, {unit::bytes, 1024}, {unit::sectors, 1}, {unit::plain, 1, true}};
  for (auto& scale : scales) {
    JsonLine line;
    json_histogram(line, h, scale);
    rapidjson::Document written;
    auto text = line.finish();
    written.Parse(text.data(), text.size());
    auto keys = histogram_keys(scale);
    ASSERT_EQ(written.MemberCount(), keys.size());
    for (auto& key : keys) EXPECT_TRUE(written.HasMember(key.name.c_str())) << key.name;
    auto& slot = written["histogram"][0];
    ASSERT_EQ(slot.MemberCount(), keys.back().members.size());
    for (auto& key : keys.back().members) EXPECT_TRUE(slot.HasMember(key.name.c_str())) << key.name;
  }
}

TEST(Keys, OfTheLedgerAreExplained) {
  for (auto& entry : registry()) {
    auto kinds = json_kinds(build(entry));
    for (auto& key : kinds.back().keys) EXPECT_NE(key.doc, "") << key.name;
  }
}

}  // namespace
}  // namespace coretap
