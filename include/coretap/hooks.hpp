// Where a tool attaches: hooks, each with the ways it can be had, best first. Programs on user
// functions have sections "uprobe/LIBRARY:function": the library finds the files
// (probe_target.hpp).
#pragma once
#include <string_view>
#include <vector>

namespace coretap {

/// Something a way asks of the running kernel beyond its programs' own attach points.
struct Need {
  enum Kind { field, function, enum_value, arguments } kind;
  std::string_view type;         ///< struct, function, enum or tracepoint
  std::string_view member = {};  ///< field or enumerator
  int count = 0;                 ///< of a tracepoint's arguments
};

inline Need has_field(std::string_view type, std::string_view member) {
  return {Need::field, type, member};
}
inline Need has_enumerator(std::string_view type, std::string_view member) {
  return {Need::enum_value, type, member};
}
inline Need has_arguments(std::string_view tracepoint, int count) {
  return {Need::arguments, tracepoint, {}, count};
}

/// One way to have a hook: all its programs attach, or it is not taken. None: the kernel tells it
/// where other hooks are. What each program
/// attaches to stands in its ELF section name and nowhere else.
struct Way {
  std::vector<std::string_view> programs;
  std::vector<Need> needs = {};
  std::string_view limits = {};  ///< what is less true this way; printed when it is taken
};

struct Hook {
  std::string_view name;
  std::vector<Way> ways;           ///< best first
  std::string_view when = {};      ///< only with this option (long name), "!name": only without
  std::string_view optional = {};  ///< what is lost without it; empty: the tool needs it
};

}  // namespace coretap
