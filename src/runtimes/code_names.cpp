#include "runtimes/code_names.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtimes/hotspot_methods.hpp"
#include "runtimes/line_table.hpp"
#include "runtimes/ruby.hpp"
#include "runtimes/runtimes.hpp"

namespace coretap::runtimes {

namespace {

constexpr std::uint32_t kMostLine = 100'000'000;  // of a text in which every line has a byte

void add_utf8(std::string& to, std::uint32_t c) {
  if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  auto more = [&](int shift) { to += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xc0 | c >> 6);
    more(0);
  } else if (c < 0x10000) {
    to += static_cast<char>(0xe0 | c >> 12);
    more(6);
    more(0);
  } else {
    to += static_cast<char>(0xf0 | c >> 18);
    more(12);
    more(6);
    more(0);
  }
}

/// Characters of one, two or four bytes.
std::string text_of(const runtime_text& text, std::string_view bytes) {
  if (text.kind == RUNTIME_UTF8) {
    std::string out(bytes.substr(0, text.bytes));
    if (text.cut) out += "...";
    return out;
  }
  if (text.kind != 1 && text.kind != 2 && text.kind != 4) return {};
  bytes = bytes.substr(0, text.bytes);
  std::string out;
  for (; bytes.size() >= text.kind; bytes.remove_prefix(text.kind)) {
    std::uint32_t c = 0;
    std::memcpy(&c, bytes.data(), text.kind);  // the kernel program's byte order
    add_utf8(out, c);
  }
  if (text.cut) out += "...";
  return out;
}

/// Instead of a name: "[python: unknown version]".
std::string mark_of(std::uint64_t word) {
  auto text = std::string(name_of(kind_of(word)));
  std::string_view why;
  switch (word & ((1U << RUNTIME_MARK_BITS) - 1)) {
    case RUNTIME_MARK_VERSION:
      why = "unknown version";
      break;
    case RUNTIME_MARK_THREAD:
      why = "thread not found";
      break;
    case RUNTIME_MARK_UNREADABLE:
      why = "frames not readable";
      break;
    case RUNTIME_MARK_FRAME:
      why = "frame not readable";
      break;
    default:
      return text;
  }
  text.back() = ':';
  return text.append(" ").append(why).append("]");
}

}  // namespace

bool CodeNames::take(const void* record, std::size_t size) {
  auto& from = *static_cast<const runtime_code*>(record);
  if (size < sizeof from.mark || from.mark != RUNTIME_CODE) return false;
  constexpr auto kHead = offsetof(runtime_code, lines);
  if (size < kHead) return true;
  Code code;
  code.minor = from.minor;
  code.first = from.line < kMostLine ? from.line : 0;
  code.function = text_of(from.name, {from.name_text, sizeof from.name_text});
  code.file = text_of(from.file, {from.file_text, sizeof from.file_text});
  const auto lines = std::min<std::size_t>(from.line_bytes, RUNTIME_LINES);
  // Records have padding behind them.
  const std::string_view sent(from.lines, std::min(lines, size - kHead));
  code.kind = kind_of(STACK_RUNTIME | from.number << RUNTIME_PLACE_BITS);
  if (code.kind == RUNTIME_V8) {
    code.first = sources_.line_of(static_cast<pid_t>(from.tgid), from.source, sent);
    if (code.function.empty()) code.function = "<anonymous>";
  } else if (code.kind == RUNTIME_HOTSPOT) {
    code.function = method_name(code.file, code.function);
    code.file = std::string(sent.substr(0, std::min(sent.find('\0'), sent.size())));
    code.lines = sent.substr(std::min<std::size_t>(HOTSPOT_SOURCE, sent.size()));
    if (from.hotspot.nmethod) {
      code.minor = 0;  // its places are no bytecodes
      if (inlined && !codes_.contains(from.number))
        code.inlined = inlined(static_cast<pid_t>(from.tgid), from.hotspot);
    } else {
      code.first = hotspot_line(from.minor, code.lines, 0);
    }
  } else if (code.kind == RUNTIME_PHP) {
    // Code outside of functions has no name.
    if (code.function.empty()) code.function = "<main>";
    const auto of = sent.substr(0, PHP_CLASS_NAME);
    if (auto name = of.substr(0, of.find('\0')); !name.empty())
      code.function = std::string(name) + "::" + code.function;
  } else if (code.kind == RUNTIME_RUBY) {
    code.lines = ruby_lines(from, sent);
  } else {
    code.lines = sent;
  }
  auto [at, is_new] = codes_.try_emplace(from.number);
  if (!is_new) {
    if (code.kind == RUNTIME_V8 && (!code.first || !at->second.first))
      code.first = at->second.first = std::max(code.first, at->second.first);
    if (!at->second.is_same(code)) at->second.ambiguous = true;
    return true;
  }
  at->second = std::move(code);
  bytes_ += at->second.bytes();
  order_.push_back(from.number);
  if (bytes_ > kMostBytes) drop_oldest();
  return true;
}

/// Tables that were not sent, as they are long, are in the process: they are read once.
std::string CodeNames::ruby_lines(const runtime_code& from, std::string_view sent) {
  const auto known = codes_.find(from.number);
  auto read = [&](pid_t of, std::uint64_t address, std::span<char> to) {
    return read_ && known == codes_.end() && budget_.take(to.size()) && read_(of, address, to);
  };
  auto lines = ruby_lines_of(sent, static_cast<pid_t>(from.tgid), read, kMostTable);
  return lines.empty() && known != codes_.end() ? known->second.lines : lines;
}

/// Half of them: frequent ones are not sent again while the kernel program remembers them.
void CodeNames::drop_oldest() {
  while (bytes_ > kMostBytes / 2 && !order_.empty()) {
    auto at = codes_.find(order_.front());
    order_.pop_front();
    bytes_ -= at->second.bytes();
    codes_.erase(at);
  }
}

RuntimeFrame CodeNames::find(std::uint64_t word, bool exact) const {
  const auto number = (word & ~(STACK_RUNTIME | STACK_EXACT)) >> RUNTIME_PLACE_BITS;
  const auto place = word & RUNTIME_PLACE_MASK;
  if (!number) return {.function = mark_of(word)};
  auto at = codes_.find(number);
  if (at == codes_.end() || at->second.ambiguous) return {};
  auto& code = at->second;
  RuntimeFrame frame{.function = code.function, .file = code.file, .line = code.first};
  if (code.kind == RUNTIME_HOTSPOT && code.minor && place)  // interpreted
    if (auto line = hotspot_line(code.minor, code.lines, static_cast<std::uint32_t>(place - 1)))
      frame.line = line;
  if (code.kind == RUNTIME_PHP && place) frame.line = static_cast<std::uint32_t>(place);
  if (code.inlined && place) {
    auto calls = code.inlined->at(static_cast<std::uint32_t>(place), exact);
    for (std::size_t i = 0; i < calls.size(); i++) {
      if (i + 1 == calls.size())
        frame.line = calls[i].line;
      else
        frame.inlined.push_back({.function = calls[i].method->function,
                                 .file = calls[i].method->file,
                                 .line = calls[i].line,
                                 .inlined = true});
    }
  }
  if (code.kind == RUNTIME_RUBY)
    if (auto line = ruby_line(code.lines, static_cast<std::uint32_t>(place));
        line && *line < kMostLine)
      frame.line = *line;
  if (code.kind != RUNTIME_PYTHON) return frame;
  if (auto line = line_at(code.minor, code.lines, code.first, static_cast<std::uint32_t>(place));
      line && *line < kMostLine)
    frame.line = *line;
  frame.shown = has_lines(code.minor, code.lines);
  return frame;
}

}  // namespace coretap::runtimes
