// --anonymous: tokens in a recording instead of names. The same name has the same token everywhere
// in one recording; the key that tokens are made with is known to this object alone.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/recall.hpp"
#include "record/layout.hpp"

namespace coretap::record {

class Anonymous {
 public:
  Anonymous();

  /// "p-3fa9c1d2"; an empty word, "." and ".." stay.
  std::string word(std::string_view name) const;
  /// Tokens of its words. Bytes between words stay, as the slashes of a path.
  std::string text(std::string_view text) const;
  /// The same of a path or of a module's name, but those of system directories stay: /usr (without
  /// /usr/local), /lib, /bin, /sbin, /proc, /sys without names of cgroups and interfaces.
  std::string path(std::string_view path) const;
  /// A text with paths in it.
  std::string with_paths(std::string_view text) const;
  /// A target of the command line: "vfs_read" and "c:malloc" stay, "/opt/x:f" becomes "/p-...:f".
  std::string target(std::string_view target) const;

  /// A question to the system, and its answer (base/recall.hpp).
  std::string question(Ask what, std::string_view question) const;
  std::string answer(Ask what, std::string_view question, std::string_view answer) const;

  /// Are all data of this layout known, so that nothing of them stays that is a name?
  static bool knows(const Layout& layout);
  /// Keys, values and records of iterators: they stay as long as they are. `cgroups`: where a
  /// command's name and a cgroup's id can be in the same place, it is an id.
  std::string fields(const Layout& layout, std::string_view bytes, bool cgroups = false) const;
  /// A record of the ring buffer: only members of the layout are left, and its texts.
  std::string record(const Layout& layout, std::string_view bytes) const;
  /// A text for a row, whose key has this layout.
  std::string row_text(const Layout& key, std::string_view bytes) const;
  /// Of interpreted code: without its source.
  std::string runtime_code(std::string_view bytes) const;

 private:
  std::uint64_t hash(std::string_view bytes) const;
  std::string symbol(std::string_view answer) const;
  void address(char* bytes) const;

  std::array<std::uint64_t, 2> key_;
};

}  // namespace coretap::record
