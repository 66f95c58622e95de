#include "stacks/recorded_stacks.hpp"

#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "stacks/pprof_fields.hpp"
#include "stacks/stack_word.hpp"
#include "text/gzip.hpp"

namespace coretap {

using namespace pprof;

namespace {

constexpr std::string_view kThreadTime = "thread time: ";
constexpr std::string_view kUnnamed = "[unknown]";

/// Why a file cannot be used: a part of the message.
using Broken = std::string;

/// Adds a value to a total that must stay sensible.
bool adds(std::uint64_t& total, std::uint64_t value) {
  if (value > RecordedStacks::kMostTime - total) return false;
  total += value;
  return true;
}

class ProfileReader {
 public:
  ProfileReader(RecordedStacks& to, const RecordedType& type) : to_(to), type_(type) {}

  std::optional<Broken> read(std::string_view bytes) {
    try {
      return parts({bytes.data(), bytes.size()});
    } catch (const protozero::exception&) {
      return "it is damaged";
    }
  }

 private:
  using Message = protozero::pbf_reader;
  static std::string_view bytes_of(Message& m) {
    auto view = m.get_view();
    return {view.data(), view.size()};
  }
  static Message message(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

  /// Calls `number` for each number of the message, and `inner` for each text or message in it.
  template <class Number, class Inner>
  static void each(std::string_view bytes, const Number& number, const Inner& inner) {
    auto m = message(bytes);
    while (m.next()) {
      const auto tag = m.tag();  // without NDEBUG, reading the value forgets it
      if (m.wire_type() == protozero::pbf_wire_type::varint)
        number(tag, m.get_uint64());
      else if (m.wire_type() == protozero::pbf_wire_type::length_delimited)
        inner(tag, bytes_of(m));
      else
        m.skip();
    }
  }
  template <class Number>
  static void each_number(std::string_view bytes, const Number& number) {
    each(bytes, number, [](auto, auto) {});
  }
  /// The numbers of a repeated field, packed or not.
  static void unpack(std::string_view bytes, std::vector<std::uint64_t>& to) {
    const auto* at = bytes.data();
    const auto* end = at + bytes.size();
    while (at != end) to.push_back(protozero::decode_varint(&at, end));
  }

  std::string_view text(std::uint64_t index) const {
    return index < texts_.size() ? texts_[index] : std::string_view();
  }

  std::optional<Broken> parts(Message m) {
    std::vector<std::string_view> types, samples, mappings, locations, functions;
    std::vector<std::uint64_t> comments;
    std::size_t count = 0;
    while (m.next()) {
      if (++count > RecordedStacks::kMostParts)
        return fmt::format("it has more than {} parts", RecordedStacks::kMostParts);
      if (m.wire_type() != protozero::pbf_wire_type::length_delimited) {
        if (m.tag() == profile::duration_nanos && m.wire_type() == protozero::pbf_wire_type::varint)
          to_.lasted_ns = m.get_uint64();
        else if (m.tag() == profile::comment && m.wire_type() == protozero::pbf_wire_type::varint)
          comments.push_back(m.get_uint64());
        else
          m.skip();
        continue;
      }
      auto tag = m.tag();
      auto bytes = bytes_of(m);
      if (tag == profile::sample_type) types.push_back(bytes);
      if (tag == profile::sample) samples.push_back(bytes);
      if (tag == profile::mapping) mappings.push_back(bytes);
      if (tag == profile::location) locations.push_back(bytes);
      if (tag == profile::function) functions.push_back(bytes);
      if (tag == profile::string_table) texts_.push_back(bytes);
      if (tag == profile::comment) unpack(bytes, comments);
    }
    if (to_.lasted_ns > RecordedStacks::kMostTime) return "its duration makes no sense";
    if (auto broken = find_types(types)) return broken;
    for (auto of : comments) take_comment(text(of));
    for (auto of : mappings) take_mapping(of);
    for (auto of : functions) take_function(of);
    for (auto of : locations) take_location(of);
    for (auto of : samples)
      if (auto broken = take_sample(of)) return broken;
    return {};
  }

  std::optional<Broken> find_types(const std::vector<std::string_view>& types) {
    for (std::size_t i = 0; i < types.size(); i++) {
      std::string_view name, unit;
      each_number(types[i], [&](auto tag, auto value) {
        if (tag == value_type::type) name = text(value);
        if (tag == value_type::unit) unit = text(value);
      });
      if (name == type_.name && unit == type_.unit)
        value_at_ = i;
      else if (unit == "count")
        count_at_ = i;
    }
    if (value_at_) return {};
    return fmt::format("its samples have no value '{}' in {}", type_.name, type_.unit);
  }

  void take_comment(std::string_view words) {
    if (!words.starts_with(kThreadTime)) return;
    words.remove_prefix(kThreadTime.size());
    auto ns = parse_unsigned(words.substr(0, words.find(' ')));
    if (ns && *ns <= RecordedStacks::kMostTime) to_.thread_ns = *ns;
  }

  void take_mapping(std::string_view bytes) {
    std::uint64_t id = 0;
    std::string_view path;
    each_number(bytes, [&](auto tag, auto value) {
      if (tag == mapping::id) id = value;
      if (tag == mapping::filename) path = text(value);
    });
    if (path == kKernelImage) kernel_mappings_[id] = true;
  }
  void take_function(std::string_view bytes) {
    std::uint64_t id = 0, name = 0;
    each_number(bytes, [&](auto tag, auto value) {
      if (tag == function::id) id = value;
      if (tag == function::name) name = value;
    });
    auto known = text(name);
    functions_[id] = to_.name(known.empty() ? kUnnamed : known);
  }
  void take_location(std::string_view bytes) {
    std::uint64_t id = 0, in = 0;
    std::vector<std::uint32_t> names;
    each(
        bytes,
        [&](auto tag, auto value) {
          if (tag == location::id) id = value;
          if (tag == location::mapping_id) in = value;
        },
        [&](auto tag, auto inner) {
          if (tag != location::line || names.size() >= RecordedStacks::kMostDepth) return;
          each_number(inner, [&](auto of, auto value) {
            if (of != line::function_id) return;
            if (auto f = functions_.find(value); f != functions_.end()) names.push_back(f->second);
          });
        });
    if (names.empty()) names.push_back(to_.name(kUnnamed));
    if (kernel_mappings_.contains(in))
      for (auto n : names) to_.kernel[n] = true;
    locations_[id] = std::move(names);
  }

  std::optional<Broken> take_sample(std::string_view bytes) {
    std::vector<std::uint64_t> at, values;
    std::string_view comm = kUnnamed;
    each(
        bytes,
        [&](auto tag, auto value) {
          if (tag == sample::location_id) at.push_back(value);
          if (tag == sample::value) values.push_back(value);
        },
        [&](auto tag, auto inner) {
          if (tag == sample::location_id) unpack(inner, at);
          if (tag == sample::value) unpack(inner, values);
          if (tag != sample::label) return;
          std::uint64_t key = 0, str = 0;
          each_number(inner, [&](auto of, auto value) {
            if (of == label::key) key = value;
            if (of == label::str) str = value;
          });
          if (text(key) == "comm") comm = text(str);
        });
    if (*value_at_ >= values.size()) return "a sample has too few values";
    RecordedStacks::Stack stack;
    stack.value = values[*value_at_];
    stack.count = count_at_ && *count_at_ < values.size() ? values[*count_at_] : 0;
    if (!adds(total_, stack.value)) return "its values make no sense";
    stack.frames.push_back(to_.name(comm));
    for (auto id = at.rbegin(); id != at.rend(); ++id) {
      auto l = locations_.find(*id);
      if (l == locations_.end()) return "a sample refers to what it does not have";
      stack.frames.insert(stack.frames.end(), l->second.rbegin(), l->second.rend());
      if (stack.frames.size() > RecordedStacks::kMostDepth)
        return fmt::format("a stack has more than {} frames", RecordedStacks::kMostDepth);
    }
    frames_ += stack.frames.size();
    if (frames_ > RecordedStacks::kMostFrames)
      return fmt::format("it has more than {} frames", RecordedStacks::kMostFrames);
    if (stack.value) to_.stacks.push_back(std::move(stack));
    return {};
  }

  RecordedStacks& to_;
  const RecordedType& type_;
  std::vector<std::string_view> texts_;
  std::optional<std::size_t> value_at_, count_at_;
  std::unordered_map<std::uint64_t, bool> kernel_mappings_;
  std::unordered_map<std::uint64_t, std::uint32_t> functions_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> locations_;  ///< innermost first
  std::uint64_t total_ = 0;
  std::size_t frames_ = 0;
};

std::optional<Broken> read_folded(RecordedStacks& to, std::string_view bytes,
                                  const RecordedType& type) {
  std::uint64_t total = 0;
  std::size_t number = 0, frames = 0;
  while (!bytes.empty()) {
    auto line = take_until(bytes, '\n');
    number++;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto end = line.rfind(' ');
    auto value = end == line.npos ? std::nullopt : parse_unsigned(line.substr(end + 1));
    if (!value || !end) return fmt::format("line {} is not a stack and a number", number);
    RecordedStacks::Stack stack;
    if (*value > RecordedStacks::kMostTime / type.folded_scale ||
        !adds(total, *value * type.folded_scale))
      return "its values make no sense";
    stack.value = *value * type.folded_scale;
    for (auto rest = line.substr(0, end); !rest.empty();) {
      auto word = take_until(rest, ';');
      auto code = take_annotation(word);
      auto name = to.name(word);
      if (code == FrameCode::kernel) to.kernel[name] = true;
      stack.frames.push_back(name);
      if (stack.frames.size() > RecordedStacks::kMostDepth)
        return fmt::format("line {} has more than {} frames", number, RecordedStacks::kMostDepth);
    }
    frames += stack.frames.size();
    if (frames > RecordedStacks::kMostFrames || to.stacks.size() >= RecordedStacks::kMostParts)
      return fmt::format("it has more than {} stacks, or {} frames", RecordedStacks::kMostParts,
                         RecordedStacks::kMostFrames);
    if (stack.value) to.stacks.push_back(std::move(stack));
  }
  return {};
}

}  // namespace

std::uint32_t RecordedStacks::name(std::string_view text) {
  auto [at, is_new] = ids_.try_emplace(folded_word(start_of_name(text, kLongestName)),
                                       static_cast<std::uint32_t>(names.size()));
  if (is_new) {
    names.push_back(at->first);
    kernel.push_back(false);
  }
  return at->second;
}

std::string thread_time_note(std::uint64_t thread_ns, std::uint64_t lasted_ns) {
  return fmt::format(
      "{}{} ns ({:.2f} threads)", kThreadTime, thread_ns,
      lasted_ns ? static_cast<double>(thread_ns) / static_cast<double>(lasted_ns) : 0);
}

Result<RecordedStacks> recorded_stacks(std::string_view bytes, std::string_view file,
                                       const RecordedType& type, std::string_view tool) {
  RecordedStacks stacks;
  std::optional<Broken> broken;
  if (is_gzip(bytes)) {
    auto unpacked = gunzip(bytes, RecordedStacks::kMostUnpacked);
    if (unpacked)
      broken = ProfileReader(stacks, type).read(*unpacked);
    else
      broken = fmt::format("it is damaged, or has more than {} MiB unpacked",
                           RecordedStacks::kMostUnpacked >> 20);
  } else if (bytes.find('\0') != bytes.npos) {
    broken = "it is neither gzip-compressed nor text";
  } else {
    stacks.folded = true;
    broken = read_folded(stacks, bytes, type);
  }
  if (!broken && stacks.stacks.empty()) broken = "it has no stacks";
  if (!broken) return stacks;
  return Error{
      fmt::format("{} cannot be compared with", printable(file)), std::move(*broken),
      fmt::format("name a file that '{0} --pprof FILE' or '{0} --folded > FILE' wrote", tool)};
}

Result<RecordedStacks> read_recorded_stacks(const std::string& path, const RecordedType& type,
                                            std::string_view tool) {
  auto bytes = read_file(path, RecordedStacks::kMostBytes + 1);
  if (!bytes) {
    auto error = system_error("cannot read " + printable(path), errno);
    if (error.hint.empty())
      error.hint = fmt::format("name a file that '{} --pprof FILE' wrote", tool);
    return error;
  }
  if (bytes->size() <= RecordedStacks::kMostBytes) return recorded_stacks(*bytes, path, type, tool);
  return Error{fmt::format("{} cannot be compared with", printable(path)),
               fmt::format("it has more than {} MiB", RecordedStacks::kMostBytes >> 20),
               fmt::format("name a file that '{} --pprof FILE' wrote", tool)};
}

}  // namespace coretap
