// A terminal on which reports redraw themselves in place, and the keys that are pressed there. Its
// settings are restored when the object goes, by a signal that ends the program too.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

class Screen {
 public:
  Screen() = default;
  ~Screen() { close(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Standard input and output are the terminal that this process may read from, and it can move
  /// its cursor.
  static bool possible();

  /// Single keys without echo, no cursor. Signals by keys (Ctrl-C, Ctrl-Z) stay.
  void open();
  bool is_open() const { return open_; }
  /// The terminal as it was, the cursor below what was drawn last.
  void close();
  /// After the program was stopped and goes on: another program may have changed the terminal.
  void reopen();

  /// Keys pressed since the last call; an empty one if there were none.
  std::string take_keys() const;

  /// What a picture of these lines writes: cut to the terminal's columns and rows, over what is
  /// there.
  std::string picture(const std::vector<std::string>& lines);

 private:
  bool open_ = false;
  int drawn_ = 0;  ///< lines
};

}  // namespace coretap
