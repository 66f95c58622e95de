#include "fuzz.hpp"
#include "program/target.hpp"

using namespace coretap;

/// An argument that names a target, then a newline and a name that its pattern may match.
FUZZ(target_words, bytes) {
  const auto word = bytes.substr(0, bytes.find('\n'));
  std::string name(bytes.substr(std::min(bytes.size(), word.size() + 1)).substr(0, 512));
  if (name.find('\0') != name.npos) name.resize(name.find('\0'));
  const auto target = parse_target(word);
  if (!target) {
    MUST(target.error().status == kUsage && !target.error().why.empty());
    MUST(fuzz::is_plain(target.error().what) && fuzz::is_plain(target.error().hint));
    return;
  }
  MUST(!target->name.empty() && target->name.size() <= word.size());
  MUST(target->kind != TargetWord::tracepoint || !target->place.empty());
  MUST(!target->at_return || target->kind == TargetWord::function);
  MUST(!target->is_place() || (target->kind == TargetWord::function && !target->at_return));
  MUST(matches_wildcard(target->name, target->name) || target->name.find('*') != std::string::npos);
  MUST(matches_wildcard("*", name));
  const auto pattern = NamePattern::make(target->name, false);
  MUST(bool(pattern));
  MUST(pattern->matches(name) == matches_wildcard(target->name, name));
  MUST(!pattern->exact() || pattern->matches(name) == (name == target->name));
}
