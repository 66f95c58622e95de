#include "expression/typed.hpp"

#include <linux/btf.h>

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "coretap/sanitize.hpp"
#include "expression/types.hpp"

namespace coretap::expression {

namespace {

constexpr int kDeepestRecord = 24;              // nesting of records
constexpr std::size_t kMostElements = 32;       // maximum shown of an array
constexpr std::size_t kMostOfValue = 2'000;     // members of one value, including nested ones
constexpr std::int64_t kLastError = -4095;      // lowest address that encodes an errno
constexpr std::size_t kLongestValue = 1 << 20;  // of one value, whose layout may be of a recording
constexpr std::string_view kIndent = "    ";

/// Makes layouts of a value's type and of its members.
class Maker {
 public:
  Maker(const Btf& btf, std::uint32_t bits) : btf_(btf), most_(bits) {}

  /// `at`: bits of the whole value before this one.
  Layout make(const Type& type, std::uint32_t at, int depth) {
    Layout made{.at = at};
    if (depth > kDeepestRecord || ++made_ > kMostOfValue) return made;
    made.bits = type.bytes * 8;
    switch (type.kind) {
      case Type::integer: {
        made.kind = Layout::number;
        made.is_signed = type.is_signed;
        made.truth = type.truth;
        made.character = type.character;
        auto* t = type.id ? btf_.type(type.id) : nullptr;
        if (!t || BTF_INFO_KIND(t->info) == BTF_KIND_INT) break;
        made.words = btf_.enumerators(t);
        made.is_signed =
            std::ranges::any_of(made.words, [](auto& word) { return word.second < 0; });
        break;
      }
      case Type::pointer:
        made.kind = Layout::pointer;
        break;
      case Type::array:
        made.kind = Layout::array;
        made.count = type.count;
        made.inner.push_back(make(*type.to, 0, depth + 1));
        made.bits = made.inner.front().bits * made.count;
        break;
      case Type::record:
        if (!type.id) break;
        made.kind = Layout::record;
        if (!type.name.ends_with(' ')) made.type = type.name;
        type.members->each([&](std::string_view name, auto& find) {
          const auto member = find();
          if (at + member->bit >= most_) return false;
          auto& inner = made.inner.emplace_back(make(*member->type, at + member->bit, depth + 1));
          inner.name = name;
          inner.at = member->bit;
          if (member->bits) inner.bits = member->bits;
          return false;
        });
        break;
      case Type::nothing:
        break;
    }
    return made;
  }

 private:
  const Btf& btf_;
  const std::uint32_t most_;
  std::size_t made_ = 0;
};

class Writer {
 public:
  Writer(std::string_view bytes, bool one_line) : bytes_(bytes), one_line_(one_line) {}

  /// Writes the value whose first bit is `at`.
  void write(const Layout& l, std::size_t at, int depth) {
    if (out_.size() > kLongestValue) return;
    switch (l.kind) {
      case Layout::number:
        return number(l, bits(at, l.bits));
      case Layout::pointer: {
        auto address = bits(at, 64);
        out_ += address ? fmt::format("{:#x}", address) : "NULL";
        return;
      }
      case Layout::array:
        return array(l, at, depth);
      case Layout::record:
        return record(l, at, depth);
      case Layout::unknown:
        break;
    }
    out_ += "?";
  }

  void number(const Layout& l, std::uint64_t value) {
    if (l.bits < 64) value &= (std::uint64_t{1} << l.bits) - 1;
    auto number = static_cast<std::int64_t>(value);
    if (l.is_signed && l.bits && l.bits < 64)
      number = static_cast<std::int64_t>(value << (64 - l.bits)) >> (64 - l.bits);
    for (auto& [word, known] : l.words)
      if (known == number) {
        out_ += word;
        return;
      }
    if (l.truth)
      out_ += value ? "true" : "false";
    else if (l.character && std::isprint(static_cast<int>(value)))
      out_ += fmt::format("'{}'", static_cast<char>(value));
    else
      out_ += l.is_signed ? fmt::format("{}", number) : fmt::format("{}", value);
  }

  /// In output of several lines, line breaks in text are escaped.
  void quote(std::string_view text) {
    out_ += '"';
    out_ += one_line_ ? std::string(text) : printable(text);
    out_ += '"';
  }

  std::string take() { return std::move(out_); }

 private:
  bool has(std::size_t at, std::size_t width) const { return at + width <= bytes_.size() * 8; }

  std::uint64_t bits(std::size_t at, std::size_t width) const {
    const auto shift = at % 8;
    if (!width || width > 64 || shift + width > 64 || !has(at, width)) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = (shift + width + 7) / 8; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes_[at / 8 + i]);
    value >>= shift;
    return width < 64 ? value & ((std::uint64_t{1} << width) - 1) : value;
  }

  bool is_zero(const Layout& l, std::size_t at) const {
    for (std::size_t n = 0; n < l.bits && has(at, 1);) {
      auto step = std::min<std::size_t>(l.bits - n, at % 8 ? 8 - at % 8 : 8);
      if (bits(at, step)) return false;
      at += step;
      n += step;
    }
    return true;
  }

  /// Writes text up to its terminator, in quotes; false: it is empty.
  bool text(std::size_t at, std::size_t count) {
    auto all = bytes_.substr(std::min(bytes_.size(), at / 8), count);
    all = all.substr(0, all.find('\0'));
    if (all.empty()) return false;
    quote(all);
    return true;
  }

  void array(const Layout& l, std::size_t at, int depth) {
    auto& element = l.inner.front();
    if (element.character && text(at, l.count)) return;
    std::size_t n = l.count, most = 0;
    while (n && (!has(at + (n - 1) * element.bits, element.bits) ||
                 is_zero(element, at + (n - 1) * element.bits)))
      n--;
    out_ += '{';
    for (; most < n && most < kMostElements; most++) {
      if (most) out_ += ", ";
      write(element, at + most * element.bits, depth);
    }
    if (most < n) out_ += ", ...";
    out_ += '}';
  }

  void record(const Layout& l, std::size_t at, int depth) {
    bool any = false;
    auto next = [&] {
      if (any) out_ += one_line_ ? ", " : ",";
      any = true;
      if (one_line_) return;
      out_ += '\n';
      for (int i = 0; i <= depth; i++) out_ += kIndent;
    };
    out_ += '{';
    for (auto& m : l.inner) {
      if (m.kind != Layout::record && m.kind != Layout::array && !has(at + m.at, m.bits)) continue;
      if (is_zero(m, at + m.at)) continue;
      next();
      out_ += fmt::format(".{} = ", m.name);
      write(m, at + m.at, depth + 1);
    }
    if (!has(at, l.bits)) {
      next();
      out_ += "...";
    }
    if (any && !one_line_) {
      out_ += ",\n";
      for (int i = 0; i < depth; i++) out_ += kIndent;
    }
    out_ += '}';
  }

  const std::string_view bytes_;
  const bool one_line_;
  std::string out_;
};

}  // namespace

std::shared_ptr<const Layout> layout_of(const Btf& btf, const Output& output, std::uint32_t bytes) {
  auto* type = output.type.get();
  if (output.form == Output::bytes && type->kind == Type::pointer && type->to)
    type = type->to.get();
  return std::make_shared<const Layout>(Maker(btf, bytes * 8).make(*type, 0, 0));
}

std::string typed(const Layout& layout, const Output& output, const Shown& value, bool one_line) {
  const bool leads = output.type->kind == Type::pointer;
  const auto error = static_cast<std::int64_t>(value.number);
  if (leads && !output.type->user && error < 0 && error >= kLastError)
    return fmt::format("ERR_PTR({})", error);
  if (value.fault) return "(fault)";
  if (leads && !value.number) return "NULL";
  if (output.form == Output::text) {
    Writer writer({}, one_line);
    writer.quote(value.text);
    return writer.take() + (value.cut ? "..." : "");
  }
  if (output.form == Output::number) {
    if (leads) return fmt::format("{:#x}", value.number);
    Writer writer({}, one_line);
    writer.number(layout, value.number);
    return writer.take();
  }
  Writer writer(value.text, one_line);
  writer.write(layout, 0, 0);
  auto text = writer.take();
  return layout.type.empty() ? text : fmt::format("({}){}", layout.type, text);
}

}  // namespace coretap::expression
