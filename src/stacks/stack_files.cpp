#include "stacks/stack_files.hpp"

#include <utility>

#include <fmt/format.h>

#include "coretap/clock.hpp"

namespace coretap {

namespace {

constexpr std::string_view kFlameGraphWords =
    "The flame graph of --svg is that path drawn upwards, each frame as wide as its share. Its "
    "legend tells the colours: of programs (red), libraries (yellow), code that a runtime compiled "
    "(green) or inlined (aqua), interpreted code (pink), the kernel (orange) and wakers (purple), of object files with "
    "--color-by object, or one for each name with --color-by name, the same in all graphs. It is "
    "one file for any browser: a click zooms, Ctrl-F searches by a regular expression or plain "
    "text and tells the share of what is found. Its head tells the options, the time traced and what was lost. The file appears "
    "when tracing ends; an older one of its name stays until then.";

constexpr std::string_view kProfileWords =
    "The profile of --pprof is what pprof, Parca, Pyroscope and others read: 'go tool pprof FILE'. "
    "Each stack is a sample with the labels comm and pid. It counts them and adds up what they "
    "stand for: time, or bytes. Code has its place in its file and the file's build id, by which "
    "functions without names can be named elsewhere. Its comments tell the options and what was "
    "lost.";

}  // namespace

std::vector<StackWord> below(const std::string& event, std::vector<StackWord> path) {
  path.insert(path.begin(), {StackWord::mark, false, event});
  return path;
}

void StackFiles::manual(Manual& m) {
  if (m.has_option("svg")) m.prose(kFlameGraphWords);
  if (m.has_option("pprof")) m.prose(kProfileWords);
}

Result<void> StackFiles::open(Session& s, Values values) {
  values_ = std::move(values);
  svg_wanted_ = !s.config.files.svg.empty();
  if (auto by = s.config.text("color-by"); by == "object")
    colour_by_ = FlameGraph::ColourBy::object;
  else if (by == "name")
    colour_by_ = FlameGraph::ColourBy::name;
  pprof_wanted_ = !s.config.files.pprof.empty();
  if (s.config.files.pprof == "-" && s.out.on_terminal())
    return Error{"--pprof -: standard output is a terminal, a profile is no text",
                 {},
                 "name a file, or redirect the output",
                 kUsage};
  if (svg_wanted_)
    if (auto r = svg_.open(s, s.config.files.svg); !r) return r;
  return pprof_wanted_ ? pprof_.open(s, s.config.files.pprof) : Result<void>();
}

bool StackFiles::need_places(const Config& config) {
  return !config.files.svg.empty() || !config.files.pprof.empty() || config.given("annotations");
}

void StackFiles::ends() { ended_ns_ = monotonic_ns(); }

void StackFiles::begin(std::uint64_t scale) {
  ends();
  if (svg_wanted_) graph_.emplace(scale, colour_by_);
  if (pprof_wanted_) profile_.emplace(values_);
}

void StackFiles::add(const std::vector<StackWord>& path, const PprofProfile::Task& task,
                     std::uint64_t graph_value, const std::vector<std::uint64_t>& values,
                     const std::string& event) {
  if (graph_ && event.empty()) graph_->add(path, graph_value);
  if (graph_ && !event.empty()) graph_->add(below(event, path), graph_value);
  if (profile_) profile_->add(path, task, values);
}

Result<void> StackFiles::finish(Session& s, std::string_view unit) {
  if (graph_) {
    auto title = picture_title(s, ended_ns_ - s.began_ns, unit);
    if (auto r = svg_.write(s, draw_ ? draw_(title) : graph_->svg(title)); !r) return r;
  }
  return profile_ ? pprof_.write(s, profile_->finish(s, s.began_ns, ended_ns_, 0, notes_))
                  : Result<void>();
}

void StackProfile::add(std::vector<StackWord> path, const PprofProfile::Task& task,
                       const std::vector<std::uint64_t>& values) {
  auto is_task = [](auto& word) { return word.kind == StackWord::task && !word.waker; };
  // The woken task has a name but no frames.
  const bool woken = !path.empty() && path.front().kind == StackWord::task && path.front().waker;
  if (!woken) std::erase_if(path, is_task);
  profile_.add(path, task, values);
}

std::string StackProfile::finish(const Session& s, std::uint64_t began_ns, std::uint64_t ended_ns,
                                 std::uint64_t forgotten, const std::vector<std::string>& notes) {
  auto title = picture_title(s, ended_ns - began_ns, {});
  title.notes.insert(title.notes.begin(), title.title);
  title.notes.insert(title.notes.end(), notes.begin(), notes.end());
  if (forgotten)
    title.notes.push_back(fmt::format(
        "{} events are left out: their stacks were idle when room was needed", forgotten));
  return profile_.finish({.began_ns = since_1970_ns(began_ns),
                          .lasted_ns = ended_ns - began_ns,
                          .period = period_,
                          .notes = std::move(title.notes)});
}

}  // namespace coretap
