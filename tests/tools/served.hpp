// `coretap serve` as a process, and its pages.
#pragma once
#include <sys/socket.h>
#include <sys/un.h>

#include "harness.hpp"

namespace coretap::tooltest {

using namespace std::chrono_literals;

// ---- a page, parsed by its format only ----

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;

  std::string label(const std::string& key) const {
    auto found = labels.find(key);
    return found == labels.end() ? "" : found->second;
  }
};

struct Metrics {
  std::vector<Sample> samples;
  std::map<std::string, std::string> types;  ///< by family

  double sum(const std::string& name, const std::map<std::string, std::string>& with = {}) const {
    double all = 0;
    for (auto& s : samples)
      if (s.name == name && std::all_of(with.begin(), with.end(), [&](auto& label) {
            return s.label(label.first) == label.second;
          }))
        all += s.value;
    return all;
  }
  std::size_t count(const std::string& name) const {
    return static_cast<std::size_t>(
        std::count_if(samples.begin(), samples.end(), [&](auto& s) { return s.name == name; }));
  }
  double up(const std::string& tool) const { return sum("coretap_tool_up", {{"tool", tool}}); }
};

/// Fails if a line has a wrong format, a series occurs twice, or a family has no type.
inline Metrics parse_page(const std::string& text) {
  Metrics page;
  std::set<std::string> seen;
  for (auto& line : lines(text)) {
    if (line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      auto name = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(page.types.emplace(name, line.substr(line.rfind(' ') + 1)).second)
          << "two types: " << line;
      continue;
    }
    Sample s;
    std::size_t at = line.find_first_of("{ ");
    if (at == line.npos) throw std::runtime_error("no sample: " + line);
    s.name = line.substr(0, at);
    auto whole = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(seen.insert(whole).second) << "twice: " << whole;
    if (line[at] == '{') {
      at++;
      while (line.at(at) != '}') {
        auto equals = line.find("=\"", at);
        if (equals == line.npos) throw std::runtime_error("no label: " + line);
        auto key = line.substr(at, equals - at);
        std::string value;
        for (at = equals + 2; line.at(at) != '"'; at++) {
          if (line[at] == '\\') {
            at++;
            EXPECT_TRUE(strchr("\\\"n", line.at(at))) << line;
            value += line[at] == 'n' ? '\n' : line[at];
          } else {
            value += line[at];
          }
        }
        EXPECT_TRUE(s.labels.emplace(key, value).second) << line;
        if (line.at(++at) == ',') at++;
      }
      at++;
    }
    char* end = nullptr;
    s.value = strtod(line.c_str() + at, &end);
    EXPECT_EQ(*end, '\0') << line;
    auto family = s.name;
    for (auto* suffix : {"_bucket", "_sum", "_count"})
      if (family.ends_with(suffix) && !page.types.contains(family))
        family.resize(family.size() - strlen(suffix));
    EXPECT_TRUE(page.types.contains(family)) << "no type: " << line;
    page.samples.push_back(std::move(s));
  }
  return page;
}

// ---- the server ----

inline int connected(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

/// The server's response, with its head; empty: none.
inline std::string answer_to(const std::string& socket, const std::string& request) {
  int fd = connected(socket);
  if (fd < 0) return {};
  std::string all;
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  return all;
}

/// Number of files that the workload `opener` has opened: releases it and waits for it.
inline double opens_of(Workload& opener) {
  opener.release();
  return opener.truth()["bulk"].real();
}

class Server {
 public:
  /// Returns when all tools of its file, made by entry(), run.
  explicit Server(const std::string& config) {
    static const std::regex tool("run = \"(\\w+)[^\n]*\"\n(name = \"(\\w+)\")?");
    Strings entries;
    for (std::sregex_iterator at(config.begin(), config.end(), tool), end; at != end; ++at) {
      require_tool((*at)[1]);
      entries.push_back((*at)[3].matched ? (*at)[3] : (*at)[1]);
    }
    write(config);
    Spawn spawn;
    spawn.argv = {bin_directory() + "/coretap", "serve", file(), "--listen", "unix:" + socket()};
    spawn.death_signal = SIGTERM;  // so that its tools end, too
    process_ = std::make_unique<Process>(spawn);
    until([&] { return !get("/metrics").empty() || process_->ended(); });
    if (!all_up(entries)) throw std::runtime_error("not all tools run: " + process_->err());
  }
  ~Server() {
    process_->signal(SIGTERM);
    process_->wait();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void write(const std::string& config) const { std::ofstream(file()) << config; }
  std::string file() const { return dir_.path() + "/serve.toml"; }
  std::string socket() const { return dir_.path() + "/socket"; }
  const std::string& dir() const { return dir_.path(); }
  std::string answer(const std::string& request) const { return answer_to(socket(), request); }
  std::string get(const std::string& path) const {
    return answer("GET " + path + " HTTP/1.0\r\n\r\n");
  }
  Process& process() { return *process_; }

  /// A new page: requests within one second share one.
  Metrics page() const {
    std::this_thread::sleep_for(1100ms);
    auto answer = get("/metrics");
    auto body = answer.find("\r\n\r\n");
    if (body == answer.npos) throw std::runtime_error("no answer: " + process_->err());
    EXPECT_EQ(answer.substr(0, answer.find("\r\n")), "HTTP/1.0 200 OK");
    return parse_page(answer.substr(body + 4));
  }
  /// Waits until the condition holds for a page; false: it never did.
  bool await(const std::function<bool(const Metrics&)>& condition) const {
    return until([&] { return condition(page()); });
  }
  bool all_up(const Strings& tools) const {
    return await([&](auto& p) {
      return std::all_of(tools.begin(), tools.end(), [&](auto& t) { return p.up(t) == 1; });
    });
  }

  std::vector<pid_t> children() const {
    std::vector<pid_t> all;
    auto id = std::to_string(process_->pid());
    for (auto& word : words(slurp("/proc/" + id + "/task/" + id + "/children")))
      all.push_back(std::stoi(word));
    return all;
  }
  pid_t listener() const { return child("Seccomp:\t2"); }
  pid_t tool() const { return child("Seccomp:\t0"); }

 private:
  /// The first child whose status contains this.
  pid_t child(const char* state) const {
    for (auto pid : children())
      if (contains(slurp("/proc/" + std::to_string(pid) + "/status"), state)) return pid;
    throw std::runtime_error(std::string("no child is ") + state);
  }

  TemporaryDirectory dir_;
  std::unique_ptr<Process> process_;
};

inline std::string entry(const std::string& run, const std::string& more = {}) {
  return "[[tool]]\nrun = \"" + run + "\"\n" + more + "\n";
}

}  // namespace coretap::tooltest
