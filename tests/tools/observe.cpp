#include "observe.hpp"

#include <gtest/gtest.h>

#include "text.hpp"

namespace coretap::tooltest {

namespace {

void fail_at(Location where, const std::string& what) {
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << what;
}

std::string as_word(const Json& value) { return value.is_string() ? value.str() : value.text(); }

}  // namespace

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

void expect_sums(const std::vector<Json>& lines, const Json& truth,
                 std::initializer_list<SameSum> sums, Location where) {
  for (auto& [key, of] : sums)
    if (auto shown = sum(lines, key), known = truth[of].u64(); shown != known)
      fail_at(where, std::string(key) + " sums to " + std::to_string(shown) + ", but " + of +
                         " is " + std::to_string(known));
}

bool has_frame(const Json& line, const char* stack, std::string_view part) {
  if (line[stack].is_null()) return false;
  for (auto& frame : line[stack].strings())
    if (contains(frame, part)) return true;
  return false;
}

std::uint64_t sum_with_frame(const std::vector<Json>& lines, const char* stack,
                             std::string_view part, const char* key) {
  std::uint64_t total = 0;
  for (auto& line : lines)
    if (has_frame(line, stack, part)) total += line[key].u64();
  return total;
}

void expect_contains(const std::string& text, std::initializer_list<std::string> parts,
                     Location where) {
  for (auto& part : parts)
    if (!contains(text, part)) fail_at(where, "no '" + part + "' in: " + text);
}

void expect_refused(const Strings& words, std::initializer_list<std::string> parts, int status,
                    Location where) {
  auto argv = words;
  argv.at(0) = tool_path(words.at(0));
  auto result = run(argv);
  if (result.status != status)
    fail_at(where, join(words) + " ended with " + std::to_string(result.status) + ", not " +
                       std::to_string(status) + ": " + result.err);
  expect_contains(result.err, parts, where);
}

Scene::Scene(const Strings& workload, Workload::How how)
    : workload_(Workload::of(workload, std::move(how))) {}

Strings Scene::filled(Strings words) const {
  for (auto& word : words)
    for (auto begin = word.find('{'); begin != std::string::npos; begin = word.find('{')) {
      auto end = word.find('}', begin);
      auto key = word.substr(begin + 1, end - begin - 1);
      word.replace(begin, end - begin + 1,
                   key == "pid" ? workload_.id() : as_word(workload_.ready()[key.c_str()]));
    }
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
  Observed seen{.ready = ready(),
                .truth = workload_.truth(),
                .pid = static_cast<std::uint64_t>(workload_.pid())};
  for (auto& tracer : tracers_) {
    seen.out.push_back(tracer->stop_text());
    seen.err.push_back(tracer->process().err());
  }
  return seen;
}

Observed observe_all(const std::vector<Strings>& tools, const Strings& workload,
                     Workload::How how) {
  for (auto& tool : tools) require_tool(tool.at(0));
  Scene scene(workload, std::move(how));
  for (auto& tool : tools) scene.trace(tool);
  return scene.finish();
}

}  // namespace coretap::tooltest
