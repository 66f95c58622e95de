#include "tools/cpu/walltime/compare.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/config.hpp"
#include "coretap/json.hpp"
#include "coretap/sanitize.hpp"
#include "program/session.hpp"
#include "tools/cpu/walltime/states.hpp"

namespace coretap {

namespace {

constexpr RecordedType kTime{"time", "nanoseconds", 1000};
constexpr std::uint64_t kUsualRows = 20;
constexpr double kUsualSample = 1e9 / 49;  // ns, for files that do not count events
constexpr double kSecond = 1e9;
constexpr std::string_view kShort = "[short waits]";

/// Names of leaf frames: "[cpu.user]", "[disk_read]"; and whether there was nothing to do.
const std::map<std::string, bool, std::less<>>& leaves() {
  static const auto kLeaves = [] {
    std::map<std::string, bool, std::less<>> all{{"[cpu.user]", false}, {"[cpu.kernel]", false}};
    for (auto& state : wall::states()) {
      std::string_view name = state.name;
      if (name.starts_with("wait.")) name.remove_prefix(5);
      all[fmt::format("[{}]", name)] = state.column == wall::kWork;
    }
    return all;
  }();
  return kLeaves;
}

bool is_mark(std::string_view name) {
  return name.starts_with('[') && name.ends_with(']') && name != "[unknown]";
}

bool is_sampled(std::string_view state) { return state.starts_with("[cpu."); }

/// The task first, the state last, also in graphs with the state as the outermost frame, and in
/// those of cgroups.
bool in_order(std::vector<std::string>& path) {
  if (leaves().contains(path.front())) std::rotate(path.begin(), path.begin() + 1, path.end());
  if (path.size() > 2 && path.front().starts_with('/')) path.erase(path.begin());
  return leaves().contains(path.back());
}

}  // namespace

void WallSlice::Owner::add(const task_id& is, const WallCells& more, const WallCells& finer) {
  who = is;
  for (auto& [cell, sum] : more) coretap::add(cells[cell], sum);
  for (auto& [cell, sum] : finer) coretap::add(details[cell], sum);
}

void WallSlice::add(const WallOwner& owner) {
  thread_ns += owner.time_ns;
  owners[owner.owner].add(owner.who, owner.cells, owner.details);
}

void WallSlice::add(const WallSlice& more) {
  lasted_ns += more.lasted_ns;
  thread_ns += more.thread_ns;
  for (auto& [number, owner] : more.owners)
    owners[number].add(owner.who, owner.cells, owner.details);
}

void WallSlices::cut(std::uint64_t now_ns) {
  current_.lasted_ns = now_ns - std::exchange(from_ns_, now_ns);
  slices_.push_back(std::exchange(current_, {}));
  if (slices_.size() < StackComparison::kMostSlices) return;
  for (std::size_t i = 0; i < slices_.size() / 2; i++) {
    if (i) slices_[i] = std::move(slices_[2 * i]);
    slices_[i].add(slices_[2 * i + 1]);
  }
  slices_.resize(slices_.size() / 2);
  length_ns_ *= 2;
}

std::vector<WallSlice> WallSlices::take() {
  if (slices_.size() > 1 && slices_.back().lasted_ns < length_ns_ / 2) {
    slices_[slices_.size() - 2].add(slices_.back());
    slices_.pop_back();
  }
  return std::exchange(slices_, {});
}

std::vector<std::string> WallComparison::names_of(const RecordedStacks::Stack& stack) const {
  std::vector<std::string> names;
  names.reserve(stack.frames.size());
  for (auto f : stack.frames) names.push_back(recorded_.names[f]);
  return names;
}

Result<void> WallComparison::read(const std::string& path) {
  file_ = path;
  auto read = read_recorded_stacks(path, kTime, "walltime");
  if (!read) return read.error();
  recorded_ = std::move(*read);
  for (auto& stack : recorded_.stacks) {
    auto names = names_of(stack);
    if (!in_order(names))
      return Error{
          fmt::format("{} cannot be compared with", printable(path)),
          fmt::format(
              "it has a stack without a state of walltime: {}",
              fmt::join(std::span(names).last(std::min<std::size_t>(names.size(), 3)), ";")),
          "name a file that 'walltime --pprof FILE' or 'walltime --folded > FILE' wrote"};
    has_work_ |= leaves().at(names.back());
    for (auto f : stack.frames)
      if (recorded_.kernel[f]) kernel_.insert(recorded_.names[f]);
  }
  return {};
}

void WallComparison::begin(const std::vector<WallSlice>& slices, std::uint64_t thread_ns,
                           bool work) {
  std::vector<double> lengths;
  slice_thread_ns_.clear();
  for (auto& slice : slices) {
    lengths.push_back(static_cast<double>(slice.thread_ns));
    slice_thread_ns_.push_back(static_cast<double>(slice.thread_ns));
  }
  thread_ns_ = static_cast<double>(thread_ns);
  work_ = work;
  comparison_.emplace(std::move(lengths), static_cast<double>(recorded_.thread_ns));
}

namespace {

std::string plain(const StackWord& word) {
  // Profiles have functions without their offsets.
  return folded_word(word.place && !word.place->function.empty() ? word.place->function
                                                                 : word.text);
}

std::vector<std::string> plain(const std::vector<StackWord>& path) {
  std::vector<std::string> names;
  names.reserve(path.size());
  for (auto& word : path) names.push_back(plain(word));
  return names;
}

}  // namespace

void WallComparison::add(const std::vector<StackWord>& path, std::uint64_t ns) {
  for (auto& word : path)
    if (word.kind == StackWord::kernel) kernel_.insert(plain(word));
  now_[plain(path)] += ns;
}

/// Its line in the table is that of the innermost function of the program, or of the kernel.
StackComparison::Stack WallComparison::stack(std::vector<std::string> path) const {
  StackComparison::Stack is{std::move(path), {}, {}};
  is.state = is.path.back().substr(1, is.path.back().size() - 2);
  std::string_view in_kernel, in_user, mark;
  for (std::size_t i = 1; i + 1 < is.path.size(); i++) {
    auto& name = is.path[i];
    (is_mark(name) ? mark : kernel_.contains(name) ? in_kernel : in_user) = name;
  }
  is.function = !in_user.empty() ? in_user : !in_kernel.empty() ? in_kernel : mark;
  return is;
}

void WallComparison::add_recorded() {
  double now = 0, before = 0;
  for (auto& [path, ns] : now_) {
    auto value = thread_ns_ > 0 ? static_cast<double>(ns) / thread_ns_ * kSecond : 0;
    now += value;
    comparison_->add_new(stack(path), value);
  }
  now_.clear();
  std::map<std::vector<std::string>, std::pair<std::uint64_t, double>> all;  // ns, and its variance
  for (auto& recorded : recorded_.stacks) {
    auto names = names_of(recorded);
    if (!in_order(names) || (leaves().at(names.back()) && !work_)) continue;
    const auto value = static_cast<double>(recorded.value);
    auto count =
        recorded.count ? static_cast<double>(recorded.count) : std::max(1.0, value / kUsualSample);
    // A wait that lasted for most of the run did not come by chance.
    const bool lasting = !is_sampled(names.back()) && recorded_.lasted_ns &&
                         value / count > static_cast<double>(recorded_.lasted_ns) / 3;
    auto& [ns, variance] = all[std::move(names)];
    ns += recorded.value;
    if (!lasting) variance += value / count * value;
    before += value;
  }
  double scale = 0;
  if (recorded_.thread_ns)
    scale = kSecond / static_cast<double>(recorded_.thread_ns);
  else if (before > 0)
    scale = now / before;
  for (auto& [path, sum] : all)
    comparison_->add_old(stack(path), static_cast<double>(sum.first) * scale,
                         sum.second * scale * scale);
  recorded_.stacks.clear();
}

void WallComparison::add_slice(std::size_t slice, const std::vector<StackWord>& path,
                               std::uint64_t ns) {
  if (slice >= slice_thread_ns_.size() || slice_thread_ns_[slice] <= 0) return;
  comparison_->add_slice(stack(plain(path)), slice,
                         static_cast<double>(ns) / slice_thread_ns_[slice] * kSecond);
}

std::string WallComparison::source() const {
  auto words = printable(file_.substr(file_.rfind('/') + 1));
  if (recorded_.lasted_ns)
    words += fmt::format(" ({:.1f} s", static_cast<double>(recorded_.lasted_ns) / kSecond);
  if (recorded_.lasted_ns && recorded_.thread_ns)
    words += fmt::format(", {:.2f} threads", static_cast<double>(recorded_.thread_ns) /
                                                 static_cast<double>(recorded_.lasted_ns));
  return words + (recorded_.lasted_ns ? ")" : "");
}

void WallComparison::show(Session& s) const {
  if (!comparison_) return;
  auto& c = *comparison_;
  const auto changes = c.changes();
  const auto top =
      std::min<std::size_t>(changes.size(), s.config.rows.top ? s.config.rows.top : kUsualRows);
  auto whole = [](double ns) { return static_cast<std::int64_t>(std::llround(ns)); };
  if (s.config.format == OutputFormat::json) {
    for (std::size_t i = 0; i < top; i++) {
      auto& change = changes[i];
      JsonLine line("change", s.tool.name);
      line.text("state", change.state).text("function", change.function);
      line.text("stack", change.path);
      line.key("change_ns").integer(whole(change.change()));
      line.key("now_ns").integer(whole(change.now));
      line.key("recorded_ns").integer(whole(change.before));
      line.key("noise_ns").integer(whole(change.noise));
      s.out.line(line.finish());
    }
    JsonLine line("comparison", s.tool.name);
    line.text("file", file_).key("now_ns").integer(whole(c.now()));
    line.key("recorded_ns").integer(whole(c.before()));
    line.text("scaled_by", recorded_.thread_ns ? "thread time" : "total");
    line.number("changes", changes.size()).boolean("noise_known", c.knows_noise());
    s.out.line(line.finish());
    return;
  }
  s.out.line(fmt::format("Compared with {}: now {}, recorded {} (per second and thread)", source(),
                         per_second(c.now()), per_second(c.before())));
  if (!recorded_.thread_ns)
    s.out.line("The file does not tell the time of its threads: both are scaled to one total.");
  if (!c.knows_noise()) {
    s.out.line("This run is too short to know the noise: no change is shown.");
    return;
  }
  if (changes.empty()) {
    s.out.line("No change is above the noise.");
    return;
  }
  s.out.title(fmt::format("{:>12} {:>12} {:>12} {:>12} {:<14} {:<24} {}", "CHANGE", "NOW",
                          "RECORDED", "NOISE", "STATE", "FUNCTION", "MOST OF IT IN"));
  for (std::size_t i = 0; i < top; i++) {
    auto& change = changes[i];
    s.out.line(fmt::format(
        "{:>12} {:>12} {:>12} {:>12} {:<14} {:<24} {}",
        (change.change() > 0 ? "+" : "") + per_second(change.change()), per_second(change.now),
        per_second(change.before), per_second(change.noise), change.state,
        printable(change.function.empty() ? "-" : change.function), printable(change.path)));
  }
  if (changes.size() > top)
    s.out.line(fmt::format("{} smaller changes are left out (--top N)", changes.size() - top));
}

std::string WallComparison::svg(PictureTitle title) const {
  title.title += fmt::format(", compared with {}", source());
  // The end of a long title is cut.
  title.notes.insert(title.notes.begin(), fmt::format("recorded: {}", source()));
  if (!recorded_.thread_ns)
    title.notes.emplace_back(
        "the file does not tell the time of its threads: both are scaled to one total");
  return comparison_ ? comparison_->svg(title) : std::string();
}

std::vector<JsonKind> WallComparison::json() {
  return {{"change",
           "with --diff, one per state and function, the largest change first",
           {type_key("change"), key("state", "string", "state of the time, as frames have it"),
            key("function", "string",
                "innermost function of the program, or of the kernel; empty: not known"),
            key("stack", "string", "folded: that with the largest part of the change"),
            key("change_ns", "integer", "now_ns less recorded_ns"),
            key("now_ns", "integer", "time of this run, per second and thread"),
            key("recorded_ns", "integer", "the same of the recorded run"),
            key("noise_ns", "integer", "smaller changes are not shown")}},
          {"comparison",
           "with --diff, one at the end",
           {type_key("comparison"), key("file", "string", "the recorded run"),
            key("now_ns", "integer", "all time of this run, per second and thread"),
            key("recorded_ns", "integer", "the same of the recorded run"),
            key("scaled_by", "string",
                "thread time, or total: the file does not tell the time of its threads"),
            key("changes", "integer", "number of changes above the noise"),
            key("noise_known", "boolean", "false: this run is too short")}}};
}

void WallComparison::manual(Manual& m) {
  m.prose(
      "With --diff FILE this run is compared with one that --pprof or --folded wrote. Times are "
      "those per second of tracing and thread; a folded file does not have them, so that both "
      "runs are scaled to the same total. The table has the largest changes by state and "
      "function: the innermost function of the program, or of the kernel if there is none. The "
      "last column is the stack with most of the change.");
  m.paragraph();
  m.prose(
      "A change counts if it is larger than the noise: three times the standard deviation of the "
      "thirds of this run, five standard errors of the difference, and a two-hundredth of all time. "
      "CPU time is sampled: longer runs, or -F in both, show smaller changes. Waits are measured. "
      "What happens only once in a run is noise. Processes are compared by their names, so record "
      "without --by thread.");
  m.paragraph();
  m.prose(
      "With --diff the picture of --svg is a differential flame graph: red frames take more time "
      "than in FILE, blue ones less, the deeper the colour the larger the change; grey ones differ "
      "by no more than the noise. Frames are as wide as the time of this run. Those that only FILE "
      "has are as wide as there, and have a dashed edge.");
}

}  // namespace coretap
