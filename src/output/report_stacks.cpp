// Stack tools: totals by kernel and user stack, as text, folded for flame graphs, or as data.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "core/maps.hpp"
#include "core/run.hpp"
#include "core/session.hpp"
#include "output/reporters.hpp"
#include "output/stacks.hpp"

namespace coretap {

namespace {

constexpr char kRunnable[] = "[runnable]";  // preempted: waits for a CPU, not for an event

class StackReporter : public Reporter {
 public:
  explicit StackReporter(const StackReport& report) : report_(report) {}

  void configure(Session& s) override {
    kernel_ = !s.config.given("user-stacks-only");
    user_ = !s.config.given("kernel-stacks-only");
    set_variable(s, "stack_kernel", kernel_);
    set_variable(s, "stack_user", user_);
    set_variable(s, "stack_bytes", s.stack_depth() * 8);
    stacks_.emplace(s.config.given("offset"), s.config.given("verbose"));
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line("comm,pid,tid,runnable,total_ns,count,stack");
  }

  // The only records are processes whose user stack was seen for the first time.
  void record(Session&, const void* data, std::size_t size) override {
    if (size < sizeof(stack_process)) return;
    auto* process = static_cast<const stack_process*>(data);
    stacks_->remember(static_cast<pid_t>(process->tgid), static_cast<pid_t>(process->forked_from));
  }

  void report(Session& s) override {
    std::vector<stack_count> entries;
    each_entry(s.map("stack_counts"), [&](const char*, const char* value) {
      stack_count count;
      memcpy(&count, value, sizeof count);
      if (count.count) entries.push_back(count);
    });
    std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) {
      return a.total_ns != b.total_ns ? a.total_ns < b.total_ns
                                      : memcmp(&a.key, &b.key, sizeof a.key) < 0;
    });
    for (auto& e : entries) {
      s.ledger.shown += e.count;
      show(s, e.key, e);
    }
    if (!s.config.given("folded") || s.config.format != OutputFormat::text) return;
    for (auto& [stack, total] : folded_) s.out.line(fmt::format("{} {}", stack, total / 1000));
  }

 private:
  using Frames = std::vector<std::string>;

  Frames frames(Session& s, std::uint64_t id, pid_t tgid, bool kernel) {
    if (!id) return {};
    stack found{};
    if (bpf_map_lookup_elem(bpf_map__fd(s.map("stacks")), &id, &found))
      return {kernel ? "[Missed Kernel Stack]" : "[Missed User Stack]"};
    return kernel ? stacks_->kernel(found) : stacks_->user(tgid, found);
  }

  std::string fold(Session& s, std::string_view comm, const Frames& user, const Frames& kernel,
                   bool runnable) const {
    auto line = folded_word(comm);
    for (auto f = user.rbegin(); f != user.rend(); ++f) line += ';' + folded_word(*f);
    if (s.config.given("delimited") && !user.empty() && !kernel.empty()) line += ";-";
    for (auto f = kernel.rbegin(); f != kernel.rend(); ++f) line += ';' + folded_word(*f);
    if (runnable) line += fmt::format(";{}", kRunnable);
    return line;
  }

  void show(Session& s, const stack_key& key, const stack_count& count) {
    std::string comm(key.comm, strnlen(key.comm, sizeof key.comm));
    auto tgid = static_cast<pid_t>(key.tgid);
    auto kernel = frames(s, key.kernel, tgid, true), user = frames(s, key.user, tgid, false);
    bool runnable = key.runnable;
    if (s.config.format == OutputFormat::json) {
      JsonLine line;
      line.text("type", "stack").text("comm", comm).number("pid", key.tgid).number("tid", key.tid);
      line.boolean("runnable", runnable);
      for (auto& [name, list] : {std::pair{"kernel_stack", &kernel}, {"user_stack", &user}}) {
        line.key(name).begin_array();
        for (auto& f : *list) line.text(f);
        line.end_array();
      }
      line.number("total_ns", count.total_ns).number("count", count.count);
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::csv) {
      s.out.line(fmt::format("{},{},{},{},{},{},{}", csv_field(comm), key.tgid, key.tid, runnable,
                             count.total_ns, count.count,
                             csv_field(fold(s, comm, user, kernel, runnable))));
    } else if (s.config.given("folded")) {
      // Threads of one name with one stack are one line.
      folded_[fold(s, comm, user, kernel, runnable)] += count.total_ns;
    } else {
      if (runnable) s.out.line(fmt::format("    {}", kRunnable));
      for (auto& f : kernel) s.out.line("    " + printable(f));
      if (s.config.given("delimited") && kernel_ && user_ && !user.empty()) s.out.line("    --");
      for (auto& f : user) s.out.line("    " + printable(f));
      s.out.line(fmt::format("    {:<16} {} ({})\n        {}\n", "-", printable(comm), key.tid,
                             count.total_ns / 1000));
    }
  }

  [[maybe_unused]] const StackReport& report_;
  std::optional<Stacks> stacks_;
  std::map<std::string, std::uint64_t> folded_;
  bool kernel_ = true, user_ = true;
};

}  // namespace

std::unique_ptr<Reporter> make(const StackReport& report) {
  return std::make_unique<StackReporter>(report);
}

}  // namespace coretap
