// Processes whose names, files and behaviour would harm careless tracers, traced by all tools at
// once.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <termios.h>

#include "crafted_elf.hpp"
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

/// ESC, newline, C1's CSI, quotes, an invalid UTF-8 byte, DEL, separators; 14 bytes.
constexpr char kHostile[] = "\\x1b[2J\\x0a\\xc2\\x9b\"\\\\\\xff\\x7f;,\\x0d";
constexpr char kHostileBytes[] = "\x1b[2J\n\xc2\x9b\"\\\xff\x7f;,\r";
constexpr char kHostileJson[] = "\x1b[2J\n\xc2\x9b\"\\\xef\xbf\xbd\x7f;,\r";
constexpr char kHostileText[] = "\\x1b[2J\\x0a\\u{9b}\"\\\\xff\\x7f;,\\x0d";
constexpr char kHostileCsv[] = "\"\\x1b[2J\\x0a\\u{9b}\"\"\\\\xff\\x7f;,\\x0d\"";
constexpr char kHostileFolded[] = "\\x1b[2J\\x0a\\u{9b}\"\\\\xff\\x7f:,\\x0d";
/// The kernel rejects only newlines in names of cgroups.
constexpr char kHostileCgroup[] = "\x1b[2J\xc2\x9b\"\\\xff\x7f;,\r";

/// Options with which the tool traces the whole system.
Strings whole(const std::string& tool, Strings options) {
  if (has_option(tool, "--dump-on-exit")) options.emplace_back("--dump-on-exit");
  return options;
}

/// Output of a program to a terminal.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    char name[64];
    if (master_ < 0 || ::grantpt(master_) || ::unlockpt(master_) ||
        ::ptsname_r(master_, name, sizeof name))
      throw Skip("no terminals here");
    path_ = name;
    slave_ = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios raw{};
    if (slave_ < 0 || ::tcgetattr(slave_, &raw)) throw Skip("no terminals here");
    ::cfmakeraw(&raw);
    ::tcsetattr(slave_, TCSANOW, &raw);
    reader_ = std::thread([this] {
      char buffer[4096];
      for (ssize_t n; (n = ::read(master_, buffer, sizeof buffer)) > 0;)
        text_.append(buffer, static_cast<std::size_t>(n));
    });
  }
  ~Terminal() {
    end();
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  const std::string& path() const { return path_; }
  /// All output; the writer must have ended.
  const std::string& end() {
    if (slave_ >= 0) ::close(slave_);
    slave_ = -1;
    if (reader_.joinable()) reader_.join();
    return text_;
  }

 private:
  int master_, slave_ = -1;
  std::string path_, text_;
  std::thread reader_;
};

/// No number is a kernel address, in hexadecimal or in JSON. Error numbers look similar.
::testing::AssertionResult without_kernel_addresses(const std::string& text) {
  auto is_word = [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = 0, end; at < text.size(); at = end) {
    end = at + 1;
    if (!is_word(text[at])) continue;
    while (end < text.size() && is_word(text[end])) end++;
    auto word = text.substr(at, end - at);
    if (word.starts_with("0x")) word = word.substr(2);
    bool hex = word.size() == 16 && word.starts_with("ffff") &&
               word.find_first_not_of("0123456789abcdef") == word.npos;
    bool decimal = word.size() == 20 && word.find_first_not_of("0123456789") == word.npos;
    if (!hex && !decimal) continue;
    auto value = std::strtoull(word.c_str(), nullptr, hex ? 16 : 10);
    if (value >= 0xffff800000000000 && value < 0xfffffffffffff000)
      return ::testing::AssertionFailure() << "a kernel address, " << word
                                           << ", in: " << text.substr(at < 200 ? 0 : at - 200, 400);
  }
  return ::testing::AssertionSuccess();
}

/// Each process in this value with a name and a number, at any depth.
template <class Visit>
void each_named(const Json& value, const Visit& visit) {
  if (value.has("pid") && !value["pid"].is_null() && value.has("comm") && value["comm"].is_string())
    visit(value["pid"].u64(), value["comm"].str());
  value.each_member([&](const Json& member) { each_named(member, visit); });
}

void expect_well_formed_xml(const std::string& path) {
  auto read =
      run({"python3", "-c", "import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])", path});
  EXPECT_EQ(read.status, 0) << read.err;
  EXPECT_TRUE(safe_for_terminals(slurp(path)));
  EXPECT_TRUE(without_kernel_addresses(slurp(path)));
}

// ---- a load traced by the tools of a subsystem ----

constexpr std::size_t kAtOnce = 8;  // each runs three or more times, within the capacity of guests

/// "fs", "fs_2" and so on, with their tools.
std::map<std::string, Strings> groups() {
  std::map<std::string, Strings> all;
  std::map<std::string, std::size_t> counts;
  auto listed = run({tool_path("coretap"), "list", "--json"});
  for (auto& line : lines(listed.out)) {
    auto tool = Json::parse(line);
    auto subsystem = tool["subsystem"].str();
    auto number = counts[subsystem]++ / kAtOnce;
    auto name = number ? subsystem + "_" + std::to_string(number + 1) : subsystem;
    all[name].push_back(tool["tool"].str());
  }
  return all;
}

Strings names_of_groups() {
  Strings names;
  for (auto& [name, tools] : groups()) names.push_back(name);
  return names;
}

/// The tools of a group that run here.
Strings tools_of(const std::string& group) {
  Strings own, all = groups()[group];
  for (auto& name : all) {
    if (auto why = expected_missing(name)) continue;
    require_tool(name);
    own.push_back(name);
  }
  return own;
}

/// One tool, once for each kind of output.
struct Watch {
  std::string tool, svg;
  Terminal terminal;
  std::unique_ptr<Tracer> json, csv, text, folded;

  std::vector<Tracer*> all() const {
    std::vector<Tracer*> some{json.get(), csv.get(), text.get()};
    if (folded) some.push_back(folded.get());
    return some;
  }
};

std::unique_ptr<Watch> watch(const std::string& tool, const Strings& options,
                             const std::string& directory) {
  auto w = std::make_unique<Watch>();
  w->tool = tool;
  auto begin = [&](Strings more, const std::string& stdout_path = {}) {
    more.insert(more.end(), options.begin(), options.end());
    return std::make_unique<Tracer>(tool, more,
                                    Tracer::How{.stdout_path = stdout_path, .attached = false});
  };
  w->json = begin({"--json"});
  w->csv = begin({"--csv"});
  w->text = begin({"--color=never"}, w->terminal.path());
  if (has_option(tool, "--folded")) {
    w->svg = directory + "/" + tool + ".svg";
    w->folded = begin({"--folded", "--svg", w->svg});
  }
  return w;
}

/// The workloads of a load: their PIDs and names.
struct Load {
  std::map<std::uint64_t, std::set<std::string>> names;
  std::set<std::string> made;  ///< tools whose workload could produce their events
};

void check(Watch& w, const Load& load) {
  SCOPED_TRACE(w.tool);
  for (auto* tracer : w.all()) tracer->process().signal(SIGINT);
  for (auto* tracer : w.all()) {
    auto status = tracer->process().wait();
    const bool found = status == 1 && w.tool == "deadlock";
    EXPECT_TRUE(status == 0 || found ||
                (status == 4 && contains(tracer->process().err(), "missed")))
        << status << tracer->process().err();
    EXPECT_TRUE(safe_for_terminals(tracer->process().err()));
    EXPECT_TRUE(without_kernel_addresses(tracer->process().err()));
  }
  auto json = w.json->process().out(), csv = w.csv->process().out(), text = w.terminal.end();
  // It names sockets by address if the kernel shows addresses to it: tested below.
  const bool names_objects = w.tool == "tcpstates";
  for (auto* out : {&json, &csv, &text}) {
    EXPECT_TRUE(safe_for_terminals(*out));
    if (!names_objects) {
      EXPECT_TRUE(without_kernel_addresses(*out));
    }
    EXPECT_FALSE(contains(*out, "evil_decoy")) << "a name from another file";
  }
  auto report = parse_report(json, w.json->process().err());
  check_csv(csv);
  lines(text);

  bool named = false, names_any = false;
  for (auto& line : report.body)
    each_named(line, [&](std::uint64_t pid, const std::string& comm) {
      names_any = true;
      named |= comm == kHostileJson;
      if (auto known = load.names.find(pid); known != load.names.end()) {
        EXPECT_TRUE(known->second.contains(comm)) << pid << " is not " << comm;
      }
    });
  if (names_any && load.made.contains(w.tool)) {
    EXPECT_TRUE(named) << json;
    EXPECT_TRUE(contains(text, kHostileText) || !contains(text, "COMM")) << text;
    EXPECT_TRUE(contains(csv, kHostileCsv)) << csv;
  }
  if (!w.folded) return;
  auto folded = w.folded->process().out();
  EXPECT_TRUE(safe_for_terminals(folded));
  EXPECT_TRUE(without_kernel_addresses(folded));
  EXPECT_FALSE(contains(folded, "evil_decoy"));
  EXPECT_TRUE(contains(folded, std::string(kHostileFolded) + ";")) << folded;
  for (auto& line : lines(folded)) {
    auto space = line.rfind(' ');
    ASSERT_NE(space, std::string::npos) << line;
    EXPECT_EQ(line.find_first_not_of("0123456789", space + 1), std::string::npos) << line;
  }
  expect_well_formed_xml(w.svg);
}

TOOL_SUITE(HostileLoad, (names_of_groups()));

TOOL_TEST_P(HostileLoad, NothingEscapes, group) {
  auto tools = tools_of(group);
  if (tools.empty()) throw Skip("no tool of " + group + " runs here");
  TemporaryDirectory directory;
  ::chmod(directory.path().c_str(), 0755);
  Cgroup cgroup(kHostileCgroup);
  auto join = [procs = cgroup.path() + "/cgroup.procs"] {
    int fd = ::open(procs.c_str(), O_WRONLY);
    (void)!::write(fd, "0", 1);
    ::close(fd);
  };

  std::vector<std::unique_ptr<Watch>> watches;
  std::map<Strings, std::set<std::string>> at_once, in_turns;
  for (auto& tool : tools) {
    auto events = events_for(tool);
    auto options = events.options;
    // The memory pressure is a cgroup's own, or the kernel's.
    if (!events.in_turns && tool != "extfrag" && has_kernel_program(tool))
      options.insert(options.end(), {"--cgroup", cgroup.path()});
    if (has_option(tool, "--dump-on-exit"))
      options.insert(options.end(), {"--dump-on-exit", "--size", "65536"});
    watches.push_back(watch(tool, options, directory.path()));
    (events.in_turns ? in_turns : at_once)[events.command].insert(tool);
  }
  for (auto& w : watches)
    for (auto* tracer : w->all()) ASSERT_TRUE(tracer->attached()) << tracer->process().err();

  Load load;
  std::vector<std::pair<std::unique_ptr<Process>, std::set<std::string>>> running;
  auto begin = [&](Strings command, const std::set<std::string>& whose) {
    auto own = std::filesystem::path(command[0]).filename().string();
    if (own != "unruly") command.insert(command.end(), {"--comm", kHostile});
    if (own == "hostile") command.insert(command.end(), {"--name", kHostile});
    command.insert(command.end(), {"--timeout", std::to_string(kPatience.count())});
    running.emplace_back(std::make_unique<Process>(Spawn{.argv = command, .in_child = join}),
                         whose);
    auto pid = static_cast<std::uint64_t>(running.back().first->pid());
    // The last one: a kernel thread that each virtual machine has.
    load.names[pid] = {kHostileJson, own, "tool_tests", "kvm-nx-lpage-re"};
  };
  auto finish = [&] {
    for (auto& [process, whose] : running) {
      auto status = process->wait();
      EXPECT_TRUE(status == 0 || status == 77) << process->err();
      if (status == 0) load.made.insert(whose.begin(), whose.end());
    }
    running.clear();
  };
  auto strange = directory.path() + "/here";
  std::filesystem::create_directory(strange);
  std::ofstream(strange + "/decoy", std::ios::binary) << CraftedElf{
      .symbols = {{"evil_decoy", 0x1000, 0xffffff},
                  {"evil_decoy", 0x401000, 0xffffff}}}.bytes();
  std::filesystem::permissions(strange + "/decoy", std::filesystem::perms::all);
  begin({workload_path("unruly"), "--dir", strange}, {});
  begin({workload_path("hostile"), "--dir", directory.path(), "--count", "3"}, {});
  for (auto& [command, whose] : at_once) begin(command, whose);
  finish();
  for (auto& [command, whose] : in_turns) {
    begin(command, whose);
    finish();
  }
  for (auto& w : watches) check(*w, load);
}

// ---- files with false contents ----

/// A program in the test's file that uses CPU time until this object is destroyed.
struct Burning {
  std::string name;
  std::unique_ptr<Process> process;
};

struct Sampled {
  std::map<std::string, std::set<std::string>> leaves;  ///< of each such program
  std::string out, err;
  double cpu_seconds = 0;
};

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

/// profile's output for them, within bounded memory.
Sampled sample(const std::vector<Burning>& burning) {
  std::string pids;
  for (auto& b : burning) pids += (pids.empty() ? "" : ",") + std::to_string(b.process->pid());
  auto duration = std::to_string(std::min(2.0 * std::sqrt(slowness()), 6.0));
  rusage before{}, after{};
  ::getrusage(RUSAGE_CHILDREN, &before);
  auto result = run(
      {tool_path("profile"), "--json", "-U", "-F", "199", "-p", pids, "--duration", duration}, [] {
        rlimit limit{4ULL << 30, 4ULL << 30};
        ::setrlimit(RLIMIT_AS, &limit);
      });
  ::getrusage(RUSAGE_CHILDREN, &after);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(safe_for_terminals(result.out));
  EXPECT_TRUE(without_kernel_addresses(result.out));
  Sampled sampled{{}, result.out, result.err, 0};
  sampled.cpu_seconds = seconds(after.ru_utime) + seconds(after.ru_stime) -
                        seconds(before.ru_utime) - seconds(before.ru_stime);
  auto report = parse_report(result.out, result.err);
  for (auto& line : report.body)
    for (auto& b : burning)
      if (line["pid"].u64() == static_cast<std::uint64_t>(b.process->pid())) {
        auto frames = line["user_stack"].strings();
        if (!frames.empty()) sampled.leaves[b.name].insert(frames[0]);
      }
  return sampled;
}

void expect_leaf(const Sampled& sampled, const std::string& name, const std::string& leaf) {
  auto found = sampled.leaves.find(name);
  if (found == sampled.leaves.end()) {
    ADD_FAILURE() << name << " was never sampled: " << sampled.out;
    return;
  }
  EXPECT_EQ(found->second, std::set<std::string>{leaf}) << name;
}

std::vector<CraftedElf::Symbol> many_symbols(bool nested) {
  std::vector<CraftedElf::Symbol> all(1'000'000);
  for (std::size_t i = 0; i < all.size(); i++) {
    all[i].name = "s" + std::to_string(i);
    if (nested) all[i].address = CraftedElf::kCode - i % 0x1000, all[i].size = ~std::uint64_t{0};
  }
  return all;
}

/// As .gnu_debuglink has it: a name, padding, a checksum that no file matches.
CraftedElf::Section debuglink(std::string name) {
  name.resize((name.size() + 4) / 4 * 4);
  return {".gnu_debuglink", SHT_PROGBITS, name + "\xde\xad\xbe\xef"};
}

TOOL_TEST(Hostile, CraftedFiles) {
  require_tool("profile");
  TemporaryDirectory directory;
  auto strange = directory.path() + "/\x1b[2J\n\xff (deleted)";
  std::filesystem::create_directory(strange);
  auto start = [&](const std::string& name, const CraftedElf& elf) {
    auto path = strange + "/" + name;
    std::ofstream(path, std::ios::binary) << elf.bytes();
    ::chmod(path.c_str(), 0755);
    return Burning{name, std::make_unique<Process>(Spawn{.argv = {path}})};
  };
  const std::string bad = "a\x1b[2J\n\xc2\x9b;\xff", shown = "a\x1b[2J\n\xc2\x9b;\xef\xbf\xbd";
  ::mkfifo((strange + "/pipe.debug").c_str(), 0600);
  std::filesystem::create_symlink("/dev/zero", strange + "/zero.debug");
  std::ofstream(strange + "/sparse.debug", std::ios::binary)
      << CraftedElf{.symbols = {{"evil_decoy"}}}.bytes();
  std::filesystem::resize_file(strange + "/sparse.debug", (1 << 30) - 1);

  double harmless;
  {
    std::vector<Burning> burning;
    for (int i = 0; i < 12; i++)
      burning.push_back(start("plain" + std::to_string(i), {.symbols = {{"plain"}}}));
    auto sampled = sample(burning);
    for (auto& b : burning) expect_leaf(sampled, b.name, "plain");
    harmless = sampled.cpu_seconds;
  }
  std::vector<Burning> burning;
  burning.push_back(start("escape", {.symbols = {{bad}}}));
  burning.push_back(start("huge", {.symbols = {{std::string(1 << 20, 'x')}}}));
  // A mangled function of nested pairs: each argument is twice as long as the one before.
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string doubling = "_Z1fSt4pairIiiE";
  for (std::size_t i = 0; i < digits.size() - 1; i++)
    doubling += std::string("S_IS") + digits[i] + "_S" + digits[i] + "_E";
  burning.push_back(start("doubling", {.symbols = {{doubling}}}));
  burning.push_back(start("size", {.symbols = {{"size", CraftedElf::kCode, ~std::uint64_t{0}}}}));
  burning.push_back(start("many", {.symbols = many_symbols(false)}));
  burning.push_back(start("nested", {.symbols = many_symbols(true)}));
  burning.push_back(start("far-name", {.symbols = {{"", CraftedElf::kCode, 64, 0x7fffffff}}}));
  burning.push_back(start("endless-name", {.symbols = {{"endless"}}, .terminator = "x"}));
  burning.push_back(start("large-table", {.symbols = {{"large"}}, .symbols_claimed = 1ULL << 40}));
  burning.push_back(start("no-headers", {.symbols = {{"beyond"}}, .sections_at = 1ULL << 40}));
  for (auto* kind : {"pipe", "zero", "sparse"})
    burning.push_back(start(kind, {.sections = {debuglink(std::string(kind) + ".debug")}}));
  auto sampled = sample(burning);
  expect_leaf(sampled, "escape", shown);
  expect_leaf(sampled, "size", "size");
  for (auto* unknown : {"far-name", "large-table", "no-headers", "pipe", "zero", "sparse"})
    expect_leaf(sampled, unknown, "[unknown]");
  for (auto* some : {"huge", "doubling", "many", "nested", "endless-name"}) {
    ASSERT_EQ(sampled.leaves[some].size(), 1u) << some;
    EXPECT_LE(sampled.leaves[some].begin()->size(), 65536u) << some;
  }
  std::printf("CPU time: %.2f s with harmless files, %.2f s with these\n", harmless,
              sampled.cpu_seconds);
  EXPECT_LT(sampled.cpu_seconds, harmless * 20 + 5) << "hostile files hold the tracer";
}

#ifdef __x86_64__
// Two programs whose code has the same addresses, and which exec each other continuously. Those
// that exit before they are read have no symbols, and never the other's.
TOOL_TEST(Hostile, FramesAreThoseOfTheProgramThatRan) {
  require_tool("profile");
  TemporaryDirectory directory;
  auto make = [&](const std::string& name, const std::string& other) {
    CraftedElf elf{.symbols = {{name + "_code"}}};
    elf.next_program = directory.path() + "/" + other;
    auto path = directory.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << elf.bytes();
    ::chmod(path.c_str(), 0755);
    return path;
  };
  auto one = make("one", "other");
  make("other", "one");
  std::vector<std::unique_ptr<Process>> running;
  for (int i = 0; i < 3; i++) running.push_back(std::make_unique<Process>(Spawn{.argv = {one}}));
  std::string pids;
  for (auto& p : running) pids += (pids.empty() ? "" : ",") + std::to_string(p->pid());
  auto result =
      run({tool_path("profile"), "--json", "-U", "-F", "499", "-p", pids, "--duration", "3"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::map<std::string, std::uint64_t> named, all;
  for (auto& line : parse_report(result.out, result.err).body) {
    auto comm = line["comm"].str();
    for (auto& frame : line["user_stack"].strings()) {
      all[comm] += line["count"].u64();
      if (frame == "[unknown]") continue;
      EXPECT_EQ(frame, comm + "_code") << result.out;
      named[comm] += line["count"].u64();
    }
  }
  if (all["one"] + all["other"] == 0) throw Skip("this machine is too slow to be sampled there");
  EXPECT_GT(named["one"] + named["other"], 0u) << result.out;
}
#endif

// ---- the kernel's side ----

/// Root without the capability to see kernel addresses.
void without_syslog() {
  if (::prctl(PR_CAPBSET_DROP, CAP_SYSLOG, 0, 0, 0)) ::_exit(126);
}

bool shows_addresses(void (*in_child)()) {
  auto found =
      run({"grep", "-qm1", "^[0-9a-f]*[1-9a-f][0-9a-f]* [tT]", "/proc/kallsyms"}, in_child);
  return found.status == 0;
}

TOOL_TEST(Hostile, KernelAddressesAreForWhomTheKernelShowsThem) {
  if (shows_addresses(without_syslog))
    throw Skip("/proc/kallsyms shows addresses to everybody here");
  struct Run {
    std::string tool;
    Strings options;
    bool tells;  ///< would show some; brkstack has user stacks only
  };
  std::vector<Run> runs;
  for (auto& tool : tool_names()) {
    if (expected_missing(tool)) continue;
    require_tool(tool);
    runs.push_back(
        {tool, whole(tool, words(has_option(tool, "--verbose") ? "--verbose --json" : "--json")),
         tool != "memleak" && tool != "brkstack" && has_option(tool, "--folded")});
  }
  if (!expected_missing("memleak")) {
    for (auto* options : {"-a -o 0", "-a -o 0 --json", "-t", "-t --json", "-t --csv"})
      runs.push_back({"memleak", words(options), true});
  }
  std::vector<std::unique_ptr<Process>> running;
  auto begin = [&](const Run& r) {
    Strings argv{tool_path(r.tool), "--duration", "0.5"};
    argv.insert(argv.end(), r.options.begin(), r.options.end());
    return std::make_unique<Process>(Spawn{.argv = argv, .in_child = without_syslog});
  };
  for (std::size_t i = 0; i < runs.size(); i++) {
    while (i % kAtOnce == 0 && running.size() < std::min(i + kAtOnce, runs.size()))
      running.push_back(begin(runs[running.size()]));
    SCOPED_TRACE(runs[i].tool + " " + ::testing::PrintToString(runs[i].options));
    EXPECT_EQ(running[i]->wait(), 0) << running[i]->err();
    EXPECT_TRUE(without_kernel_addresses(running[i]->out()));
    EXPECT_TRUE(without_kernel_addresses(running[i]->err()));
    if (runs[i].tells) {
      EXPECT_TRUE(contains(running[i]->err(), "note: ") &&
                  (contains(running[i]->err(), "CAP_SYSLOG") ||
                   contains(running[i]->err(), "kptr_restrict")))
          << running[i]->err();
    }
  }
}

/// Those that run here: one of each kind of report, or all (CORETAP_ALL_TOOLS=1).
Strings of_each_kind() {
  std::set<std::string> tools;
  if (with_all_tools()) {
    for (auto& tool : tool_names())
      if (!expected_missing(tool)) tools.insert(tool);
  } else {
    for (auto kind : kReportKinds) tools.insert(representative(kind).tool);
  }
  for (auto& tool : tools) require_tool(tool);
  return {tools.begin(), tools.end()};
}

/// Names of probes and pinned objects in the kernel.
std::set<std::string> named_in_the_kernel() {
  std::set<std::string> all;
  for (std::string tracing : {"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"})
    for (auto* events : {"kprobe_events", "uprobe_events", "dynamic_events"})
      for (auto& line : lines(slurp(tracing + events))) all.insert(tracing + line);
  std::error_code error;
  for (auto& pinned : std::filesystem::recursive_directory_iterator("/sys/fs/bpf", error))
    all.insert(pinned.path().string());
  return all;
}

// Commands do not inherit descriptors of maps and programs.
TOOL_TEST(Hostile, CommandsInheritNothing) {
  for (auto& tool : of_each_kind()) {
    auto said = run({tool_path(tool), "--json", "--", "sh", "-c", "ls -l /proc/self/fd >&2"}).err;
    expect_contains(said, {" 2 -> "});
    EXPECT_FALSE(contains(said, "anon_inode") || contains(said, "bpf")) << tool << ": " << said;
  }
}

TOOL_TEST(Hostile, NothingIsLeftOfKilledTools) {
  auto before = named_in_the_kernel();
  std::vector<std::unique_ptr<Tracer>> tracers;
  std::vector<BpfIds> held;
  auto kill_all = [&] {
    for (auto& tracer : tracers) {
      ASSERT_TRUE(tracer->attached()) << tracer->process().err();
      held.push_back(bpf_ids(tracer->process().pid()));
    }
    for (auto& tracer : tracers) tracer->process().signal(SIGKILL);
    for (auto& tracer : tracers) tracer->process().wait();
    tracers.clear();
  };
  for (auto& tool : of_each_kind()) {
    tracers.push_back(
        std::make_unique<Tracer>(tool, whole(tool, {"--json"}), Tracer::How{.attached = false}));
    if (tracers.size() == kAtOnce) kill_all();
  }
  kill_all();
  for (auto& ids : held) EXPECT_EQ(bpf_left(ids), Strings{});
  auto after = named_in_the_kernel();
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace coretap::tooltest
