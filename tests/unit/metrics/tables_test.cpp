// Tables of ClickHouse: a column for each key of the lines, of a type that holds its values.
#include "metrics/tables.hpp"

#include "all_tools.hpp"
#include "text/json_kinds.hpp"

namespace coretap::metrics {
namespace {

/// Types by column, of the statement for a tool.
std::map<std::string, std::string> columns_of(const Tool& tool) {
  auto text = table(tool);
  std::map<std::string, std::string> all;
  const std::regex column("\n  `([a-z0-9_]+)` (.*?) COMMENT '.+'");
  for (std::sregex_iterator m(text.begin(), text.end(), column), end; m != end; ++m)
    EXPECT_TRUE(all.emplace((*m)[1], (*m)[2]).second) << (*m)[1] << " twice";
  return all;
}
std::map<std::string, std::string> columns_of(std::string_view name) {
  return columns_of(build(*find_tool(name)));
}

TEST(Tables, HaveAColumnForEachKey) {
  for (auto& tool : all_tools()) {
    SCOPED_TRACE(tool.name);
    std::map<std::string, bool> keys;  // and whether it may be null
    for (auto& kind : json_kinds(tool))
      for (auto& k : kind.keys) keys[k.name] |= k.type.ends_with(" or null");
    auto columns = columns_of(tool);
    EXPECT_EQ(columns.size(), keys.size());
    for (auto& [name, null] : keys) {
      ASSERT_TRUE(columns.contains(name)) << name;
      EXPECT_EQ(columns[name].starts_with("Nullable("), null) << name;
    }
  }
}

TEST(Tables, TypesHoldTheValues) {
  auto type = [](const std::string& column) {
    auto dot = column.find('.');
    return columns_of(column.substr(0, dot))[column.substr(dot + 1)];
  };
  expect_each(type, {"execsnoop.type => LowCardinality(String)",
                     "execsnoop.time => DateTime64(9) DEFAULT now64(9)", "execsnoop.ret => Int64",
                     "execsnoop.pid => UInt64", "execsnoop.error => Nullable(String)",
                     "execsnoop.incomplete => Bool", "execsnoop.args => Array(String)",
                     "execsnoop.options => Map(String, String)",
                     "opensnoop.dirfd => Nullable(Int64)", "traceloop.result => Nullable(Int64)",
                     "biolatency.histogram => Array(Tuple(`from_ns` UInt64, `below_ns` UInt64, "
                     "`count` UInt64))",
                     "cachestat.hit_ratio => Nullable(Float64)",
                     "offcputime.kernel_stack => Array(String)"});
}

// A quote would end the comment.
TEST(Tables, CommentsAreQuoted) {
  auto text = table(build(*find_tool("opensnoop")));
  EXPECT_TRUE(says(text, "the kernel\\'s monotonic clock"));
  for (std::size_t at = text.find("COMMENT '"); at != text.npos; at = text.find("COMMENT '", at)) {
    at += std::string_view("COMMENT '").size();
    while (text[at] != '\'') at += text[at] == '\\' ? 2 : 1;
    EXPECT_TRUE(text[at + 1] == ',' || text[at + 1] == '\n' || text[at + 1] == ';')
        << text.substr(at, 60);
  }
}

}  // namespace
}  // namespace coretap::metrics
