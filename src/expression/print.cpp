#include "expression/print.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "coretap/net.hpp"
#include "text/names.hpp"

namespace coretap::expression {

namespace {

constexpr std::size_t kWidest = 512;

/// Size in bytes of the value that a conversion prints.
int width_of(const Conversion& c, const Output& output) {
  if (c.bytes) return c.bytes;
  auto& type = *output.type;
  if (type.kind != Type::integer) return 8;
  if (type.untyped) return 4;  // unless the conversion specifies another type
  return std::max<int>(4, static_cast<int>(type.bytes));
}

std::uint64_t cut_to(std::uint64_t value, int bytes) {
  return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::int64_t signed_of(std::uint64_t value, int bytes) {
  const int rest = 64 - 8 * bytes;
  return static_cast<std::int64_t>(value << rest) >> rest;
}

std::string digits(const Conversion& c, std::string number, std::string_view sign) {
  if (c.precision >= 0 && number.size() < static_cast<std::size_t>(c.precision))
    number.insert(0, static_cast<std::size_t>(c.precision) - number.size(), '0');
  if (c.zeros && !c.left && c.precision < 0 && number.size() + sign.size() < c.width)
    number.insert(0, c.width - number.size() - sign.size(), '0');
  return std::string(sign) + number;
}

std::string padded(const Conversion& c, std::string text) {
  if (text.size() < c.width) {
    if (c.left)
      text.append(c.width - text.size(), ' ');
    else
      text.insert(0, c.width - text.size(), ' ');
  }
  return text;
}

std::string address(const Output& output, const Shown& value) {
  constexpr std::size_t kV4 = 4, kV6 = 16;
  if (output.form == Output::bytes && value.text.size() >= kV4)
    return ip_address(value.text.size() == kV6 ? 6 : 4, value.text.data());

  auto number = static_cast<std::uint32_t>(value.number);
  return ip_address(4, &number);
}

}  // namespace

Result<MessageFormat> parse_format(const std::string& format, std::string_view text,
                                   std::size_t at) {
  MessageFormat all;
  std::string before;
  for (std::size_t i = 0; i < format.size(); i++) {
    if (format[i] != '%') {
      before += format[i];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      before += '%';
      i++;
      continue;
    }
    Conversion c;
    const auto start = i++;
    for (; i < format.size(); i++) {
      if (format[i] == '-')
        c.left = true;
      else if (format[i] == '+')
        c.sign = true;
      else if (format[i] == ' ')
        c.blank = true;
      else if (format[i] == '#')
        c.alternate = true;
      else if (format[i] == '0')
        c.zeros = true;
      else
        break;
    }
    auto number = [&] {
      std::size_t n = 0;
      for (; i < format.size() && std::isdigit(static_cast<unsigned char>(format[i])); i++)
        n = std::min(kWidest + 1, n * 10 + static_cast<std::size_t>(format[i] - '0'));
      return n;
    };
    c.width = number();
    if (i < format.size() && format[i] == '.') {
      i++;
      c.precision = static_cast<int>(number());
    }
    auto rest = std::string_view(format).substr(i);
    for (auto [word, bytes] : {std::pair<std::string_view, int>{"hh", 1},
                               {"h", 2},
                               {"ll", 8},
                               {"l", 8},
                               {"z", 8},
                               {"j", 8},
                               {"t", 8}})
      if (rest.starts_with(word)) {
        c.bytes = bytes;
        i += word.size();
        break;
      }
    c.kind = i < format.size() ? format[i] : '\0';
    if (c.kind == 'i') c.kind = 'd';
    if (c.kind == '\0' || std::string_view("duxXocspKUIE").find(c.kind) == std::string_view::npos)
      return error_at(text, at + start, "this is no conversion that is known here",
                      "%d %u %x %o %c %s %p, %K and %U (functions), %I (IP address), %E (errno)");
    if (c.width > kWidest || c.precision > static_cast<int>(kWidest))
      return error_at(text, at + start, fmt::format("no more than {} columns", kWidest));
    c.before = std::move(before);
    before.clear();
    all.conversions.push_back(std::move(c));
  }
  all.rest = std::move(before);
  return all;
}

Shown value_of(const expression_out& out, std::size_t index, const Output& output,
               std::uint32_t text_bytes, std::size_t room) {
  // Of values, only those that the command line has may be there.
  if (room < offsetof(expression_out, values) + (index + 1) * sizeof out.values[0])
    return {.fault = true};
  auto* text = reinterpret_cast<const char*>(&out) + output.at;
  const auto behind = room - std::min<std::size_t>(room, output.at);
  Shown value{out.values[index]};
  value.fault = out.faults >> index & 1;
  if (output.form == Output::text) {
    value.cut = out.cut >> index & 1;
    value.text.assign(text, strnlen(text, std::min<std::size_t>(text_bytes, behind)));
  } else if (output.form == Output::bytes) {
    value.text.assign(text, std::min<std::size_t>(output.room, behind));
  }
  return value;
}

std::string show(const Conversion& c, const Output& output, const Shown& value,
                 const Namers& namers) {
  if (value.fault) return padded(c, "(fault)");
  const int bytes = width_of(c, output);
  const auto raw = cut_to(value.number, bytes);
  switch (c.kind) {
    case 's': {
      auto text = value.text + (value.cut ? "..." : "");
      if (c.precision >= 0 && text.size() > static_cast<std::size_t>(c.precision))
        text.resize(static_cast<std::size_t>(c.precision));
      return padded(c, std::move(text));
    }
    case 'c':
      return padded(c, std::string(1, static_cast<char>(value.number)));
    case 'd': {
      auto n = signed_of(value.number, bytes);
      if (!c.bytes && output.type->kind == Type::integer && !output.type->is_signed &&
          output.type->bytes < 4)
        n = static_cast<std::int64_t>(raw);
      const bool negative = n < 0;
      auto magnitude = negative ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
      return padded(c, digits(c, fmt::format("{}", magnitude),
                              negative  ? "-"
                              : c.sign  ? "+"
                              : c.blank ? " "
                                        : ""));
    }
    case 'u':
      return padded(c, digits(c, fmt::format("{}", raw), ""));
    case 'x':
      return padded(c, digits(c, fmt::format("{:x}", raw), c.alternate && raw ? "0x" : ""));
    case 'X':
      return padded(c, digits(c, fmt::format("{:X}", raw), c.alternate && raw ? "0X" : ""));
    case 'o':
      return padded(c, digits(c, fmt::format("{:o}", raw), c.alternate && raw ? "0" : ""));
    case 'p':
      return padded(c, fmt::format("{:#x}", value.number));
    case 'K':
    case 'U': {
      auto& name = c.kind == 'K' ? namers.kernel : namers.user;
      return padded(c, name ? name(value.number) : fmt::format("{:#x}", value.number));
    }
    case 'I':
      return padded(c, address(output, value));
    default:
      break;
  }
  const auto error = signed_of(value.number, std::min(bytes, 8));
  const bool known = error < 0 && error >= -4095;
  return padded(c, known ? error_name(static_cast<int>(error)) : fmt::format("{}", error));
}

std::string render(const MessageFormat& format, const std::vector<Output>& outputs,
                   const std::vector<Shown>& values, const Namers& namers) {
  std::string message;
  for (std::size_t i = 0; i < format.conversions.size() && i < values.size(); i++)
    message +=
        format.conversions[i].before + show(format.conversions[i], outputs[i], values[i], namers);
  return message + format.rest;
}

}  // namespace coretap::expression
