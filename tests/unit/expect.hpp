// Shared by tests of all directories, with their precompiled headers.
#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/writer.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "places.hpp"

namespace coretap {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

using Words = std::vector<std::string>;
using WordSet = std::set<std::string>;
using Numbers = std::vector<std::uint64_t>;

/// Whether a text has all of these parts.
template <class... Parts>
testing::AssertionResult says(std::string_view text, const Parts&... parts) {
  for (std::string_view part : {std::string_view(parts)...})
    if (text.find(part) == text.npos)
      return testing::AssertionFailure() << "'" << text << "' does not say '" << part << "'";
  return testing::AssertionSuccess();
}
/// Cases of "INPUT => RESULT".
template <class Answer>
void expect_each(Answer answer, std::initializer_list<std::string_view> cases) {
  for (auto each : cases) {
    auto arrow = each.find(" => ");
    EXPECT_EQ(answer(std::string(each.substr(0, arrow))), each.substr(arrow + 4)) << each;
  }
}
/// The same, with parts of the results.
template <class Answer>
void expect_says(Answer answer, std::initializer_list<std::string_view> cases) {
  for (auto each : cases) {
    auto arrow = each.find(" => ");
    EXPECT_TRUE(says(answer(std::string(each.substr(0, arrow))), each.substr(arrow + 4))) << each;
  }
}
inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) count++;
  return count;
}
inline Words lines_of(const std::string& text) {
  Words all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}
inline Words words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}
inline rapidjson::Document parsed_json(std::string_view text) {
  rapidjson::Document d;
  d.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  EXPECT_FALSE(d.HasParseError()) << text;
  return d;
}

/// Members with these names, each as JSON writes its value.
inline std::string members(const rapidjson::Value& object, const std::string& names) {
  std::string all;
  std::istringstream in(names);
  for (std::string name; in >> name;) {
    rapidjson::StringBuffer text;
    rapidjson::Writer<rapidjson::StringBuffer> writer(text);
    if (object.HasMember(name.c_str())) object[name.c_str()].Accept(writer);
    all += (all.empty() ? "" : " ") + std::string(text.GetString(), text.GetSize());
  }
  return all;
}

/// A directory that is removed with its test.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    auto name = (fs::temp_directory_path() / "coretap-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) ::abort();
    path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string in(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, std::string_view text) const {
    fs::create_directories(fs::path(in(name)).parent_path());
    std::ofstream(in(name), std::ios::binary) << text;
    return in(name);
  }
  WordSet names() const {
    WordSet all;
    for (auto& entry : fs::directory_iterator(path_)) all.insert(entry.path().filename());
    return all;
  }

 private:
  std::string path_;
};

struct Pipe {
  int reader = -1, writer = -1;
  explicit Pipe(int flags = 0) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | flags) == 0) reader = ends[0], writer = ends[1];
  }
  ~Pipe() {
    shut(reader);
    shut(writer);
  }
  static void shut(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};
/// Whether the command exists and succeeded.
inline bool succeeds(const std::string& command) {
  return ::system((command + " >/dev/null 2>&1").c_str()) == 0;
}
inline bool has_command(const std::string& name) { return succeeds("command -v " + name); }
inline std::string output_of(const std::string& command) {
  std::string all;
  char part[4096];
  auto* pipe = ::popen(command.c_str(), "r");
  for (std::size_t n = 0; pipe && (n = ::fread(part, 1, sizeof part, pipe)) > 0;)
    all.append(part, n);
  if (pipe) ::pclose(pipe);
  return all;
}
/// Runs it in a child process: its exit status, or 1000 and the signal that ended it.
inline int in_child(const std::function<int()>& body, pid_t* pid = nullptr) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  if (pid) *pid = child;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
/// The lowest free descriptor.
inline int next_descriptor() {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}
/// Reads until the end, or until it would block.
inline std::string rest_of(int fd) {
  std::string all;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(fd, part, sizeof part)) > 0;)
    all.append(part, static_cast<std::size_t>(n));
  return all;
}

}  // namespace coretap
