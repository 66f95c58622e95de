// A terminal on which reports are redrawn in place, and its key presses. Its settings are restored
// when the object is destroyed, and by signals that end the program.
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

  /// True if standard input and output are the terminal that this process may read from, and the
  /// cursor can be moved.
  static bool possible();

  /// Reads single keys without echo, hides the cursor. Ctrl-C and Ctrl-Z still send signals.
  void open();
  bool is_open() const { return open_; }
  /// Restores the terminal, with the cursor below the last lines drawn.
  void close();
  /// After the program was stopped and continued: others may have changed the terminal.
  void reopen();

  /// For Reporter: descriptors with keys, and signals after which it must be drawn again.
  std::vector<int> wakes() const;
  std::vector<int> signals() const;

  /// Keys pressed since the last call; empty: none.
  std::string take_keys() const;

  /// The output that draws these lines: cut to the terminal's columns and rows, over the previous
  /// content.
  std::string picture(const std::vector<std::string>& lines);

 private:
  bool open_ = false;
  int drawn_ = 0;  ///< number of lines
};

/// The keys of every screen: q ends, p or space pauses, r reverses the rows.
struct ScreenKeys {
  bool quit = false, paused = false, reversed = false;
  /// True: the run ends.
  bool press(char key);
};

}  // namespace coretap
