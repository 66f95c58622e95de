// coretap tplist: lists tracepoints, USDT probes, and functions of the kernel and of files.
#include "lists/tracepoints.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "base/read_failures.hpp"
#include "coretap/fd.hpp"
#include "coretap/nearest.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/options.hpp"
#include "coretap/tracepoint_format.hpp"
#include "kernel/kernel.hpp"
#include "lists/lists.hpp"
#include "lists/prototype.hpp"
#include "lists/verbosity.hpp"
#include "program/kernel_functions.hpp"
#include "program/probe_target.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostFunctions = 200'000;  // of one file

bool of_all(std::string_view declaration) {
  return declaration.substr(declaration.rfind(' ') + 1).starts_with("common_");
}

class List {
 public:
  List(const Config& config, const std::vector<std::string>& words)
      : config_(config),
        pattern_(words.empty() ? "" : words[0]),
        level_(config.own<Verbosity>().level),
        json_(config.given("json")) {}

  /// Returns the number of matches.
  Result<std::size_t> print(Sink& out) {
    const bool files = !config_.tasks.pids.empty() || !config_.own<Verbosity>().library.empty();
    const bool functions = config_.given("functions"), types = config_.given("btf");
    if (types && (files || functions))
      return usage("--btf cannot be used together with --pid, --library or --functions",
                   "see coretap tplist --help");
    if (files) return print_files(out, functions);
    if (functions) return print_functions(out);
    return types ? print_prototypes(out) : print_tracepoints(out);
  }

  /// Why an empty list is no error; empty: it is one.
  std::string without_any() const {
    if (!pattern_.empty() || looked_in_.empty()) return {};
    return fmt::format("no {} in {}", config_.given("functions") ? "functions" : "USDT probes",
                       looked_in_);
  }

  std::string hint() const {
    auto meant = did_you_mean(pattern_, {known_.begin(), known_.end()});
    return meant.empty() ? "patterns have * for any text, and need quotes: coretap tplist '*tcp*'"
                         : printable(meant);
  }

 private:
  Result<std::size_t> print_tracepoints(Sink& out) {
    auto all = tracepoint_names();
    if (!all) return all.error();
    std::size_t found = 0, unreadable = 0;
    for (auto& full : *all) {
      if (!is_wanted(pattern_, full)) continue;
      found++;
      auto category = full.substr(0, full.find(':')), name = full.substr(category.size() + 1);
      std::string format;
      if (json_ || level_) {
        auto text = tracepoint_file(category, name, "format");
        if (text)
          format = *text;
        else
          unreadable++;
      }
      if (json_) {
        JsonLine line("tracepoint", "tplist");
        line.text("category", category).text("name", name);
        add_fields(line, format);
        out.line(line.finish());
      } else {
        out.line(printable(full));
        if (level_) out.write(field_lines(format, level_ > 1));
      }
    }
    if (unreadable)
      list_note(kTplist.name,
                fmt::format("the fields of {} tracepoints cannot be read", unreadable));
    if (!found) known_ = std::move(*all);
    return found;
  }

  Result<std::size_t> print_prototypes(Sink& out) {
    if (!kernel_.has_btf())
      return Error{"this kernel has no type information",
                   "there is no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)",
                   {},
                   kUnsupported};
    auto found = print_prototypes_of({}, out);
    for (auto& module : modules_with_types()) found += print_prototypes_of(module, out);
    return found;
  }

  std::size_t print_prototypes_of(const std::string& module, Sink& out) {
    auto& prototypes = prototypes_of(module);
    std::size_t found = 0;
    for (auto& [name, id] : prototypes.tracepoints()) {
      if (!is_wanted(pattern_, name)) {
        known_.emplace_back(name);
        continue;
      }
      found++;
      auto text = prototypes.tracepoint(name);
      if (json_) {
        JsonLine line("raw_tracepoint", "tplist");
        line.text("name", name).text("prototype", text).text("module", module);
        out.line(line.finish());
      } else {
        out.line(printable(text) + (module.empty() ? "" : fmt::format(" [{}]", module)));
      }
    }
    return found;
  }

  /// An empty `module` means the kernel.
  const Prototypes& prototypes_of(const std::string& module) {
    auto known = prototypes_.find(module);
    if (known == prototypes_.end()) {
      auto& btf = module.empty() ? kernel_.all_types() : kernel_.types_of(module);
      known = prototypes_.try_emplace(module, btf).first;
    }
    return known->second;
  }

  // ---- functions of the kernel ----

  Result<std::size_t> print_functions(Sink& out) {
    auto colon = pattern_.find(':');
    auto module = colon == pattern_.npos ? std::string() : pattern_.substr(0, colon);
    auto wanted = pattern_.substr(colon == pattern_.npos ? 0 : colon + 1);
    auto lists = FunctionLists::of_this_kernel();
    std::vector<LeftOutFunction> others;
    auto functions = kernel_functions(
        lists, module, [&](const char* name) { return is_wanted(wanted, name); }, &others);
    // One reason for all functions if kprobes are unavailable, else one for each.
    auto refusal = kernel_.kprobe_refusal("vfs_read");
    if (!refusal.starts_with("this kernel") || kernel_.kprobe_multi_refusal().empty())
      refusal.clear();
    const bool known = access(lists.names.c_str(), R_OK) == 0 && !lists.names.empty();
    const bool with_prototypes = (json_ || level_) && kernel_.has_btf();

    auto show = [&](const std::string& name, const std::string& of, std::string_view why) {
      auto prototype = with_prototypes ? prototypes_of(of).function(name) : "";
      if (json_) {
        JsonLine line("function", "tplist");
        line.text("name", name).text("module", of).key("traceable");
        if (known || !why.empty())
          line.boolean(why.empty());
        else
          line.null();
        out.line(line.text("why", why).text("prototype", prototype).finish());
        return;
      }
      auto text = printable(name);
      if (!of.empty()) text += fmt::format(" [{}]", printable(of));
      if (!why.empty() && refusal.empty()) text += fmt::format(" (not traceable: {})", why);
      out.line(text);
      if (level_ && !prototype.empty()) out.line(fmt::format("    {};", printable(prototype)));
    };
    for (auto& f : functions.functions) show(f.name, f.module, refusal);
    for (auto& f : others) show(f.name, f.module, refusal.empty() ? f.why : refusal);
    const auto found = functions.functions.size() + others.size();
    if (found && !refusal.empty())
      list_note(kTplist.name, fmt::format("none of them can be traced: {}", refusal));
    else if (found && !known)
      list_note(
          kTplist.name,
          "which can be traced is not known: available_filter_functions of tracefs is not there "
          "or not readable");
    if (!found) known_ = function_names(lists);
    return found;
  }

  // ---- files ----

  Result<const ProbeFinder::Files*> files() {
    for (auto pid : config_.tasks.pids) {
      auto maps = fmt::format("/proc/{}/maps", pid);
      if (!Fd(open(maps.c_str(), O_RDONLY | O_CLOEXEC)))
        return Error{
            fmt::format("cannot read which files process {} has mapped", pid), strerror(errno),
            errno == ENOENT ? "process ids are taken as seen from here (this pid namespace)"
                            : "run as root, or as the user of the process",
            errno == ENOENT ? kUsage : kUnsupported};
    }
    auto& library = config_.own<Verbosity>().library;
    auto tries = files_by_name(library);
    for (auto& name : tries)
      if (auto& found = finder_->files(name, name != "libc")) return &*found;
    if (library.empty()) return Error{"these processes have no file of code mapped", {}, {}};
    const bool path = library.find('/') != library.npos;
    auto error = finder_->files(tries.back()).error();
    if (error.status == kFailed) return error;
    error.what = fmt::format("'{}' names no file here", printable(library));
    error.hint = path ? "give the path of a library or program" : "give its path";
    error.status = kUsage;
    return error;
  }

  Result<std::size_t> print_files(Sink& out, bool functions) {
    finder_.emplace(config_);
    auto all = files();
    if (!all) return all.error();
    std::size_t found = 0;
    for (auto& file : (*all)->files)
      found += functions ? print_user_functions(out, file) : print_usdt(out, file);
    for (auto& words : (*all)->left_out) list_note(kTplist.name, "not listed: " + words);
    if (auto works = uprobes_work(); found && !works)
      list_note(kTplist.name, "none of them can be traced: " + works.error().why);
    return found;
  }

  std::size_t print_user_functions(Sink& out, const ProbeFinder::File& file) {
    const ReadFailures failures(file.path);
    auto all = symbols::find_functions(
        file.fd->get(),
        [&](const char* name) {
          if (is_wanted(pattern_, name)) return true;
          if (known_.size() < kMostFunctions) known_.emplace_back(name);
          return false;
        },
        kMostFunctions);
    for (auto& f : all.functions) {
      if (json_) {
        JsonLine line("user_function", "tplist");
        line.text("path", file.path).text("name", f.name).number("offset_bytes", f.offset);
        out.line(line.finish());
      } else {
        auto text = fmt::format("{} {}", printable(file.path), printable(f.name));
        out.line(level_ ? fmt::format("{} at {:#x}", text, f.offset) : text);
      }
    }
    auto say = [&](std::size_t n, std::string_view why) {
      if (n) list_note(kTplist.name, fmt::format("{}: {} not listed: {}", file.path, n, why));
    };
    say(all.indirect, "their code is chosen at run time (IFUNC)");
    say(all.outside, "not in the file's code");
    say(all.beyond, "too many in one file");
    using State = symbols::FunctionPlace::State;
    if (failures)
      list_note(kTplist.name, failures.error({}).why);
    else if (all.state == State::stripped)
      list_note(kTplist.name, file.path + " has no symbols (stripped)");
    else if (all.state == State::foreign)
      list_note(kTplist.name, file.path + " is for another processor, or 32-bit");
    else if (all.state == State::no_elf)
      list_note(kTplist.name, file.path + " is no program or library");
    else
      looked_in_ += (looked_in_.empty() ? "" : ", ") + file.path;
    return all.functions.size();
  }

  std::size_t print_usdt(Sink& out, const ProbeFinder::File& file) {
    const ReadFailures failures(file.path);
    auto notes = symbols::read_usdt(file.fd->get());
    std::map<std::string, std::vector<symbols::UsdtProbe>> all;
    for (auto& probe : notes.probes) {
      auto full = fmt::format("{}:{}", probe.provider, probe.name);
      if (is_wanted(pattern_, full))
        all[full].push_back(probe);
      else
        known_.push_back(full);
    }
    for (auto& [full, places] : all) {
      if (!json_) {
        out.write(usdt_lines(file.path, places, level_));
        continue;
      }
      JsonLine line("usdt", "tplist");
      line.text("path", file.path).text("provider", places[0].provider);
      line.text("name", places[0].name).key("locations").begin_array();
      for (auto& p : places)
        line.begin_object()
            .number("offset_bytes", p.offset)
            .number("semaphore_offset_bytes", p.semaphore)
            .text("arguments", p.arguments)
            .end_object();
      out.line(line.end_array().finish());
    }
    if (notes.outside)
      list_note(kTplist.name, fmt::format("{}: {} USDT probes not listed: not in the file's code",
                                          file.path, notes.outside));
    if (failures)
      list_note(kTplist.name, failures.error({}).why);
    else if (notes.readable)
      looked_in_ += (looked_in_.empty() ? "" : ", ") + file.path;
    else if (!config_.own<Verbosity>().library.empty())
      list_note(kTplist.name, file.path + " is no program or library of this machine");
    return all.size();
  }

  const Config& config_;
  const std::string pattern_;
  const int level_;
  const bool json_;
  Kernel kernel_;
  std::map<std::string, Prototypes> prototypes_;  ///< by module
  std::optional<ProbeFinder> finder_;
  std::string looked_in_;           ///< readable files, separated by commas
  std::vector<std::string> known_;  ///< names that did not match, for suggestions
};

}  // namespace

bool is_wanted(std::string_view pattern, std::string_view full) {
  if (pattern.empty()) return true;
  auto matches = [&](std::string_view name) {
    return fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), 0) == 0;
  };
  auto colon = full.find(':');
  return matches(full) || (pattern.find(':') == pattern.npos && colon != full.npos &&
                           matches(full.substr(colon + 1)));
}

std::string field_lines(std::string_view format, bool places) {
  std::string text;
  each_tracepoint_field(format, [&](const TracepointField& f) {
    if (of_all(f.declaration)) return;
    text += fmt::format("    {};", printable(f.declaration));
    if (places)
      text += fmt::format("  offset {}, {} bytes{}", f.at, f.size, f.is_signed ? ", signed" : "");
    text += '\n';
  });
  return text;
}

void add_fields(JsonLine& line, std::string_view format) {
  line.key("fields").begin_array();
  each_tracepoint_field(format, [&](const TracepointField& f) {
    if (of_all(f.declaration)) return;
    line.begin_object().text("declaration", f.declaration).number("offset_bytes", f.at);
    line.number("size_bytes", f.size).boolean("signed", f.is_signed).end_object();
  });
  line.end_array();
}

std::string usdt_lines(std::string_view path, const std::vector<symbols::UsdtProbe>& places,
                       int level) {
  auto& first = places.front();
  auto text =
      fmt::format("{} {}:{}\n", printable(path), printable(first.provider), printable(first.name));
  if (!level) return text;
  if (first.semaphore)
    text.insert(text.size() - 1, fmt::format(" [semaphore {:#x}]", first.semaphore));
  text += fmt::format("  {} location(s)\n", places.size());
  auto arguments = symbols::parse_usdt_arguments(first.arguments);
  text += arguments ? fmt::format("  {} argument(s)\n", arguments->size())
                    : "  argument(s) in a form that is not known\n";
  if (level < 2) return text;
  for (std::size_t i = 0; i < places.size(); i++) {
    text += fmt::format("  location #{} {:#x}\n", i, places[i].offset);
    if (!places[i].arguments.empty())
      text += fmt::format("    arguments {}\n", printable(places[i].arguments));
  }
  return text;
}

std::vector<Option> tplist_options() {
  auto library = shared::library('l', "lib");
  library.doc = "USDT probes of this library or program: a path, or a name such as c or python3";
  // Not Config::Probes::library, which the finder would use for any file.
  library.apply = [](Config& c, std::string_view text) -> Result<void> {
    if (text.empty()) return usage("--library: needs a path or a name");
    c.own<Verbosity>().library = text;
    return {};
  };
  return {shared::pid(),
          library,
          flag('f', "functions", "functions instead: of the kernel, or with -l or -p of files"),
          flag('b', "btf", "what programs of type tracing get: tracepoints' arguments by BTF"),
          verbosity("fields, prototypes, numbers of arguments; -vv: also where they are"),
          flag(0, "json", "one JSON object per line")};
}

int run_tplist(const Config& config, const std::vector<std::string>& words) {
  Sink out;
  List list(config, words);
  auto found = list.print(out);
  if (!found) return list_failed("tplist", found.error());
  auto status = end_of(out);
  if (*found || status != kOk) return status;
  if (auto why = list.without_any(); !why.empty()) {
    list_note("tplist", why);
    return kOk;
  }
  return list_failed("tplist", {words.empty() ? "there is nothing to list"
                                              : fmt::format("nothing matches '{}'", words[0]),
                                {},
                                words.empty() ? "" : list.hint()});
}

}  // namespace coretap
