#include "metrics/printed.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.hpp"
#include "coretap/sanitize.hpp"
#include "text/json_kinds.hpp"

namespace coretap::metrics {

namespace {

constexpr std::string_view kOrNull = " or null";

/// A key, common to all kinds of lines that have it.
struct Column {
  OutputKey key;
  std::vector<std::string> docs;
};

std::string type_of(const OutputKey& k);

std::string not_null(const OutputKey& k, std::string_view type) {
  if (type == "integer") return k.negative ? "Int64" : "UInt64";
  if (type == "number") return "Float64";
  if (type == "boolean") return "Bool";
  if (type == "array of strings") return "Array(String)";
  if (type == "array of numbers") return "Array(Float64)";
  if (type == "object") return "Map(String, String)";
  if (type != "array of objects") return "String";
  std::vector<std::string> members;
  for (auto& m : k.members) members.push_back(fmt::format("`{}` {}", m.name, type_of(m)));
  return fmt::format("Array(Tuple({}))", fmt::join(members, ", "));
}

std::string type_of(const OutputKey& k) {
  std::string_view type = k.type;
  if (k.name == "type" || k.name == "tool") return "LowCardinality(String)";
  // Lines of sums over the whole run have no time.
  if (k.name == "time") return "DateTime64(9) DEFAULT now64(9)";
  if (!type.ends_with(kOrNull)) return not_null(k, type);
  type.remove_suffix(kOrNull.size());
  return fmt::format("Nullable({})", not_null(k, type));
}

/// Description of the key, with the condition for its presence.
std::string doc_of(const OutputKey& k) {
  auto doc = k.doc;
  if (!k.when.empty()) doc += fmt::format(" ({})", condition_words(k.when));
  for (auto& m : k.members) doc += fmt::format("; {}: {}", m.name, doc_of(m));
  return doc;
}

void add(std::vector<Column>& columns, const OutputKey& k) {
  auto at = std::ranges::find_if(columns, [&](auto& c) { return c.key.name == k.name; });
  if (at == columns.end()) at = columns.insert(at, {k, {}});
  // Other kinds of lines have the same type, but perhaps never null (test
  // AKeyHasOneTypeInAllTools).
  if (k.type.ends_with(kOrNull)) at->key.type = k.type;
  at->key.negative |= k.negative;
  if (auto doc = doc_of(k); std::ranges::find(at->docs, doc) == at->docs.end())
    at->docs.push_back(std::move(doc));
}

}  // namespace

std::string tables_head() {
  return "-- Tables of ClickHouse for the lines of --json. This reads lines:\n"
         "-- INSERT INTO coretap_TOOL SETTINGS date_time_input_format = 'best_effort' FORMAT "
         "JSONEachRow\n"
         "-- What a line lacks is 0, empty or null; `type` says what kind of line it is.\n";
}

std::string table(const Tool& tool) {
  std::vector<Column> columns;
  for (auto& kind : json_kinds(tool))
    for (auto& k : kind.keys) add(columns, k);
  std::string name(tool.name);
  std::ranges::replace(name, '-', '_');
  auto text = fmt::format("CREATE TABLE IF NOT EXISTS coretap_{} (\n", name);
  for (auto& c : columns)
    text += fmt::format("  `{}` {} COMMENT {},\n", c.key.name, type_of(c.key),
                        quoted(fmt::format("{}", fmt::join(c.docs, " | ")), '\''));
  text.resize(text.size() - 2);
  return text + fmt::format("\n) ENGINE = MergeTree ORDER BY time COMMENT {};\n",
                            quoted(tool.summary, '\''));
}

}  // namespace coretap::metrics
