// Real database servers, each with a socket in a private directory, as an unprivileged user.
#pragma once
#include <grp.h>

#include "shared.hpp"

namespace coretap::tooltest {
inline namespace app {

/// In a container a server has separate mount and PID namespaces and a root directory, in which its
/// program is a copy without a name outside.
enum class Where { here, in_a_container };

/// In new namespaces: $1 is a directory of the server, $2 its program, the rest its options.
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
  /// The PID in this test's namespace.
  std::string id() const { return std::to_string(inner_ ? inner_ : server_->pid()); }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  virtual Result sql(const std::string& text) const = 0;
  /// Runs a prepared statement by the server's protocol.
  virtual Result prepared(const std::string& text, int times) const = 0;
  /// Duration of this query in the server's log; the server's clock starts slightly earlier.
  virtual double logged_seconds(const std::string& text) const = 0;

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
  /// Waits until it answers.
  void start(const Strings& argv) {
    Spawn spawn{.argv = argv, .stdout_path = path("out"), .death_signal = SIGKILL};
    if (where_ == Where::here)
      spawn.in_child = unprivileged;
    else
      spawn.argv = "/usr/bin/unshare --mount --pid --fork --kill-child sh -c" +
                   Strings{kContainer, "container", directory_.path()} + argv;
    first_program({spawn.argv[0]}, spawn.argv[0]);
    server_ = std::make_unique<Process>(spawn);
    if (!until([this] { return sql("select 1").status == 0; }))
      throw std::runtime_error(argv[0] + " does not answer: " + server_->err());
    // The shell is the child of unshare(1), and the server is the shell's child.
    if (where_ == Where::in_a_container) inner_ = first_child(first_child(server_->pid()));
  }
  static pid_t first_child(pid_t of) {
    auto id = std::to_string(of);
    auto children = words(slurp("/proc/" + id + "/task/" + id + "/children"));
    if (children.empty()) throw Skip("this kernel does not list children of a process");
    return std::stoi(children[0]);
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
    auto made = run(Strings{bin_ + "/initdb", "-D", path("data")} +
                        "-A trust -N -U postgres --no-instructions --locale=C",
                    unprivileged);
    if (made.status) throw std::runtime_error("initdb: " + made.err);
    start(Strings{server, "-D", path("data"), "-k", directory_.path()} +
          "-c listen_addresses= -c fsync=off -c autovacuum=off -c log_min_duration_statement=0 "
          "-c logging_collector=off");
  }
  ~Postgres() override {
    signal(SIGINT);
    until([&] { return server_->ended(); });  // until it has removed its shared memory
  }

  Result sql(const std::string& text) const override {
    return run({bin_ + "/psql", "-X", "-h", directory_.path(), "-U", "postgres", "-q", "-c", text});
  }
  Result prepared(const std::string& text, int times) const override {
    auto script = path("script");
    std::ofstream(script) << text << ";\n";
    return run({first_program({bin_ + "/pgbench"}, "pgbench"), "-n", "-M", "prepared", "-t",
                std::to_string(times), "-f", script, "-h", directory_.path(), "-U", "postgres",
                "postgres"});
  }
  double logged_seconds(const std::string& text) const override {
    auto log = server_->err();
    auto at = log.find("ms  statement: " + text);
    if (at == log.npos) throw std::runtime_error("not logged: " + log);
    return std::stod(log.substr(log.rfind(':', at) + 1)) / 1e3;
  }

 private:
  static Strings installed(const std::string& program) {
    Strings all{"/usr/bin/" + program};
    std::error_code none;
    for (auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", none))
      all.insert(all.begin(), version.path().string() + "/bin/" + program);
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
    // Without system tables: it needs no installation.
    start({server, "--no-defaults", "--datadir=" + directory_.path(), "--socket=" + path("socket"),
           "--pid-file=" + path("pid"), "--skip-networking", "--skip-grant-tables", "--skip-innodb",
           "--default-storage-engine=memory", "--slow-query-log",
           "--slow-query-log-file=" + path("slow"), "--long-query-time=0"});
  }
  ~Mariadb() override { signal(SIGKILL); }

  Result sql(const std::string& text) const override {
    return run({client_, "--no-defaults", "-u", "root", "-S", path("socket"), "-e", text});
  }
  Result prepared(const std::string& text, int times) const override {
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
  double logged_seconds(const std::string& text) const override {
    constexpr std::string_view kTime = "Query_time: ";
    auto log = slurp(path("slow"));
    auto at = log.find("\n" + text);
    if (at == log.npos) throw std::runtime_error("not logged: " + log);
    return std::stod(log.substr(log.rfind(kTime, at) + kTime.size()));
  }

 private:
  std::string client_;
};

}  // namespace app
}  // namespace coretap::tooltest
