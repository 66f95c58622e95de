// Words for tests of several directories, beside those of observe.hpp: several workloads at once,
// rows of text, command lines that are refused.
#pragma once

#include "../harness.hpp"

namespace coretap::tooltest {

/// What tools printed of one of several workloads.
struct Seen : Observed {
  std::uint64_t netns = 0;  ///< its network namespace

  std::vector<Json> body(std::size_t tool = 0) const { return report(tool).body; }
  std::size_t shown(std::size_t tool) const { return body(tool).size(); }
  /// What the workload says of a key, when it is ready or at the end.
  Json of(const char* key) const { return (ready.has(key) ? ready : truth)[key]; }
  std::uint64_t number(const char* key) const { return of(key).u64(); }
  /// {pid} and {KEY} in words are replaced by what the workload says, by the first of a list.
  std::string filled(std::string words) const;
};

inline std::string Seen::filled(std::string words) const {
  for (auto begin = words.find('{'); begin != words.npos; begin = words.find('{')) {
    auto end = words.find('}', begin);
    auto key = words.substr(begin + 1, end - begin - 1);
    auto value = key == "pid" ? Json::parse(std::to_string(pid)) : of(key.c_str());
    if (value.text().starts_with('[')) value = value.items().at(0);
    words.replace(begin, end - begin + 1, value.is_string() ? value.str() : value.text());
  }
  return words;
}

/// A workload, and the tools in whose words {pid} and {KEY} are its own, {0} the id of the first,
/// {netns} the number of its network namespace.
struct Watched {
  Strings workload;
  std::vector<Strings> tools = {};
};

inline std::vector<Seen> watch_all(const std::vector<Watched>& all,
                                   const Workload::How& how = kLinger) {
  std::vector<std::unique_ptr<Scene>> scenes;
  std::vector<std::vector<Tracer*>> tracers(all.size());
  std::vector<Seen> seen(all.size());
  for (auto& one : all)
    for (auto& tool : one.tools) require_tool(tool.at(0));
  for (auto& one : all) scenes.push_back(std::make_unique<Scene>(one.workload, how));
  for (std::size_t i = 0; i < all.size(); i++) {
    struct stat st {};
    auto id = scenes[i]->workload().id();
    if (::stat(("/proc/" + id + "/ns/net").c_str(), &st) == 0) seen[i].netns = st.st_ino;
    std::map<std::string, std::string> values{{"{netns}", std::to_string(seen[i].netns)}};
    for (std::size_t n = 0; n < all.size(); n++)
      values["{" + std::to_string(n) + "}"] = scenes[n]->workload().id();
    for (auto words : all[i].tools) {
      for (auto& word : words)
        for (auto& [key, value] : values)
          if (auto at = word.find(key); at != word.npos) word.replace(at, key.size(), value);
      tracers[i].push_back(&scenes[i]->trace(words));
    }
    seen[i].ready = scenes[i]->ready();
    seen[i].pid = std::stoull(id);
  }
  for (auto& scene : scenes) scene->workload().release();
  for (std::size_t i = 0; i < all.size(); i++) seen[i].truth = scenes[i]->workload().truth();
  for (std::size_t i = 0; i < all.size(); i++)
    for (auto* tracer : tracers[i]) {
      seen[i].out.push_back(tracer->stop_text());
      seen[i].err.push_back(tracer->process().err());
    }
  return seen;
}
template <std::size_t N>
std::array<Seen, N> watch_each(const Watched (&all)[N], const Workload::How& how = kLinger) {
  auto seen = watch_all({std::begin(all), std::end(all)}, how);
  std::array<Seen, N> each;
  std::move(seen.begin(), seen.end(), each.begin());
  return each;
}

/// The only line; throws where there is none, or another one.
inline Json only(const std::vector<Json>& lines) { return line_with(lines, {}); }

/// The values are those under the same keys of another line, or under {key, key of that one}.
inline void expect_same(const Json& line, const Json& other, std::initializer_list<SameSum> keys,
                        Location where = Location::current()) {
  for (auto& [key, of] : keys)
    if (auto shown = line[key].text(), known = other[of].text(); shown != known)
      ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
          << key << " is " << shown << ", not " << known << " in " << line.text();
}

/// The same as expect_fields({{"comm", "tcp"}, ...}) in words, "comm tcp uid 0 error null".
inline void expect_fields(const Json& line, const Strings& words,
                          Location where = Location::current()) {
  for (std::size_t i = 0; i < words.size(); i += 2) {
    auto value = line[words[i].c_str()];
    const auto& wanted = words.at(i + 1);
    bool bare = wanted == "null" || wanted == "true" || wanted == "false" ||
                wanted.find_first_not_of("0123456789") == wanted.npos;
    if (bare == value.is_string() || (bare ? value.text() : value.str()) != wanted)
      ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
          << words[i] << " is not " << wanted << " in " << line.text();
  }
}

/// As tools show an error; 0 is none.
inline Value error_name(std::int64_t error) {
  if (!error) return nullptr;
  return std::string(::strerrorname_np(static_cast<int>(error)));
}

/// The value, or none.
inline Value or_null(bool known, Value value) { return known ? std::move(value) : nullptr; }

/// The words of a row of text; "*" is any word.
inline void expect_row(const std::string& row, const Strings& wanted,
                       Location where = Location::current()) {
  auto cells = words(row);
  for (std::size_t i = 0; i < wanted.size() && i < cells.size(); i++)
    if (wanted[i] == "*") cells[i] = "*";
  if (cells != wanted)
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
        << "not '" << join(wanted) << "': " << row;
}

/// Words that a tool refuses, and what it says then.
struct Refusal {
  Strings words;
  std::string says = {};
  int status = 2;
};
inline void expect_refusals(const std::string& tool, const std::vector<Refusal>& all,
                            Location where = Location::current()) {
  for (auto& [words, says, status] : all) {
    auto result = run(Strings{tool_path(tool), "--duration", "0.1"} + words);
    if (result.status != status || !contains(result.err, says) || !result.out.empty())
      ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
          << ::testing::PrintToString(words) << " ended with " << result.status << ", not "
          << status << " and '" << says << "': " << result.err << result.out;
  }
}

/// The same of some that all say this.
inline void expect_all_refused(const std::string& tool, const std::vector<Strings>& all,
                               const std::string& says = {}, Location where = Location::current()) {
  for (auto& words : all) expect_refusals(tool, {{words, says}}, where);
}

/// The titles of columns with each of these options.
inline void expect_columns(const std::string& tool,
                           const std::vector<std::pair<Strings, Strings>>& all) {
  require_tool(tool);
  for (auto& [options, titles] : all) EXPECT_EQ(header_of(tool, options), titles) << join(options);
}

}  // namespace coretap::tooltest
