// Gzip-compressed profiles that pprof and many others read (github.com/google/pprof,
// proto/profile.proto). Pure: stacks in, bytes out.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "stacks/stack_word.hpp"

namespace coretap {

class PprofProfile {
 public:
  /// The type of a sample's value.
  struct Type {
    std::string_view name, unit;
  };
  explicit PprofProfile(std::vector<Type> types);

  struct Task {
    std::string comm;
    std::uint32_t pid = 0;  ///< 0: several processes
  };
  /// Adds a stack, the outermost frame first, with a value for each type. Equal stacks are merged.
  void add(std::span<const StackWord> path, const Task& task,
           std::span<const std::uint64_t> values);

  struct About {
    std::int64_t began_ns = 0;  ///< since 1970
    std::uint64_t lasted_ns = 0;
    std::uint64_t period = 0;        ///< of the last type, between two samples; 0: not sampled
    std::vector<std::string> notes;  ///< a line each
  };
  /// The complete profile; add nothing afterwards.
  std::string finish(const About& about);

 private:
  /// A file's code at addresses private to the profile, as each process maps it at others.
  struct Mapping {
    std::uint64_t start, end, offset, path, build_id;
    bool named;  ///< the names of all functions are known
  };
  struct File {
    std::shared_ptr<const CodeFile> file;
    std::vector<std::size_t> mappings;  ///< one for each of its first segments; 0: none
  };
  struct Address {
    std::uint64_t mapping = 0, address = 0;
  };

  std::uint64_t text(std::string_view word);
  const File& file(const std::shared_ptr<const CodeFile>& file);
  std::uint64_t kernel();
  std::size_t add_mapping(const Mapping& mapping);
  Address address_of(const StackWord& word);
  std::uint64_t function(const std::string& name, const std::string& linkage_name,
                         const std::string& source = {});
  /// `words`: the function at a place, after those that the compiler inlined there.
  std::uint64_t location(std::span<const StackWord* const> words);

  std::vector<Type> types_;
  std::map<std::string, std::uint64_t, std::less<>> texts_;  ///< and their indices, from 0
  std::vector<const std::string*> text_order_;
  std::map<const CodeFile*, File> files_;
  std::vector<Mapping> mappings_;  ///< numbered from 1
  std::uint64_t next_start_;
  std::uint64_t kernel_ = 0;
  /// Name, the linker's name, source file.
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::uint64_t> functions_;
  struct Line {
    std::uint64_t function, line;
    // clang-tidy 14 takes a 0 in defaulted code for a pointer.
    auto operator<=>(const Line&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  /// Mapping, address and lines, innermost first; none: its function is unknown.
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::vector<Line>>, std::uint64_t> locations_;
  struct Key {
    std::vector<std::uint64_t> locations;  ///< leaf first
    std::uint64_t comm, pid;
    bool operator<(const Key& b) const {
      return std::tie(locations, comm, pid) < std::tie(b.locations, b.comm, b.pid);
    }
  };
  std::map<Key, std::vector<std::uint64_t>> samples_;
};

}  // namespace coretap
