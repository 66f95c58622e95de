// Real servers of databases, on a socket in a directory of their own, as an unprivileged user.
#pragma once
#include <grp.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "../harness.hpp"

namespace coretap::tooltest {

/// The first of these programs that is there.
inline std::string first_program(const Strings& paths, const std::string& what) {
  for (auto& path : paths)
    if (::access(path.c_str(), X_OK) == 0) return path;
  throw Skip(what + " is not installed");
}

/// In a container a server has a mount and a PID namespace, and a root directory of its own, in
/// which its program is a copy that has no name outside.
enum class Where { here, in_a_container };

/// In namespaces of its own: $1 is a directory of the server, $2 its program, the rest its options.
inline constexpr char kContainer[] = R"(
set -e
own=$1 program=$2 root=$1/root
shift 2
mount --make-rprivate /
mkdir $root
mount -t tmpfs none $root
for name in usr bin lib lib64 etc dev; do
  if [ -L /$name ]; then cp -P /$name $root/; continue; fi
  [ -d /$name ] || continue
  mkdir $root/$name
  mount --rbind /$name $root/$name
done
mkdir -p $root/proc $root/opt $root/tmp $root$own
chmod 1777 $root/tmp
mount -t proc none $root/proc
mount --bind $own $root$own
cp $program $root/opt/
chroot --userspec=65534:65534 --groups= $root /opt/${program##*/} "$@"
exit $?
)";

class DatabaseServer {
 public:
  virtual ~DatabaseServer() = default;
  /// As the namespace of this test has it.
  std::string id() const { return std::to_string(where_ == Where::here ? server_->pid() : inner_); }
  std::string log() const { return slurp(directory_.path() + "/log"); }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

 protected:
  static constexpr unsigned kNobody = 65534;

  explicit DatabaseServer(Where where) : where_(where) {
    if (::geteuid()) throw Skip("needs root, to start a server as another user");
    if (::chown(directory_.path().c_str(), kNobody, kNobody)) throw std::runtime_error("chown");
  }
  static void unprivileged() {
    if (::setgroups(0, nullptr) || ::setgid(kNobody) || ::setuid(kNobody) || ::chdir("/"))
      ::_exit(126);
  }
  void start(Strings argv) {
    const bool here = where_ == Where::here;
    if (!here) {
      Strings outer{first_program({"/usr/bin/unshare"}, "unshare"),
                    "--mount",
                    "--pid",
                    "--fork",
                    "--kill-child",
                    "sh",
                    "-c",
                    kContainer,
                    "container",
                    directory_.path()};
      argv.insert(argv.begin(), outer.begin(), outer.end());
    }
    server_ = std::make_unique<Process>(
        Spawn{.argv = argv,
              .stdout_path = directory_.path() + "/out",
              .in_child = here ? std::function<void()>(unprivileged) : nullptr,
              .death_signal = SIGKILL});
  }
  /// When it answers: the shell is the child of unshare(1), and the server that of the shell.
  void started() {
    if (where_ == Where::here) return;
    inner_ = first_child(first_child(server_->pid()));
  }
  static pid_t first_child(pid_t of) {
    auto process = "/proc/" + std::to_string(of);
    std::istringstream children(slurp(process + "/task/" + std::to_string(of) + "/children"));
    pid_t child = 0;
    if (!(children >> child)) throw Skip("this kernel does not list children of a process");
    return child;
  }
  void signal(int number) const {
    if (inner_)
      ::kill(inner_, number);
    else
      server_->signal(number);
  }

  Where where_;
  pid_t inner_ = 0;  ///< the server in a container
  TemporaryDirectory directory_;
  std::unique_ptr<Process> server_;
};

class Postgres : public DatabaseServer {
 public:
  explicit Postgres(Where where = Where::here) : DatabaseServer(where) {
    auto server = first_program(installed("postgres"), "PostgreSQL's server");
    bin_ = server.substr(0, server.rfind('/'));
    auto made = run({bin_ + "/initdb", "-D", path("data"), "-A", "trust", "-N", "-U", "postgres",
                     "--no-instructions", "--locale=C"},
                    unprivileged);
    if (made.status) throw std::runtime_error("initdb: " + made.err);
    start({server, "-D", path("data"), "-k", directory_.path(), "-c", "listen_addresses=", "-c",
           "fsync=off", "-c", "autovacuum=off", "-c", "log_min_duration_statement=0", "-c",
           "logging_collector=off"});
    if (!until([&] { return sql("select 1").status == 0; }))
      throw std::runtime_error("postgres does not answer: " + server_->err());
    started();
  }
  ~Postgres() override {
    signal(SIGINT);
    until([&] { return server_->ended(); });  // it removes its shared memory
  }

  Result sql(const std::string& text) const {
    return run({bin_ + "/psql", "-X", "-h", directory_.path(), "-U", "postgres", "-q", "-c", text});
  }
  /// By the protocol's prepared statements.
  Result prepared(const std::string& text, int times) const {
    auto script = path("script");
    std::ofstream(script) << text << ";\n";
    return run({first_program({bin_ + "/pgbench"}, "pgbench"), "-n", "-M", "prepared", "-t",
                std::to_string(times), "-f", script, "-h", directory_.path(), "-U", "postgres",
                "postgres"});
  }
  std::string said() const { return server_->err(); }

 private:
  static Strings installed(const std::string& program) {
    Strings all;
    std::error_code error;
    for (std::filesystem::directory_iterator i("/usr/lib/postgresql", error), end;
         !error && i != end; i.increment(error))
      all.push_back(i->path().string() + "/bin/" + program);
    all.push_back("/usr/bin/" + program);
    return all;
  }
  std::string bin_;
};

class Mariadb : public DatabaseServer {
 public:
  explicit Mariadb(Where where = Where::here) : DatabaseServer(where) {
    auto server =
        first_program({"/usr/sbin/mariadbd", "/usr/libexec/mariadbd"}, "MariaDB's server");
    client_ = first_program({"/usr/bin/mariadb"}, "MariaDB's client");
    // Without tables of its own: it needs no installation.
    start({server, "--no-defaults", "--datadir=" + directory_.path(), "--socket=" + path("socket"),
           "--pid-file=" + path("pid"), "--skip-networking", "--skip-grant-tables", "--skip-innodb",
           "--default-storage-engine=memory", "--slow-query-log",
           "--slow-query-log-file=" + path("slow"), "--long-query-time=0"});
    if (!until([&] { return sql("select 1").status == 0; }))
      throw std::runtime_error("mariadbd does not answer: " + server_->err());
    started();
  }
  ~Mariadb() override { signal(SIGKILL); }

  Result sql(const std::string& text) const {
    return run({client_, "--no-defaults", "-u", "root", "-S", path("socket"), "-e", text});
  }
  /// By the protocol's prepared statements.
  Result prepared(const std::string& text, int times) const {
    static constexpr char kScript[] = R"(
import ctypes, sys
lib = ctypes.CDLL("libmariadb.so.3")
for name in "mysql_init", "mysql_real_connect", "mysql_stmt_init":
    getattr(lib, name).restype = ctypes.c_void_p
connection = ctypes.c_void_p(lib.mysql_init(None))
if not lib.mysql_real_connect(connection, None, b"root", None, None, 0, sys.argv[1].encode(), ctypes.c_ulong(0)):
    sys.exit("no connection")
statement = ctypes.c_void_p(lib.mysql_stmt_init(connection))
text = sys.argv[2].encode()
if lib.mysql_stmt_prepare(statement, text, ctypes.c_ulong(len(text))):
    sys.exit("not prepared")
for _ in range(int(sys.argv[3])):
    if lib.mysql_stmt_execute(statement) or lib.mysql_stmt_store_result(statement):
        sys.exit("not executed")
    lib.mysql_stmt_free_result(statement)
)";
    return run({"python3", "-c", kScript, path("socket"), text, std::to_string(times)});
  }
  std::string slow_log() const { return slurp(path("slow")); }

 private:
  std::string client_;
};

}  // namespace coretap::tooltest
