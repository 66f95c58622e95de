#include <sys/mman.h>

#include <map>
#include <string>

#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "coretap/tool.hpp"
#include "fuzz.hpp"
#include "program/session.hpp"
#include "record/replay.hpp"
#include "reports/reporter.hpp"

using namespace coretap;

namespace {

const Tool* recordable(const std::string& name) {
  static std::map<std::string, Tool> all;
  auto* entry = find_tool(name);
  if (!entry) return nullptr;
  auto known = all.find(name);
  if (known == all.end()) known = all.try_emplace(name, build(*entry)).first;
  auto& tool = known->second;
  return tool.report->can_be_recorded() ? &tool : nullptr;
}

const record::ObjectLayouts& layouts_of(const Tool& tool) {
  static std::map<std::string_view, record::ObjectLayouts> all;
  auto known = all.find(tool.name);
  if (known == all.end()) known = all.try_emplace(tool.name, tool.object.bytes()).first;
  return known->second;
}

}  // namespace

/// A layout, and a record of it, become one of a tool.
FUZZ(layouts, bytes) {
  fuzz::Input input(bytes);
  const std::string packed(input.text(input.number<std::uint16_t>()));
  const auto from = record::Layout::of(packed);
  if (!from) return;
  MUST(record::Layout::of(from->packed()) == from);
  static const auto to = layouts_of(*recordable("opensnoop")).of_struct("opensnoop_event");
  const record::Move move(*from, to);
  for (auto& lack : move.lacks()) MUST(lack.at + lack.bytes <= to.bytes);
  std::string record(input.text(bytes.size()));
  const auto texts = record.size() > from->bytes ? record.size() - from->bytes : 0;
  record.resize(from->bytes + texts);
  MUST(move(record).size() == to.bytes + texts);
}

/// The first byte chooses a form of output; the others are the parts of a recording, unpacked.
FUZZ(recordings, bytes) {
  fuzz::Input input(bytes);
  const auto form = input.number<std::uint8_t>();
  Config config;
  config.format = static_cast<OutputFormat>(form % 3);
  record::Replay replay;
  // Or of two segments.
  const std::size_t first = form & 0x80 ? input.number<std::uint16_t>() : bytes.size();
  const std::string parts(input.text(first));
  if (!replay.use(parts, std::string(input.text(bytes.size())))) return;
  const auto* tool = recordable(replay.head().tool);
  if (!tool) return;
  const Recalling recalling(replay);
  replay.use(layouts_of(*tool), tool->report->record_type());
  auto begin = replay.begin();
  if (!begin) return;
  hold_clock(begin->monotonic_ns);
  auto with_lacks = *tool;
  std::vector<std::string> said;
  if (const auto lacks = replay.lacks(); !lacks.empty())
    with_lacks.report = tool->report.without(lacks, said).value_or(tool->report);
  tool = &with_lacks;
  Session s(*tool, config);
  const Fd file(memfd_create("shown", MFD_CLOEXEC));
  s.out = Sink(file.get());
  s.source = replay.source();
  s.quiet = true;  // writes no file
  if (tool->compile && !tool->compile(s)) return;
  auto reporter = tool->report->reporter();
  for (auto& f : tool->report->fields()) s.names.learn(f.format, s.kernel);
  hold_clock(begin->monotonic_ns);
  reporter->configure(s);
  if (!reporter->open(s)) return;
  (void)s.source->open_records(
      [&](const void* record, std::size_t size) { reporter->record(s, record, size); });
  reporter->begin(s);
  if (replay.has_base()) reporter->report(s);
  for (int marks = 0; marks < 100; marks++) {
    auto mark = replay.next();
    if (!mark || !*mark) break;
    hold_clock((*mark)->monotonic_ns);
    reporter->report(s);
  }
  (void)reporter->finish(s);
  s.out.flush();
}
