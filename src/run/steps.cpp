#include "run/steps.hpp"

#include <fmt/format.h>

#include "base/loop.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/version.hpp"
#include "program/session.hpp"
#include "reports/reporter.hpp"
#include "run/recording.hpp"
#include "run/run_words.hpp"
#include "run/trace_loop.hpp"
#include "text/errors.hpp"

namespace coretap {

void learn_names(Session& s) {
  s.names.tell_hidden = [&s](const Error& why) { s.note("kernel addresses are not shown", why); };
  for (auto& f : s.tool.report->fields()) s.names.learn(f.format, s.kernel);
}

Result<void> redirect(Session& s) {
  if (!s.config.given("output") || s.config.given("explain")) return {};
  OutputFile::How how{.most = s.config.files.rotate_bytes,
                      .keep = s.config.files.rotate_keep,
                      .append = s.config.given("append"),
                      .tell = [&s](std::string_view what, const Error& why) { s.note(what, why); }};
  if (auto r = s.file.open(std::string(s.config.text("output")), std::move(how)); !r) return r;
  s.out = Sink(s.file);
  // Blocked until the loop watches it; a report may use the signal itself, and has blocked it then.
  block_signal(kReopenSignal);
  return {};
}

Result<int> end_of_output(Session& s) {
  s.out.flush();
  if (s.out.failed()) return s.out.error();
  return int{kOk};
}

Result<int> finish(Session& s, Reporter& reporter, int command_status) {
  const auto missed = s.ledger.count[LEDGER_MISSED];  // counted by links
  s.ledger = whole_ledger(s);
  if (s.recorder) end_recording(s, missed);
  forget_signals();
  if (!s.out.closed()) let_signals_kill();  // the rest is only printing
  auto finished = reporter.finish(s);
  if (!finished) print_error(s.tool.shown_name(), finished.error());
  if (s.out.dropped() && s.config.given("strict")) return int{kDataLost};
  if (s.out.closed()) return int{finished ? kOk : kFailed};
  print_ledger(s);
  s.out.flush();
  if (!finished || s.incomplete) return int{kFailed};
  if (s.out.failed()) return s.out.error();
  if (s.config.given("strict") && s.ledger.data_lost()) return int{kDataLost};
  if (s.config.given("exit-status") && command_status >= 0) return command_status;
  return reporter.status();
}

std::optional<std::string> text_instead(const Invocation& parsed, const Tool& tool) {
  switch (parsed.what) {
    case Invocation::help:
      return help_text(tool);
    case Invocation::usage:
      return fmt::format("Usage: {} {}\n", command_of(tool.shown_name()), synopsis(tool));
    case Invocation::version:
      return fmt::format("{} (coretap) {}\n{}\n", tool.name, kVersion, build_words());
    case Invocation::run:
      break;
  }
  if (tool.list && parsed.config.given("list")) return tool.list(parsed.config);
  return {};
}

}  // namespace coretap
