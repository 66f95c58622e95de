// coretap symbolize: functions, files and lines of addresses in a file.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/read_failures.hpp"
#include "base/uninterrupted.hpp"
#include "coretap/fd.hpp"
#include "coretap/json.hpp"
#include "coretap/options.hpp"
#include "lists/debuginfod.hpp"
#include "lists/lists.hpp"
#include "lists/verbosity.hpp"
#include "symbols/demangle.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/go_lines.hpp"
#include "symbols/process_files.hpp"
#include "symbols/source_lines.hpp"
#include "text/columns.hpp"

namespace coretap {

namespace {

constexpr std::string_view kSymbolize = "symbolize", kDebugRoot = "/usr/lib/debug";
constexpr std::size_t kMostInput = 64 << 20;  // bytes of standard input

struct DebugRoots {
  std::vector<std::string> all;
};

using Addresses = std::vector<std::uint64_t>;

Result<void> add_address(Addresses& all, std::string_view word) {
  auto digits = word;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  std::uint64_t address = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address, 16);
  if (error != std::errc() || end != digits.data() + digits.size())
    return usage(fmt::format("'{}' is no address", printable(word)),
                 "addresses are hexadecimal, as in the file: 0x1149");
  all.push_back(address);
  return {};
}

/// Words of standard input.
Result<void> read_addresses(Addresses& all) {
  std::string text;
  char buffer[64 << 10];
  for (;;) {
    const auto got = uninterrupted([&] { return ::read(STDIN_FILENO, buffer, sizeof buffer); });
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMostInput) return Error{"standard input has too many addresses"};
  }
  constexpr std::string_view kSpace = " \t\r\n";
  for (std::size_t at = 0; (at = text.find_first_not_of(kSpace, at)) != text.npos;) {
    const auto end = std::min(text.find_first_of(kSpace, at), text.size());
    if (auto added = add_address(all, std::string_view(text).substr(at, end - at)); !added)
      return added;
    at = end;
  }
  return {};
}

/// A file's places, from debug information, the table of Go's runtime, or its symbols alone.
class Symbolizer {
 public:
  Symbolizer(const Config& config, std::string path)
      : path_(std::move(path)), asks_(config.given("debuginfod")) {
    roots_ = config.own<DebugRoots>().all;
    roots_.emplace_back(kDebugRoot);
  }

  Result<void> open() {
    const ReadFailures failures(path_);
    const Fd handle = symbols::open_handle(path_, true);
    if (!handle) return Error{fmt::format("cannot open {}", printable(path_)), ::strerror(errno)};
    fd_ = symbols::open_regular(handle, symbols::kMaxElfSize);
    if (fd_)
      table_ = symbols::ElfSymbols::read(
          fd_.get(), [&](const symbols::DebugFileKey& key, const auto& accept) {
            for (auto& root : roots_)
              for (auto& path : key.paths(root, path_)) {
                const Fd file =
                    symbols::open_regular(symbols::open_handle(path, true), symbols::kMaxElfSize);
                if (file && accept(file.get())) return;
              }
          });
    if (table_) return {};
    if (failures) return failures.error(fmt::format("cannot read {}", printable(path_)));
    return Error{fmt::format("{} is no program or library", printable(path_)), {}, {}};
  }

  /// `addresses`: sorted.
  std::vector<symbols::SourcePlace> find(const Addresses& addresses) {
    const ReadFailures failures(path_);
    auto debug = symbols::find_debug_file(fd_.get(), path_, roots_).fd;
    std::vector<symbols::SourcePlace> places;
    if (!debug) places = symbols::go_lines(fd_.get(), addresses);
    if (!debug && places.empty() && asks_) debug = downloaded();
    if (debug) {
      places = symbols::SourceLines(debug.get()).find(addresses);
    } else if (places.empty()) {
      places.resize(addresses.size());
      list_note(kSymbolize, fmt::format("there is no debug information for {}{}", path_,
                                        table_->build_id().empty()
                                            ? std::string()
                                            : fmt::format(" (build id {})", table_->build_id())));
    }
    if (failures) list_note(kSymbolize, failures.error({}).why);
    return places;
  }
  const symbols::ElfSymbols& table() const { return *table_; }
  /// Of the question to the servers.
  const std::optional<Error>& failed() const { return failed_; }

 private:
  Fd downloaded() {
    auto file = ask_debuginfod(path_, table_->build_id());
    if (file && symbols::debug_file_key(fd_.get()).is_of(file->get())) return std::move(*file);
    failed_ = file ? Error{fmt::format("the servers have another file for {}", printable(path_)),
                           "its build id differs"}
                   : file.error();
    return {};
  }

  const std::string path_;
  const bool asks_;
  std::optional<Error> failed_;
  std::vector<std::string> roots_;
  Fd fd_;
  std::shared_ptr<symbols::ElfSymbols> table_;
};

struct ShownFrame {
  std::string function, linkage_name;
  std::optional<std::uint64_t> offset;  ///< within the function, if that is a symbol's
  symbols::SourceFrame source;
};

std::vector<ShownFrame> shown_frames(const symbols::ElfSymbols& table, std::uint64_t address,
                                     symbols::SourcePlace& place) {
  std::vector<ShownFrame> all;
  const auto* symbol = table.find(address);
  if (place.frames.empty() && symbol) place.frames.emplace_back();
  for (auto& frame : place.frames) {
    ShownFrame shown;
    // An inlined function has no symbol.
    if (frame.function.empty() && !frame.inlined && symbol) {
      frame.function = table.name(*symbol);
      shown.offset = address - symbol->start;
    }
    shown.function = symbols::demangle(frame.function);
    if (shown.function != frame.function) shown.linkage_name = frame.function;
    shown.source = std::move(frame);
    all.push_back(std::move(shown));
  }
  return all;
}

std::string json_line(std::uint64_t address, const std::vector<ShownFrame>& frames,
                      std::string_view why) {
  JsonLine line("symbol", kSymbolize);
  line.number("address", address).key("frames").begin_array();
  for (auto& f : frames) {
    line.begin_object().text_if(!f.function.empty(), "function", f.function);
    line.text_if(!f.linkage_name.empty(), "linkage_name", f.linkage_name);
    line.number_if(f.offset.has_value(), "offset_bytes", f.offset.value_or(0));
    line.text_if(!f.source.file.empty(), "file", f.source.file);
    line.number_if(f.source.line != 0, "line", f.source.line);
    line.boolean("inlined", f.source.inlined).end_object();
  }
  line.end_array().text_if(!why.empty(), "why", why);
  return std::string(line.finish());
}

std::string text_lines(std::uint64_t address, const std::vector<ShownFrame>& frames,
                       std::string_view why) {
  auto text = fmt::format("{:#x}", address);
  const auto width = text.size();
  if (frames.empty())
    return text + " [unknown]" + (why.empty() ? "" : fmt::format(" ({})", why)) + '\n';
  for (auto& f : frames) {
    if (&f != &frames.front()) text.append(width, ' ');
    text += ' ';
    text += f.function.empty() ? "[unknown]" : printable(f.function);
    if (f.offset) text += fmt::format("+{:#x}", *f.offset);
    if (f.source.inlined) text += " (inlined)";
    if (!f.source.file.empty()) {
      text += " at " + printable(f.source.file);
      if (f.source.line) text += fmt::format(":{}", f.source.line);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::vector<Option> symbolize_options() {
  return {
      value(
          0, "debug-root", "DIRECTORY",
          "search it for debug files before /usr/lib/debug; may be repeated",
          [](Config& c, std::string_view text) -> Result<void> {
            if (text.empty()) return usage("--debug-root: needs a directory");
            while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
            c.own<DebugRoots>().all.emplace_back(text);
            return {};
          },
          Complete::directory)
          .adding_up(),
      flag(0, "debuginfod", "if debug information is not here, ask the servers in DEBUGINFOD_URLS"),
      flag(0, "json", "one JSON object per line")};
}

int run_symbolize(const Config& config, const std::vector<std::string>& words) {
  if (config.given("debuginfod"))
    if (auto can = check_debuginfod(); !can) return list_failed(kSymbolize, can.error());
  Addresses asked;
  for (std::size_t i = 1; i < words.size(); i++)
    if (auto added = add_address(asked, words[i]); !added)
      return list_failed(kSymbolize, added.error());
  if (words.size() == 1)
    if (auto read = read_addresses(asked); !read) return list_failed(kSymbolize, read.error());

  // Debug links are searched beside the file, by its absolute path.
  std::string path = words[0];
  if (char* absolute = ::realpath(path.c_str(), nullptr)) {
    path = absolute;
    ::free(absolute);
  }
  Symbolizer file(config, path);
  if (auto opened = file.open(); !opened) return list_failed(kSymbolize, opened.error());
  auto sorted = asked;
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  auto places = file.find(sorted);
  if (auto& failed = file.failed())
    list_note(kSymbolize, fmt::format("{}{}{}{}{}", failed->what, failed->why.empty() ? "" : ": ",
                                      failed->why, failed->hint.empty() ? "" : ": ", failed->hint));
  Sink out;
  bool any = asked.empty();
  std::vector<std::vector<ShownFrame>> frames(sorted.size());
  std::string_view missing;
  for (std::size_t i = 0; i < sorted.size(); i++) {
    if (!places[i].frames.empty() && missing.empty()) missing = places[i].why;
    frames[i] = shown_frames(file.table(), sorted[i], places[i]);
    any |= !frames[i].empty();
  }
  if (!missing.empty()) list_note(kSymbolize, fmt::format("{}: {}", path, missing));
  for (auto address : asked) {
    const auto i =
        static_cast<std::size_t>(std::ranges::lower_bound(sorted, address) - sorted.begin());
    if (config.given("json"))
      out.line(json_line(address, frames[i], places[i].why));
    else
      out.write(text_lines(address, frames[i], places[i].why));
  }
  const auto status = end_of(out);
  return status != kOk || any ? status : int{kFailed};
}

}  // namespace coretap
