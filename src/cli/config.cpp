#include "coretap/config.hpp"

#include <fmt/format.h>

namespace coretap {

std::uint64_t Config::number(std::string_view option, std::uint64_t otherwise) const {
  auto found = given_.find(option);
  return found == given_.end() ? otherwise : parse_unsigned(found->second).value_or(otherwise);
}

std::string_view Config::text(std::string_view option) const {
  auto found = given_.find(option);
  return found == given_.end() ? std::string_view() : found->second;
}

bool Config::holds_text(std::string_view condition) const {
  if (condition.empty()) return true;
  if (condition.front() == '!') return !holds_text(condition.substr(1));
  while (!condition.empty()) {
    auto word = take_until(condition, '|');
    if (word.starts_with('!')         ? !given(word.substr(1))
        : word == "task-filter"       ? filters_tasks()
        : word.find('=') != word.npos ? lists(word)
                                      : given(word))
      return true;
  }
  return false;
}

bool Config::lists(std::string_view word) const {
  auto all = text(take_until(word, '='));
  while (!all.empty())
    if (take_until(all, ',') == word) return true;
  return false;
}

bool Config::wants_path(std::string_view path) const {
  return places.directory.empty() || lies_below(path, places.directory);
}

bool Config::lies_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) &&
         (directory == "/" || (path.size() > directory.size() && path[directory.size()] == '/'));
}

bool Config::filters_tasks() const { return tasks != Tasks() || !command.empty(); }

void Config::give(std::string_view option, std::string_view value, bool adds_up) {
  auto [known, fresh] = given_.emplace(option, value);
  // For other options, the last value counts.
  if (!fresh)
    known->second = adds_up ? fmt::format("{},{}", known->second, value) : std::string(value);
}

void Config::set(Setting target, std::uint64_t value) {
  if (target.size) edits_.push_back({target, value});
}

void Config::add_bit(Setting mask, std::uint64_t bit) {
  for (auto& edit : edits_)
    if (edit.target.offset == mask.offset) return void(edit.value |= std::uint64_t{1} << bit);
  set(mask, std::uint64_t{1} << bit);
}

void Config::put(MapName map, std::string key, std::string value) {
  entries_[map.c_str()].push_back({std::move(key), std::move(value)});
}

}  // namespace coretap
