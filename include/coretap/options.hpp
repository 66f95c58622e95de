// The command line of a tool, declared once: parsing, help, man page and completion read it.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

class Config;

/// Read-only data of a skeleton: the only channel from options to a kernel program.
template <class Skeleton>
using rodata_of = std::remove_pointer_t<decltype(Skeleton::rodata)>;

/// A place in the read-only data.
struct Setting {
  std::size_t offset = 0;
  std::size_t size = 0;  ///< bytes; 0: none
};

template <class Rodata, class T>
Setting setting(T Rodata::*member) {
  // A pointer to a data member is its offset in the Itanium C++ ABI.
  return {static_cast<std::size_t>(std::bit_cast<std::ptrdiff_t>(member)), sizeof(T)};
}

/// What completion may offer for a value.
enum class Complete { nothing, file, directory, pid, user, disk, command };

struct Option {
  char letter = 0;           ///< 0: none
  std::string_view name;     ///< long name; the same thing in every tool
  std::string_view metavar;  ///< empty: a flag without a value
  std::string_view doc;      ///< no full stop
  /// Takes the value ("" for a flag) into the configuration.
  std::function<Result<void>(Config&, std::string_view)> apply;
  std::string_view alias = {};  ///< another long name that peers use, accepted silently
  Complete complete = Complete::nothing;
  bool shared = false;  ///< spelled once in the library
};

/// A flag that sets a bool of the kernel program, or only its own name.
Option flag(char letter, std::string_view name, std::string_view doc, Setting target = {});

/// A number, put into `target` times `unit`; `present` tells that it was given at all.
Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Setting target, std::uint64_t unit = 1, Setting present = {});
Option value(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
             std::function<Result<void>(Config&, std::string_view)> apply,
             Complete complete = Complete::nothing);

/// Options that mean the same in every tool that has them.
namespace shared {
Option pid();
Option tid(char letter = 't');
Option uid(char letter = 'u');
Option comm(char letter = 0);
Option cgroup();
Option timestamp(char letter = 'T');
Option milliseconds();
Option duration(char letter = 0);
Option kernel_stack();
Option extended();
Option print_uid();
Option disk();
Option stack_depth();
Option stack_storage();
Option max_keys();
Option top(char letter = 0);
Option sort(char letter = 's');

/// -p -t --comm --cgroup (and -u where the tool leaves the letter free)
std::vector<Option> task_filters(bool uid_letter = true);
}  // namespace shared

/// What stands on the command line without a dash.
enum class Positionals { none, interval_count, duration };

}  // namespace coretap
