#include "kernel/kernel.hpp"

#include "expect.hpp"
#include "places.hpp"

namespace coretap {
namespace {

/// Queries of the type information of the running kernel, if it can be read.
class KernelTypes : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel.has_btf()) GTEST_SKIP() << "no readable /sys/kernel/btf/vmlinux";
  }
  Kernel kernel;
};

TEST_F(KernelTypes, Tracepoints) {
  EXPECT_GE(kernel.tracepoint_args("sched_switch"), 3);
  EXPECT_EQ(kernel.tracepoint_args("sched_process_fork"), 2);
  for (auto* unknown :
       {"", "no_such_tracepoint", "sched_switc", "btf_trace_sched_switch", "task_struct"}) {
    EXPECT_EQ(kernel.tracepoint_args(unknown), -1) << unknown;
  }
}

TEST_F(KernelTypes, Fields) {
  for (int i = 0; i < 2; i++) {  // released and queried again
    EXPECT_TRUE(kernel.has_field("task_struct", "pid"));
    kernel.release();
    kernel.release();
  }
  for (auto [type, field] : {std::pair{"task_struct", "no_such_field"},
                             {"task_struct", ""},
                             {"no_such_struct", "pid"},
                             {"", ""}})
    EXPECT_FALSE(kernel.has_field(type, field)) << type << " " << field;
  // In an unnamed struct or union of the struct.
  for (auto* field : {"mapping", "lru"}) EXPECT_TRUE(kernel.has_field("page", field)) << field;
}

TEST_F(KernelTypes, Functions) {
  EXPECT_TRUE(kernel.has_function("vfs_read"));
  EXPECT_FALSE(kernel.has_function("no_such_function"));
  EXPECT_FALSE(kernel.has_function("task_struct")) << "another kind of name";
  EXPECT_FALSE(kernel.has_function(""));
}

TEST_F(KernelTypes, Structures) {
  auto ids = kernel.structures({"task_struct", "no_such_struct", "file", "vfs_read"});
  ASSERT_EQ(ids.size(), 4u);
  auto& types = kernel.all_types();
  EXPECT_EQ(types.name(types.type(ids[0])->name_off), "task_struct");
  EXPECT_EQ(types.name(types.type(ids[2])->name_off), "file");
  EXPECT_EQ(ids[1], 0u);
  EXPECT_EQ(ids[3], 0u) << "a function";
}

TEST_F(KernelTypes, ACastIsThereOrNot) {
  auto casts = kernel.casts({"task_struct", "no_such_struct"});
  auto function = casts.function;
  EXPECT_EQ(kernel.casts({"task_struct"}).function, function);
  EXPECT_EQ(kernel.casts({"no_such_struct"}).function, 0u);
  EXPECT_TRUE(!function || casts.to == kernel.structures({"task_struct", "no_such_struct"}));
  auto there = kernel.function_type("bpf_rdonly_cast");
  // Root can load the program that determines it.
  EXPECT_EQ(function, geteuid() == 0 ? there : function == 0 ? 0 : there);
}

TEST_F(KernelTypes, Enumerators) {
  EXPECT_TRUE(kernel.has_enumerator("bpf_map_type", "BPF_MAP_TYPE_RINGBUF"));
  EXPECT_FALSE(kernel.has_enumerator("bpf_map_type", "BPF_MAP_TYPE_RINGBU"));
  EXPECT_FALSE(kernel.has_enumerator("no_such_enum", "BPF_MAP_TYPE_RINGBUF"));
  auto types = kernel.enumerators("bpf_map_type");
  ASSERT_GT(types.size(), 20u);
  EXPECT_EQ(types[0].first, "BPF_MAP_TYPE_UNSPEC");
  EXPECT_EQ(types[0].second, 0);
  EXPECT_TRUE(kernel.enumerators("task_struct").empty());
  EXPECT_TRUE(kernel.enumerators("no_such_enum").empty());
}

TEST_F(KernelTypes, UnnamedEnumsByOneOfTheirs) {
  auto beside = kernel.enumerators_beside("BPF_F_NO_PREALLOC");
  ASSERT_FALSE(beside.empty());
  const std::pair<std::string, std::int64_t> known("BPF_F_NO_PREALLOC", 1);
  EXPECT_EQ(std::ranges::count(beside, known), 1);
  EXPECT_TRUE(kernel.enumerators_beside("no_such_enumerator").empty());
  EXPECT_TRUE(kernel.enumerators_beside("BPF_MAP_TYPE_RINGBUF").empty()) << "of a named enum";
}

TEST(Kernel, HostileNames) {
  Kernel kernel;
  for (auto& name : {std::string(100000, 'a'), std::string("\0task_struct", 12),
                     std::string("%s%n"), std::string("../../etc/passwd")}) {
    EXPECT_EQ(kernel.tracepoint_args(name), -1);
    EXPECT_FALSE(kernel.has_function(name));
    EXPECT_FALSE(kernel.has_field(name, name));
    EXPECT_FALSE(kernel.has_enumerator(name, name));
  }
}

// Without capabilities the answers are reasons; with them they are empty or reasons.
TEST(Kernel, RefusalsAreKept) {
  Kernel kernel;
  auto& first = kernel.fentry_refusal();
  EXPECT_EQ(first, kernel.fentry_refusal());
  EXPECT_FALSE(kernel.kprobe_refusal("no_such_function_at_all").empty());
  EXPECT_EQ(kernel.kprobe_refusal("no_such_function_at_all"),
            kernel.kprobe_refusal("no_such_function_at_all"));
}

// The file has the current state in brackets; kernels without lockdown have no file.
TEST(Kernel, Lockdown) {
  auto state = lockdown();
  std::ifstream in("/sys/kernel/security/lockdown");
  if (!in) {
    EXPECT_EQ(state, "");
    return;
  }
  std::string text;
  std::getline(in, text);
  EXPECT_NE(text.find("[" + state + "]"), std::string::npos) << text;
  EXPECT_TRUE(state == "none" || state == "integrity" || state == "confidentiality") << state;
}

TEST(Kernel, SizesOfThisMachine) {
  EXPECT_GE(possible_cpus(), sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_GE(max_tasks(), 1024u);
  EXPECT_LE(max_tasks(), 1u << 22) << "PID_MAX_LIMIT";
  EXPECT_EQ(kernel_release() + "\n", places::file_text("/proc/sys/kernel/osrelease"));
}

/// Mount point of the first cgroup2 in mountinfo whose path needs no decoding; empty: none.
std::string cgroup2_of_mountinfo() {
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word, root, point, type;
    words >> word >> word >> word >> root >> point;
    while (words >> word && word != "-") {
    }
    words >> type;
    if (type == "cgroup2" && point.find('\\') == std::string::npos) return point;
  }
  return {};
}

struct Cgroups : testing::Test {
  Result<std::string> mount = cgroup2_mount();
};

std::uint64_t inode(const std::string& path) {
  struct stat st {};
  EXPECT_EQ(stat(path.c_str(), &st), 0) << path;
  return st.st_ino;
}

TEST_F(Cgroups, Mount) {
  if (auto expected = cgroup2_of_mountinfo(); !expected.empty()) {
    ASSERT_TRUE(mount) << mount.error().what;
    EXPECT_EQ(*mount, expected);
    EXPECT_TRUE(fs::exists(*mount + "/cgroup.procs"));
  } else if (!mount) {
    EXPECT_EQ(mount.error().status, kUnsupported);
    EXPECT_FALSE(mount.error().hint.empty());
  }
}

TEST_F(Cgroups, NumbersAreIds) {
  if (!mount) GTEST_SKIP() << "no cgroup2 here";
  std::vector<std::string> some{*mount};
  for (auto& entry : fs::recursive_directory_iterator(*mount))
    if (entry.is_directory() && some.size() < 10) some.push_back(entry.path());
  for (auto& directory : some) {
    auto id = cgroup_id(std::to_string(inode(directory)));
    ASSERT_TRUE(id) << directory;
    EXPECT_EQ(*id, inode(directory));
  }
  auto file = std::to_string(inode(*mount + "/cgroup.procs"));
  for (auto& bad : {std::string("99999999999"), file, std::string("0")}) {
    auto id = cgroup_id(bad);
    ASSERT_FALSE(id) << bad;
    EXPECT_EQ(id.error().status, kUsage) << bad;
    EXPECT_TRUE(says(id.error().what, bad));
  }
}

TEST_F(Cgroups, RootByAnySpelling) {
  if (!mount) GTEST_SKIP() << "no cgroup2 here";
  // A file of a cgroup has an inode number, too, but no task is in it.
  for (auto& file : {*mount + "/cgroup.procs", std::string("cgroup.procs")})
    EXPECT_FALSE(cgroup_id(file)) << file;
  for (auto& spelling :
       {*mount, *mount + "/", std::string("/"), std::string("."), std::string("./")}) {
    auto id = cgroup_id(spelling);
    ASSERT_TRUE(id) << spelling << ": " << id.error().what << ": " << id.error().why;
    EXPECT_EQ(*id, inode(*mount)) << spelling;
  }
}

TEST_F(Cgroups, OthersAreRefusedWithAHint) {
  for (auto* bad :
       {"no/such/cgroup", "/no/such/cgroup", "/proc/self", "-1", "0x1", "%s", "\x1b[2J"}) {
    auto id = cgroup_id(bad);
    ASSERT_FALSE(id) << bad;
    EXPECT_EQ(id.error().status, mount ? kUsage : kUnsupported) << bad;
    EXPECT_FALSE(id.error().hint.empty()) << bad;
  }
}

TEST(Tracepoints, IdsOrReasons) {
  auto id = tracepoint_id("sched", "sched_switch");
  if (id) {
    EXPECT_GT(*id, 0);
  } else {
    EXPECT_EQ(id.error().status, kUnsupported);
    EXPECT_FALSE(id.error().why.empty());
  }
  for (auto [category, name] :
       {std::pair{"sched", "no_such"}, {"no_such", "sched_switch"}, {"", ""}, {"sched", ""}}) {
    auto none = tracepoint_id(category, name);
    ASSERT_FALSE(none) << category << ":" << name;
    EXPECT_EQ(none.error().status, kUnsupported);
  }
}

}  // namespace
}  // namespace coretap
