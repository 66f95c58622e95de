#include "coretap/known_functions.hpp"

#include <sys/types.h>

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "program/probe_target.hpp"
#include "program/target.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/process_files.hpp"
#include "symbols/usdt.hpp"

namespace coretap {

namespace {

bool has(int fd, const KnownFunction& f) {
  if (f.at != KnownFunction::probe)
    return symbols::find_function(fd, f.name).state == symbols::FunctionPlace::found;
  return std::ranges::any_of(symbols::read_usdt(fd).probes, [&](auto& p) {
    return f.name == fmt::format("{}:{}", p.provider, p.name);
  });
}

/// True if the file at this path is the one that is open.
bool is_at(const std::string& path, const symbols::FileIdentity& id) {
  auto other = symbols::identity_of(symbols::open_handle(path, true).get());
  return other && other->device == id.device && other->inode == id.inode;
}

class FoundWords {
 public:
  /// `by_path`: the words name files by path.
  FoundWords(const Config& config, bool by_path) : finder_(config), by_path_(by_path) {}

  void search(std::string_view file, const KnownFunction& f) {
    auto& found = finder_.files(file);
    if (!found) return;
    bool fresh = false;
    for (auto& one : found->files) {
      auto id = symbols::identity_of(one.fd->get());
      if (!id || !has(one.fd->get(), f) || !known_.emplace(id->device, id->inode, f.name).second)
        continue;
      if (by_path_ && is_at(one.path, *id)) add(one.path, f);
      fresh = true;
    }
    if (fresh && !by_path_) add(file, f);
  }
  std::vector<std::string> take() { return std::move(words_); }

 private:
  void add(std::string_view file, const KnownFunction& f) {
    if (f.at == KnownFunction::probe) return words_.push_back(fmt::format("u:{}:{}", file, f.name));
    words_.push_back(fmt::format("p:{}:{}", file, f.name));
    if (f.at != KnownFunction::entry) words_.push_back(fmt::format("r:{}:{}", file, f.name));
  }

  ProbeFinder finder_;
  bool by_path_;
  std::set<std::tuple<dev_t, ino_t, std::string_view>> known_;  // a file may have several names
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> words_for(const Config& config, std::span<const KnownFunction> functions,
                                   bool programs) {
  FoundWords words(config, false);
  const bool chosen = !config.probes.library.empty() || !config.tasks.pids.empty();
  for (auto& f : functions)
    if (!chosen || !f.installed) words.search(f.file, f);
  if (programs)
    for (auto pid : config.tasks.pids)
      for (auto& f : functions) words.search(fmt::format("/proc/{}/exe", pid), f);
  auto found = words.take();
  if (!found.empty() || config.tasks.pids.empty() || !config.probes.library.empty()) return found;
  // The processes of --pid may load the installed files later.
  Config everywhere = config;
  everywhere.tasks.pids.clear();
  FoundWords others(everywhere, true);
  for (auto& f : functions) others.search(f.file, f);
  return others.take();
}

Hook known_functions(std::string_view name, std::vector<ProgramName> programs, TargetWords words,
                     std::string_view instead) {
  return {.name = name,
          .candidates = {{std::move(programs)}},
          .instead = instead,
          .targets = words,
          .known = true};
}

Result<void> set_roles(Config& config, TargetWords words, RoleOf role, Setting roles) {
  // Target ids follow the order in which their names first appear (find_targets).
  std::vector<std::string> names;
  // Evaluated once: other processes may run when the plan is made.
  config.probes.known = words(config);
  for (auto& text : config.probes.known) {
    auto word = parse_target(text);
    if (!word) return word.error();
    auto name = word->provider.empty() ? word->name : word->provider + ":" + word->name;
    if (std::ranges::find(names, name) != names.end()) continue;
    if (names.size() < roles.size) config.set({roles.offset + names.size(), 1}, role(name));
    names.push_back(std::move(name));
  }
  return {};
}

std::uint8_t role_in(std::span<const KnownFunction> functions, std::string_view name) {
  auto found = std::ranges::find(functions, name, &KnownFunction::name);
  return found == functions.end() ? 0 : found->role;
}

}  // namespace coretap
