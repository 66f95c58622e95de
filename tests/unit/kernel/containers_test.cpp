// Names of cgroups, with files as container runtimes and a Kubernetes node store them.
#include "kernel/containers.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

std::string found(const Result<std::string>& result) {
  return result ? *result : result.error().what;
}

std::string id(char digit) { return std::string(64, digit); }

TEST(CgroupPath, Systemd) {
  expect_each(
      [](const std::string& path) {
        auto names = parse_cgroup_path(path);
        EXPECT_EQ(names.path, path);
        EXPECT_EQ(names.container_id, "");
        return names.unit;
      },
      {"/system.slice/nginx.service => nginx.service", "/ => ", "/system.slice => ",
       "/user.slice/user-0.slice/session-3.scope => session-3.scope",
       "/user.slice/user-1.slice/user@1.service/app.slice/a.service => a.service"});
}

TEST(CgroupPath, Runtimes) {
  for (auto& path : {"/system.slice/docker-" + id('a') + ".scope", "/docker/" + id('a'),
                     "/machine.slice/libpod-" + id('a') + ".scope",
                     "/machine.slice/libpod-" + id('a') + ".scope/container/init.service",
                     "/user.slice/libpod-" + id('a') + ".scope"})
    EXPECT_EQ(parse_cgroup_path(path).container_id, id('a')) << path;
  EXPECT_EQ(parse_cgroup_path("/system.slice/docker-" + id('a') + ".scope").unit, "")
      << "the runtime's scope is no unit of the user";
  EXPECT_EQ(parse_cgroup_path("/docker/" + id('g')).container_id, "");
  EXPECT_EQ(parse_cgroup_path("/docker/" + id('a') + "a").container_id, "");
}

TEST(CgroupPath, Kubernetes) {
  for (auto& path : {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123abcd_0123_"
                     "0123_0123_0123456789ab.slice/cri-containerd-" +
                         id('b') + ".scope",
                     "/kubepods/besteffort/pod0123abcd-0123-0123-0123-0123456789ab/" + id('b')}) {
    EXPECT_EQ(parse_cgroup_path(path).pod_uid, "0123abcd-0123-0123-0123-0123456789ab");
    EXPECT_EQ(parse_cgroup_path(path).container_id, id('b'));
  }
  EXPECT_EQ(parse_cgroup_path("/kubepods/podcast/x").pod_uid, "");
}

class ContainerNames : public testing::Test {
 protected:
  void SetUp() override {
    place_ = scratch_.path();
    files_ = {.hierarchy = place_ + "/cgroup",
              .docker = place_ + "/docker",
              .podman = place_ + "/podman/containers.json",
              .kubernetes = place_ + "/log"};
    fs::create_directories(place_ + "/log");
    fs::create_directories(place_ + "/podman");
  }

  std::uint64_t cgroup(const std::string& path) {
    auto directory = files_.hierarchy + path;
    fs::create_directories(directory);
    struct stat st {};
    EXPECT_EQ(::stat(directory.c_str(), &st), 0);
    return st.st_ino;
  }
  void docker(const std::string& of, const std::string& text) {
    scratch_.write("docker/" + of + "/config.v2.json", text);
  }

  ScratchDirectory scratch_;
  std::string place_;
  ContainerFiles files_;
};

TEST_F(ContainerNames, Docker) {
  auto cgroup_of = cgroup("/system.slice/docker-" + id('a') + ".scope");
  auto broken = cgroup("/system.slice/docker-" + id('b') + ".scope");
  docker(id('a'), R"({"ID":"x","Name":"/web","State":{"Running":true}})");
  docker(id('b'), R"({"Name":["/web")");
  Containers here(files_);
  EXPECT_EQ(here.of(cgroup_of).container, "web");
  EXPECT_EQ(here.of(cgroup_of).container_id, id('a'));
  EXPECT_EQ(here.of(broken).container, "");
  EXPECT_EQ(here.of(broken).container_id, id('b'));
  EXPECT_EQ(here.of(1).path, "");
}

TEST_F(ContainerNames, Podman) {
  auto cgroup_of = cgroup("/machine.slice/libpod-" + id('c') + ".scope/container");
  std::ofstream(files_.podman) << R"([{"id":")" << id('d') << R"(","names":["other"]},{"id":")"
                               << id('c') << R"(","names":["db","second"]}])";
  Containers here(files_);
  EXPECT_EQ(here.of(cgroup_of).container, "db");
}

TEST_F(ContainerNames, Kubernetes) {
  std::string pod = "/kubepods/burstable/pod01234567-0123-0123-0123-0123456789ab/";
  auto cgroup_of = cgroup(pod + id('e'));
  cgroup(pod + id('f'));  // a second container of the same pod
  for (auto& [name, digit] : {std::pair{"web-7d4_shop_nginx-", 'e'}, {"web-7d4_shop_proxy-", 'f'}})
    fs::create_symlink("/nowhere", files_.kubernetes + "/" + name + id(digit) + ".log");
  std::ofstream(files_.kubernetes + "/garbage.log");
  Containers here(files_);
  EXPECT_EQ(here.of(cgroup_of).pod, "web-7d4");
  EXPECT_EQ(here.of(cgroup_of).container, "nginx");
  EXPECT_EQ(found(here.find_pod("web-7d4")) + "/", files_.hierarchy + pod)
      << "both containers are in it";
  EXPECT_TRUE(here.find_pod("01234567-0123-0123-0123-0123456789ab"));
  EXPECT_FALSE(here.find_pod("web"));
}

TEST_F(ContainerNames, Filters) {
  auto first = "/system.slice/docker-" + id('a') + ".scope";
  cgroup(first + "/below");
  cgroup("/system.slice/nginx.service");
  cgroup("/user.slice/user-1.slice/app.service");
  cgroup("/user.slice/user-2.slice/app.service");
  docker(id('a'), R"({"Name":"/web"})");
  Containers here(files_);
  for (auto wanted : {"web", "aaaa", "aaaaaaaaaaaa"})
    EXPECT_EQ(found(here.find_container(wanted)), files_.hierarchy + first) << wanted;
  EXPECT_FALSE(here.find_container("aaa")) << "an id has four digits at least";
  EXPECT_FALSE(here.find_container("we"));
  EXPECT_EQ(found(here.find_unit("nginx")), files_.hierarchy + "/system.slice/nginx.service");
  EXPECT_EQ(found(here.find_unit("nginx.service")),
            files_.hierarchy + "/system.slice/nginx.service");
  auto two = here.find_unit("app");
  ASSERT_FALSE(two);
  EXPECT_TRUE(says(two.error().what, "there are 2 of them"));
}

// A later one is found, but not by a lookup for each event.
TEST_F(ContainerNames, ComesLater) {
  auto early = cgroup("/system.slice/a.service");
  Containers here(files_);
  EXPECT_EQ(here.of(early).unit, "a.service");
  auto late = cgroup("/system.slice/b.service");
  EXPECT_EQ(here.of(late).unit, "");
  EXPECT_EQ(here.all().size(), 4u) << "the root, a slice and two services";
  EXPECT_EQ(here.of(late).unit, "b.service");
}

}  // namespace
}  // namespace coretap
