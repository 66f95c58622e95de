#include "stacks/pprof.hpp"

#include <iterator>
#include <tuple>
#include <utility>

#include "coretap/sanitize.hpp"
#include "coretap/symbols.hpp"
#include "stacks/pprof_fields.hpp"
#include "text/gzip.hpp"
#include "text/protobuf.hpp"

namespace coretap {

using namespace pprof;

namespace {

constexpr std::uint64_t kFirstStart = 0x400000, kGap = 0x10000;
// Limits, as files may be malformed.
constexpr std::size_t kMostSegments = 64;
constexpr std::uint64_t kMostCode = 1ULL << 36;  // bytes
constexpr std::string_view kUnknown = "[unknown]";

/// True if debug information says that `word` is part of the function that follows it.
bool is_inlined_in(const StackWord& word, const StackWord& caller) {
  auto *in = word.place, *out = caller.place;
  return in && out && in->inlined && !in->compiled && in->at && in->at == out->at &&
         in->file == out->file && word.kind == caller.kind;
}

}  // namespace

PprofProfile::PprofProfile(std::vector<Type> types)
    : types_(std::move(types)), next_start_(kFirstStart) {
  text("");
}

std::uint64_t PprofProfile::text(std::string_view word) {
  auto clean = printable(word);
  auto [at, is_new] = texts_.try_emplace(std::move(clean), text_order_.size());
  if (is_new) text_order_.push_back(&at->first);
  return at->second;
}

std::size_t PprofProfile::add_mapping(const Mapping& mapping) {
  mappings_.push_back(mapping);
  return mappings_.size();
}

const PprofProfile::File& PprofProfile::file(const std::shared_ptr<const CodeFile>& file) {
  auto [at, is_new] = files_.try_emplace(file.get());
  if (!is_new) return at->second;
  at->second.file = file;
  auto path = text(file->path), build_id = text(file->build_id);
  for (auto& segment : file->segments) {
    if (at->second.mappings.size() == kMostSegments) break;
    if (!segment.size || segment.size > kMostCode) {
      at->second.mappings.push_back(0);
      continue;
    }
    at->second.mappings.push_back(add_mapping(
        {next_start_, next_start_ + segment.size, segment.offset, path, build_id, true}));
    // The gap keeps readers from merging adjacent mappings.
    next_start_ = (next_start_ + segment.size + 2 * kGap) / kGap * kGap;
  }
  return at->second;
}

std::uint64_t PprofProfile::kernel() {
  if (!kernel_) kernel_ = add_mapping({0, 0, 0, text(kKernelImage), text(""), true});
  return kernel_;
}

PprofProfile::Address PprofProfile::address_of(const StackWord& word) {
  if (!word.place) return {};
  auto& place = *word.place;
  // Profiles are shared, and the kernel's addresses are secret.
  if (word.kind == StackWord::kernel) return {kernel(), 0};
  if (!place.file || !place.at) return {};
  auto& known = file(place.file);
  for (std::size_t i = 0; i < known.mappings.size(); i++) {
    auto& segment = place.file->segments[i];
    if (!known.mappings[i] || *place.at < segment.offset ||
        *place.at - segment.offset >= segment.size)
      continue;
    return {known.mappings[i],
            mappings_[known.mappings[i] - 1].start + (*place.at - segment.offset)};
  }
  return {};
}

std::uint64_t PprofProfile::function(const std::string& name, const std::string& linkage_name,
                                     const std::string& source) {
  std::tuple key{text(name), text(linkage_name.empty() ? name : linkage_name), text(source)};
  return functions_.try_emplace(key, functions_.size() + 1).first->second;
}

std::uint64_t PprofProfile::location(std::span<const StackWord* const> words) {
  auto in = address_of(*words.back());
  std::vector<Line> lines;
  for (auto* word : words) {
    auto* place = word->place;
    if (place && place->function.empty()) continue;
    lines.push_back({place ? function(place->function, place->linkage_name, place->source)
                           : function(word->text, {}),
                     place ? place->line : 0});
  }
  if (lines.empty()) {
    if (!in.mapping || !in.address)
      lines.push_back({function(std::string(kUnknown), {}), 0});
    else  // unnamed: the reader may find the name in the file
      mappings_[in.mapping - 1].named = false;
  }
  return locations_.try_emplace({in.mapping, in.address, std::move(lines)}, locations_.size() + 1)
      .first->second;
}

void PprofProfile::add(std::span<const StackWord> path, const Task& task,
                       std::span<const std::uint64_t> values) {
  Key key{{}, text(task.comm), task.pid};
  key.locations.reserve(path.size());
  std::vector<const StackWord*> at_one_place;
  for (auto word = path.rbegin(); word != path.rend(); ++word) {
    at_one_place.push_back(&*word);
    if (auto next = std::next(word); next != path.rend() && is_inlined_in(*word, *next)) continue;
    key.locations.push_back(location(at_one_place));
    at_one_place.clear();
  }
  auto& sums = samples_[std::move(key)];
  sums.resize(types_.size());
  for (std::size_t i = 0; i < types_.size(); i++) sums[i] += values[i];
}

std::string PprofProfile::finish(const About& about) {
  std::string bytes;
  protozero::pbf_writer to(bytes);
  auto type = [&](protozero::pbf_tag_type tag, const Type& t) {
    add_message(to, tag, [&](auto& m) {
      m.add_int64(value_type::type, static_cast<std::int64_t>(text(t.name)));
      m.add_int64(value_type::unit, static_cast<std::int64_t>(text(t.unit)));
    });
  };
  auto number = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  for (auto& t : types_) type(profile::sample_type, t);
  for (auto& entry : samples_)
    add_message(to, profile::sample, [&](auto& m) {
      auto& key = entry.first;
      auto& sums = entry.second;
      m.add_packed_uint64(sample::location_id, key.locations.begin(), key.locations.end());
      m.add_packed_int64(sample::value, sums.begin(), sums.end());
      add_message(m, sample::label, [&](auto& l) {
        l.add_int64(label::key, number(text("comm")));
        l.add_int64(label::str, number(key.comm));
      });
      if (key.pid)
        add_message(m, sample::label, [&](auto& l) {
          l.add_int64(label::key, number(text("pid")));
          l.add_int64(label::num, number(key.pid));
        });
    });
  for (std::size_t i = 0; i < mappings_.size(); i++)
    add_message(to, profile::mapping, [&](auto& m) {
      auto& is = mappings_[i];
      m.add_uint64(mapping::id, i + 1);
      m.add_uint64(mapping::memory_start, is.start);
      m.add_uint64(mapping::memory_limit, is.end);
      m.add_uint64(mapping::file_offset, is.offset);
      m.add_int64(mapping::filename, number(is.path));
      m.add_int64(mapping::build_id, number(is.build_id));
      m.add_bool(mapping::has_functions, is.named);
    });
  for (auto& entry : locations_)
    add_message(to, profile::location, [&](auto& m) {
      const auto in = std::get<0>(entry.first), address = std::get<1>(entry.first);
      m.add_uint64(location::id, entry.second);
      if (in) m.add_uint64(location::mapping_id, in);
      if (address) m.add_uint64(location::address, address);
      for (auto& each : std::get<2>(entry.first))
        add_message(m, location::line, [&](auto& l) {
          l.add_uint64(line::function_id, each.function);
          if (each.line) l.add_int64(line::line, number(each.line));
        });
    });
  for (auto& entry : functions_)
    add_message(to, profile::function, [&](auto& m) {
      m.add_uint64(function::id, entry.second);
      auto [name, system_name, file] = entry.first;
      m.add_int64(function::name, number(name));
      m.add_int64(function::system_name, number(system_name));
      if (file) m.add_int64(function::filename, number(file));
    });
  to.add_int64(profile::time_nanos, about.began_ns);
  to.add_int64(profile::duration_nanos, number(about.lasted_ns));
  if (about.period) {
    type(profile::period_type, types_.back());
    to.add_int64(profile::period, number(about.period));
  }
  std::vector<std::int64_t> notes;
  for (auto& n : about.notes) notes.push_back(number(text(n)));
  to.add_packed_int64(profile::comment, notes.begin(), notes.end());
  to.add_int64(profile::default_sample_type, number(text(types_.back().name)));
  for (auto* word : text_order_) to.add_string(profile::string_table, *word);
  return gzip(bytes, Compression::usual);
}

}  // namespace coretap
