// Tables of functions and groups, call trees and graphs, which take the place of a list of stacks;
// once, at intervals, or on a screen that is redrawn.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coretap/report_kind.hpp"
#include "program/last_file.hpp"
#include "stacks/stack_group.hpp"
#include "stacks/stack_view.hpp"
#include "text/screen.hpp"

namespace coretap {

class StackTables {
 public:
  explicit StackTables(const StackReport& report) : report_(report) {}

  static Result<void> check(Config& config);
  static std::vector<JsonKind> json(const StackReport& report);
  static void manual(Manual& m);

  void configure(Session& s);
  Result<void> open(Session& s);
  /// Before the first line; `events`: reports are of one of several events.
  void begin(Session& s, bool events);

  /// Do tables replace the list of stacks?
  bool replace_stacks() const { return shows_ != stacks; }
  /// Do names need their files?
  bool need_places() const;
  /// Otherwise add() is given none: with many stacks they take longer than all else.
  bool need_paths() const { return shows_ == tree || dot_wanted_ || !part_.whole(); }
  const StackPart& part() const { return part_; }
  const StackGroup& group() const { return group_; }
  bool screen() const { return screen_.is_open(); }

  /// Starts a report; `event`: of which it is, if there are several.
  void begin_report(const std::string& event);
  /// `path`: of these tasks, after part().take(), if need_paths(). `second`: a value of the event
  /// that the others are divided by.
  void add(const std::vector<StackParty>& parties, const std::vector<StackWord>& path,
           std::uint64_t value, bool second = false);
  /// `layout`: for the unit.
  void show(Session& s, const StackLayout& layout);
  Result<void> finish(Session& s);
  bool keeps_file() const { return dot_.keeps_file(); }

  // For Reporter.
  void poll(Session& s);
  std::vector<int> wakes() const { return screen_.wakes(); }
  std::vector<int> signals() const { return screen_.signals(); }
  void signalled(Session& s, int number);
  bool wants_end() const { return keys_.quit; }

 private:
  enum Shows { stacks, functions, groups, tree };

  /// The titles come first.
  std::vector<std::string> lines(const StackLayout& layout) const;
  std::vector<std::string> function_lines(const StackLayout& layout) const;
  void json_rows(Session& s) const;
  void csv_rows(Session& s) const;
  void draw(Session& s);
  /// Of two events in the function itself; nothing: not seen with the second.
  std::optional<double> ratio(const FunctionTable::Row& row) const;

  const StackReport& report_;
  Shows shows_ = stacks;
  bool by_total_ = false;
  double least_ = 0;
  StackPart part_;
  StackGroup group_;
  FunctionTable functions_, second_;
  bool ratio_ = false;  ///< of functions_ to second_
  std::string event_;   ///< empty: there is only one
  std::string_view ratio_title_ = "RATIO";
  std::map<std::string, std::uint64_t> groups_;
  std::optional<FlameGraph> tree_;
  LastFile dot_;
  bool dot_wanted_ = false;

  const StackLayout* layout_ = nullptr;
  Screen screen_;
  ScreenKeys keys_;
};

}  // namespace coretap
