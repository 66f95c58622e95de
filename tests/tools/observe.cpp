#include "observe.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <regex>

#include "text.hpp"

namespace coretap::tooltest {

namespace {

/// For a list, its first element.
std::string as_word(const Json& value) {
  if (value.text().starts_with('[')) return as_word(value.items().at(0));
  return value.is_string() ? value.str() : value.text();
}

}  // namespace

void fail_at(Location where, const std::string& what) {
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << what;
}

bool Value::is(const Json& json) const {
  auto* text = std::get_if<std::string>(this);
  return text ? json.is_string() && json.str() == *text : json.text() == this->text();
}

std::string Value::text() const {
  struct {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::uint64_t n) const { return std::to_string(n); }
    std::string operator()(std::int64_t n) const { return std::to_string(n); }
    std::string operator()(const std::string& s) const { return '"' + s + '"'; }
  } shown;
  return std::visit(shown, static_cast<const variant&>(*this));
}

void expect_fields(const Json& line, Fields wanted, Location where) {
  for (auto& [key, value] : wanted)
    if (!line.has(key) || !value.is(line[key]))
      fail_at(where, std::string(key) + " is not " + value.text() + " in " + line.text());
}

void expect_fields(const Json& line, const Strings& words, Location where) {
  for (std::size_t i = 0; i < words.size(); i += 2) {
    auto value = line[words[i].c_str()];
    const auto& wanted = words.at(i + 1);
    bool bare = wanted == "null" || wanted == "true" || wanted == "false" ||
                wanted.find_first_not_of("0123456789") == wanted.npos;
    if (bare == value.is_string() || (bare ? value.text() : value.str()) != wanted)
      fail_at(where, words[i] + " is not " + wanted + " in " + line.text());
  }
}

Value error_name(std::int64_t error) {
  if (!error) return nullptr;
  return std::string(::strerrorname_np(static_cast<int>(error)));
}

std::vector<Json> lines_with(const std::vector<Json>& lines, Fields wanted) {
  std::vector<Json> found;
  for (auto& line : lines) {
    bool all = true;
    for (auto& [key, value] : wanted) all = all && value.is(line[key]);
    if (all) found.push_back(line);
  }
  return found;
}

Json line_with(const std::vector<Json>& lines, Fields wanted) {
  auto found = lines_with(lines, wanted);
  if (found.size() == 1) return found[0];
  std::string words = std::to_string(found.size()) + " lines with";
  for (auto& [key, value] : wanted) words += " " + std::string(key) + " " + value.text();
  for (auto& line : found.empty() ? lines : found) words += "\n" + line.text();
  throw std::runtime_error(words);
}

std::uint64_t sum(const std::vector<Json>& lines, const char* key) {
  std::uint64_t total = 0;
  for (auto& line : lines) total += line[key].u64();
  return total;
}

Counts counts_by(const std::vector<Json>& lines, const char* key, const char* count) {
  Counts all;
  for (auto& line : lines)
    all[line[key].is_string() ? line[key].str() : line[key].text()] +=
        count ? line[count].u64() : 1;
  return all;
}

void expect_sums(const std::vector<Json>& lines, const Json& truth,
                 std::initializer_list<SameSum> sums, Location where) {
  for (auto& [key, of] : sums)
    if (auto shown = sum(lines, key), known = truth[of].u64(); shown != known)
      fail_at(where, std::string(key) + " sums to " + std::to_string(shown) + ", but " + of +
                         " is " + std::to_string(known));
}

void expect_same(const Json& line, const Json& other, std::initializer_list<SameSum> keys,
                 Location where) {
  for (auto& [key, of] : keys)
    if (auto shown = line[key].text(), known = other[of].text(); shown != known)
      fail_at(where, std::string(key) + " is " + shown + ", not " + known + " in " + line.text());
}

void expect_within(const std::vector<Json>& lines, std::initializer_list<Bounds> sums,
                   Location where) {
  for (auto& [key, least, most] : sums)
    if (auto shown = sum(lines, key); shown < least || shown > most)
      fail_at(where,
              fmt::format("{} sums to {}, which is not from {} to {}", key, shown, least, most));
}

void expect_between(double shown, double least, double most, Location where) {
  if (shown < least || shown > most)
    fail_at(where, fmt::format("{} is not from {} to {}", shown, least, most));
}

bool has_frame(const Json& line, const char* stack, std::string_view part) {
  if (line[stack].is_null()) return false;
  for (auto& frame : line[stack].strings())
    if (contains(frame, part)) return true;
  return false;
}

std::vector<Json> lines_with_frame(std::vector<Json> lines, const char* stack,
                                   std::string_view part) {
  std::erase_if(lines, [&](auto& line) { return !has_frame(line, stack, part); });
  return lines;
}

std::uint64_t sum_with_frame(const std::vector<Json>& lines, const char* stack,
                             std::string_view part, const char* key) {
  return sum(lines_with_frame(lines, stack, part), key);
}

void expect_contains(const std::string& text, std::initializer_list<std::string> parts,
                     Location where) {
  for (auto& part : parts)
    if (!contains(text, part)) fail_at(where, "no '" + part + "' in: " + text);
}

void expect_row(const std::string& row, const Strings& wanted, Location where) {
  auto cells = words(row);
  for (std::size_t i = 0; i < wanted.size() && i < cells.size(); i++)
    if (wanted[i] == "*") cells[i] = "*";
  if (cells != wanted) fail_at(where, "not '" + join(wanted) + "': " + row);
}

Result result_of(Strings tool, const std::function<void()>& in_child) {
  tool.at(0) = tool_path(tool[0]);
  return run(tool, in_child);
}

std::string output_of(const Strings& tool) {
  require_tool(tool.at(0));
  auto result = result_of(tool);
  EXPECT_EQ(result.status, 0) << join(tool) << ": " << result.err;
  return result.out;
}

bool has_option(const std::string& tool, const std::string& words) {
  static std::map<std::string, std::string> help;
  auto& text = help[tool];
  if (text.empty()) text = result_of(Strings{tool, "--help"}).out;
  return contains(text, words);
}

std::string said_by(const Strings& words, Location where) {
  auto result = result_of(words);
  if (result.status || !result.err.empty())
    fail_at(where, fmt::format("{} ended with {}: {}", join(words), result.status, result.err));
  return result.out;
}

Report report_of(const Strings& tool) {
  require_tool(tool.at(0));
  return Tracer(tool[0], {tool.begin() + 1, tool.end()}, {.attached = false}).finish();
}

Strings as_command(const Strings& workload) {
  return Strings{"--", workload_path(workload.at(0))} +
         Strings(workload.begin() + 1, workload.end());
}

Report follow(const Strings& tool, const Strings& workload) {
  auto report = report_of(tool + "--json" + as_command(workload));
  if (!report.truth) throw Skip(report.err);
  return report;
}

namespace {

/// Nothing on stdout, and a printable message with these parts.
void expect_message(const std::string& of, const Result& result, int status,
                    std::initializer_list<std::string> parts, Location where) {
  if (result.status != status || !result.out.empty() || !safe_for_terminals(result.err))
    fail_at(where, fmt::format("{} ended with {}, not {}: {}{}", of, result.status, status,
                               result.err, result.out));
  expect_contains(result.err, parts, where);
}

}  // namespace

void expect_refused(const Strings& words, std::initializer_list<std::string> parts, int status,
                    Location where) {
  expect_message(join(words), result_of(words), status, parts, where);
}

void expect_refusal(const std::string& tool, const Result& result, int status,
                    const std::string& word, Location where) {
  expect_message(tool, result, status, {word}, where);
  if (!result.err.starts_with(tool + ": "))
    fail_at(where, fmt::format("no '{}: ' before: {}", tool, result.err));
}

void expect_refusals(const std::string& tool, const std::vector<Refusal>& all, Location where) {
  for (auto& [words, says, status] : all)
    expect_refused(Strings{tool, "--duration", "0.1"} + words, {says}, status, where);
}

void expect_switches(const Report& report, std::uint64_t shown, std::uint64_t truth,
                     Location where) {
  if (shown > truth || shown + report.unreported < truth)
    fail_at(where, fmt::format("{} of {} shown, {} not reported at most", shown, truth,
                               report.unreported));
}

void Observed::add(Tracer& tracer) {
  out.push_back(tracer.stop_text());
  err.push_back(tracer.process().err());
  unreported.push_back(tracer.unreported());
}

Report Observed::report(std::size_t tool) const {
  auto report = parse_report(out.at(tool), err.at(tool));
  report.unreported = unreported.at(tool);
  return report;
}

std::string Observed::filled(std::string words) const {
  for (auto begin = words.find('{'); begin != words.npos; begin = words.find('{')) {
    auto end = words.find('}', begin);
    auto key = words.substr(begin + 1, end - begin - 1);
    auto value = key == "pid"     ? std::to_string(pid)
                 : key == "netns" ? std::to_string(netns)
                                  : as_word(of(key.c_str()));
    words.replace(begin, end - begin + 1, value);
  }
  return words;
}

Scene::Scene(const Strings& workload, Workload::How how)
    : workload_(Workload::of(workload, std::move(how))) {
  struct stat net {};
  ::stat(("/proc/" + workload_.id() + "/ns/net").c_str(), &net);
  seen_.ready = ready();
  seen_.pid = static_cast<std::uint64_t>(workload_.pid());
  seen_.netns = net.st_ino;
}

Strings Scene::filled(Strings words) const {
  for (auto& word : words) word = seen_.filled(word);
  return words;
}

Tracer& Scene::trace(const Strings& tool, Tracer::How how) {
  auto words = filled(tool);
  require_tool(words.at(0));
  Strings options(words.begin() + 1, words.end());
  return *tracers_.emplace_back(std::make_unique<Tracer>(words[0], options, std::move(how)));
}

Observed Scene::finish() {
  workload_.release();
  return collect();
}

Observed Scene::collect() {
  seen_.truth = workload_.truth();
  for (auto& tracer : tracers_) seen_.add(*tracer);
  return seen_;
}

Observed observe_all(const std::vector<Strings>& tools, const Strings& workload,
                     Workload::How how) {
  for (auto& tool : tools) require_tool(tool.at(0));
  Scene scene(workload, std::move(how));
  for (auto& tool : tools) scene.trace(tool);
  return scene.finish();
}

std::vector<Observed> watch_all(const std::vector<Watched>& all, const Workload::How& how) {
  std::vector<std::unique_ptr<Scene>> scenes;
  std::vector<Observed> seen;
  for (auto& one : all)
    for (auto& tool : one.tools) require_tool(tool.at(0));
  for (auto& one : all) scenes.push_back(std::make_unique<Scene>(one.workload, how));
  for (std::size_t i = 0; i < all.size(); i++)
    for (auto words : all[i].tools) {
      for (auto& word : words)
        for (std::size_t n = 0; n < all.size(); n++)
          word = std::regex_replace(word, std::regex(fmt::format("\\{{{}\\}}", n)),
                                    scenes[n]->workload().id());
      scenes[i]->trace(words);
    }
  for (auto& scene : scenes) scene->workload().release();
  for (auto& scene : scenes) scene->workload().truth();
  for (auto& scene : scenes) seen.push_back(scene->collect());
  return seen;
}

}  // namespace coretap::tooltest
