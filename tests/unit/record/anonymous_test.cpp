// --anonymous: what is written instead of names.
#include "record/anonymous.hpp"

#include <cstring>
#include <random>
#include <regex>
#include <set>

#include "../all_tools.hpp"
#include "expect.hpp"
#include "lib/core/shared.h"
#include "lib/net/flow.h"

namespace coretap::record {
namespace {

const std::string kToken = "p-[0-9a-f]{8}";

bool matches(const std::string& text, const std::string& pattern) {
  return std::regex_match(text, std::regex(pattern));
}

TEST(Anonymous, ANameHasOneTokenInARecordingAndAnotherInTheNext) {
  const Anonymous one, other;
  EXPECT_TRUE(matches(one.word("zebra"), kToken));
  EXPECT_EQ(one.word("zebra"), one.word("zebra"));
  EXPECT_NE(one.word("zebra"), one.word("zebrb"));
  EXPECT_NE(one.word("zebra"), other.word("zebra"));
  std::set<std::string> tokens;
  for (int i = 0; i < 3000; i++) tokens.insert(one.word(std::to_string(i)));
  EXPECT_GE(tokens.size(), 2998U);
  for (auto* same : {"", ".", ".."}) EXPECT_EQ(one.word(same), same);
}

TEST(Anonymous, TheStructureOfPathsStays) {
  const Anonymous a;
  const auto zebra = a.word("zebra"), file = a.word("x.conf");
  EXPECT_EQ(a.text("/home/zebra/x.conf"), "/" + a.word("home") + "/" + zebra + "/" + file);
  EXPECT_EQ(a.text("../zebra//x.conf"), "../" + zebra + "//" + file);
  // Components as kernel programs send them, and arguments.
  EXPECT_EQ(a.text(std::string("x.conf\0zebra\0", 13)),
            file + std::string(1, '\0') + zebra + std::string(1, '\0'));
  EXPECT_EQ(a.text("--key=zebra zebra@zebra"),
            a.word("--key") + "=" + zebra + " " + zebra + "@" + zebra);
  EXPECT_EQ(a.text("z\xc3\xa9"), a.word("z\xc3\xa9"));
}

TEST(Anonymous, NamesOfSystemDirectoriesStayInPathsOfCode) {
  const Anonymous a;
  for (std::string same :
       {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux.so.2", "/usr/bin/bash", "[vdso]",
        "[ext4]", "/proc/loadavg", "/sys/kernel/slab"})
    EXPECT_EQ(a.path(same), same);
  for (std::string other :
       {"/opt/zebra/bin/x", "/usr/local/bin/zebra", "zebra", "/usr/../home/zebra", "/home/zebra",
        "/proc/1/root/home/zebra", "/dev/shm/zebra", "/sys/fs/cgroup/zebra.slice",
        "/sys/fs/cgroup/zebra.slice/cpu.pressure", "/sys/class/net/zebra/statistics/rx_bytes"}) {
    EXPECT_EQ(a.path(other).find("zebra"), std::string::npos) << other;
    EXPECT_EQ(std::ranges::count(a.path(other), '/'), std::ranges::count(other, '/')) << other;
  }
  EXPECT_EQ(a.path("/opt/zebra (deleted)"), a.path("/opt/zebra") + " (deleted)");
  EXPECT_EQ(a.path("/sys/fs/cgroup/zebra/cpu.pressure"),
            "/sys/fs/cgroup/" + a.word("zebra") + "/cpu.pressure");
  EXPECT_EQ(a.with_paths("uprobe /opt/zebra:f (/usr/bin/bash)"),
            "uprobe /" + a.word("opt") + "/" + a.word("zebra") + ":f (/usr/bin/bash)");
  EXPECT_EQ(a.target("vfs_read"), "vfs_read");
  EXPECT_EQ(a.target("c:malloc"), "c:malloc");
  EXPECT_EQ(a.target("p:/opt/zebra:f"), "p:" + a.path("/opt/zebra") + ":f");
  EXPECT_EQ(a.target("zebra:f"), a.word("zebra") + ":f");
}

TEST(Anonymous, AnswersOfTheSystem) {
  const Anonymous a;
  const auto zebra = a.word("zebra");
  EXPECT_EQ(a.answer(Ask::user, "1000", "zebra"), zebra);
  EXPECT_EQ(a.answer(Ask::disk, "8:0", "nvme0n1"), "nvme0n1");
  EXPECT_EQ(a.answer(Ask::disk, "252:0", "zebra"), zebra);
  EXPECT_EQ(a.answer(Ask::cgroup, "7", packed({"/zebra/x", "", "", "", "zebra"})),
            packed({"/" + zebra + "/" + a.word("x"), "", "", "", zebra}));
  EXPECT_EQ(a.answer(Ask::file, "/proc/loadavg", "+0.1 0.2"), "+0.1 0.2");
  EXPECT_EQ(a.answer(Ask::file, "/proc/sys/kernel/hostname", "+zebra\n"), "+" + zebra + "\n");
  EXPECT_EQ(a.answer(Ask::file, "/proc/mounts", "-"), "-");
  EXPECT_EQ(a.answer(Ask::kernel_symbol, "", "vfs_read"), "vfs_read");
  // A kind that this test does not know.
  EXPECT_EQ(a.answer(static_cast<Ask>(200), "", "zebra"), zebra);
  // Names of a listing are asked for by their tokens.
  const auto list = unpacked(a.answer(Ask::directories, "/sys/fs/cgroup", packed({"zebra"})));
  EXPECT_EQ("/sys/fs/cgroup/" + list.at(0), a.question(Ask::inode, "/sys/fs/cgroup/zebra"));
  EXPECT_EQ(a.question(Ask::file, "/sys/fs/cgroup/zebra/io.stat"),
            "/sys/fs/cgroup/" + zebra + "/io.stat");
}

TEST(Anonymous, AddressesStayAddresses) {
  const Anonymous a;
  const Layout layout{sizeof(flow),
                      {{"flow.local", offsetof(flow, local), 1, 16, Member::unsigned_number},
                       {"flow.remote", offsetof(flow, remote), 1, 16, Member::unsigned_number},
                       {"flow.lport", offsetof(flow, lport), 2, 1, Member::unsigned_number}}};
  auto hidden = [&](std::initializer_list<int> local) {
    flow f{};
    std::ranges::copy(local, f.local);
    f.lport = 443;
    auto bytes = a.fields(layout, {reinterpret_cast<const char*>(&f), sizeof f});
    memcpy(&f, bytes.data(), sizeof f);
    EXPECT_EQ(f.lport, 443);
    return std::vector<int>(f.local, f.local + 16);
  };
  auto all = [](std::initializer_list<int> first) {
    std::vector<int> bytes(first);
    bytes.resize(16);
    return bytes;
  };
  EXPECT_EQ(hidden({127, 0, 0, 1}), all({127, 0, 0, 1}));
  EXPECT_EQ(hidden({}), all({}));
  EXPECT_EQ(hidden({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})[15], 1);
  const auto four = hidden({192, 0, 2, 1});
  EXPECT_EQ(four[0], 10);
  EXPECT_EQ(std::count(four.begin() + 4, four.end(), 0), 12);
  EXPECT_EQ(four, hidden({192, 0, 2, 1}));
  EXPECT_NE(four, hidden({192, 0, 2, 2}));
  const auto mapped = hidden({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1});
  EXPECT_EQ(mapped[11], 255);
  EXPECT_EQ(mapped[12], 10);
  // The same host has the same token in both forms.
  EXPECT_TRUE(std::equal(four.begin(), four.begin() + 4, mapped.begin() + 12));
  EXPECT_EQ(hidden({0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5})[0], 0xfd);
}

// The command's name may be where the id of a cgroup is.
TEST(Anonymous, CgroupIdsStay) {
  const Anonymous a;
  const Layout layout{
      16,
      {{"comm", 0, 1, 16, Member::signed_number}, {"cgroup", 0, 8, 1, Member::unsigned_number}}};
  std::string bytes("zebra");
  bytes.resize(16);
  EXPECT_EQ(a.fields(layout, bytes, true), bytes);
  EXPECT_EQ(a.fields(layout, bytes).c_str(), a.word("zebra"));
}

/// Texts and arrays of characters in every record and key of every tool; what is unknown is
/// refused.
TEST(Anonymous, NoNameIsLeftInTheRecordsOfAnyTool) {
  const Anonymous a;
  const std::string secret = "zebraquokka";
  // Words of the kernel, which stay.
  const std::set<std::string> kOfTheKernel = {"zone"};
  int records = 0, texts = 0, commands = 0;
  std::set<std::string> refused;
  for (auto& tool : all_tools()) {
    if (tool.object.compressed.empty()) continue;
    const ObjectLayouts layouts(tool.object.bytes());
    std::vector<std::string_view> types{tool.report->record_type()};
    for (auto& other : tool.other_reports) types.push_back(other.report->record_type());
    for (auto type : types) {
      const auto layout = type.empty() ? Layout() : layouts.of_struct(type);
      if (!layout) continue;
      if (!Anonymous::knows(layout)) {
        refused.insert(std::string(tool.name));
        continue;
      }
      std::string bytes(layout.bytes, '\0');
      for (auto& m : layout.members) {
        if (m.kind == Member::text) {
          const ::text place{static_cast<__u16>(bytes.size()), static_cast<__u16>(secret.size())};
          memcpy(bytes.data() + m.at, &place, sizeof place);
          bytes += secret;
          texts++;
        } else if (m.kind == Member::signed_number && m.bytes == 1 && m.count >= secret.size() &&
                   !kOfTheKernel.contains(m.path)) {
          memcpy(bytes.data() + m.at, secret.data(), secret.size());
          commands += m.path.ends_with("comm");
        }
      }
      bytes += secret;  // behind it, where nothing points to
      const auto hidden = a.record(layout, bytes);
      records++;
      ASSERT_GE(hidden.size(), layout.bytes);
      for (auto& m : layout.members) {
        if (m.kind != Member::text) continue;
        ::text place{};
        memcpy(&place, hidden.data() + m.at, sizeof place);
        ASSERT_EQ(hidden.substr(place.at, place.bytes), a.word(secret)) << tool.name << m.path;
      }
      EXPECT_EQ(hidden.find("zebra"), hidden.npos) << tool.name << ' ' << type;
      // Of any bytes, the result is no larger than texts may be.
      std::mt19937 random(static_cast<unsigned>(records));
      for (int i = 0; i < 50; i++) {
        for (auto& byte : bytes) byte = static_cast<char>(random());
        const auto any = a.record(layout, bytes);
        EXPECT_LE(any.size(), layout.bytes + (UINT16_MAX + 1) * layout.members.size());
      }
    }
  }
  EXPECT_GE(records, 50);
  EXPECT_GE(texts, 20);
  EXPECT_GE(commands, 40);
  EXPECT_EQ(refused, std::set<std::string>{});
}

}  // namespace
}  // namespace coretap::record
