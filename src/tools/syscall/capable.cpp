// capable: capability checks.
#include "syscall/capable.h"

#include <fmt/format.h>

#include "capable.skel.h"
#include "coretap/config.hpp"
#include "coretap/flags.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Event = capable_event;
using Rodata = rodata_of<capable_bpf>;

namespace {

/// As in similar tools: 0 or 1.
Value digit(const Event& e, bool is) {
  return value_if(e.options & CAPABLE_KNOWN, static_cast<unsigned>(is));
}
Value audit(const Event& e) { return digit(e, !(e.options & CAPABLE_NOAUDIT)); }
Value in_setid(const Event& e) { return digit(e, e.options & CAPABLE_INSETID); }
std::string verdict(const Event& e) { return e.ret ? "deny" : "allow"; }
Value system_call(const Event& e) { return value_if(e.syscall, e.syscall - 1); }

Option unique() {
  return choice(
             0, "unique", "OF",
             "each capability once, for each process (pid, the default) or cgroup; off: all checks",
             {{"off", CAPABLE_EACH, "all checks"},
              {"pid", CAPABLE_BY_PROCESS, "once for each process"},
              {"cgroup", CAPABLE_BY_CGROUP, "once for each cgroup"}},
             [](Config& c, std::uint64_t by) { c.set(setting(&Rodata::unique_by), by); })
      .omitted_as("pid");
}

Option capabilities() {
  auto option = comma_list(
      0, "capability", "NAME,...", "only these capabilities, by name or number",
      [](Config& c, std::string_view part) {
        auto number = capability_number(part);
        if (!number || *number >= 64) return false;
        c.add_bit(setting(&Rodata::wanted_capabilities), *number);
        return true;
      },
      "capabilities",
      fmt::format("give names such as NET_ADMIN and CAP_KILL, or numbers from 0 to {}",
                  last_capability()));
  return one_of(option, [] {
    std::vector<Completion> all;
    for (std::uint64_t n = 0; n <= last_capability(); n++)
      all.push_back({capability_name(n), std::to_string(n)});
    return all;
  });
}

Option user() {
  auto option = shared::uid();
  option.by_letter = [](std::string_view text) -> Result<void> {
    if (text != "off" && text != "pid" && text != "cgroup") return {};
    return usage(fmt::format("-u {}: what is unique in libbpf-tools, a user here", text),
                 fmt::format("use --unique {0}, or --uid {0}", text));
  };
  return option;
}

}  // namespace

TOOL(capable) {
  return {
      .name = "capable",
      .summary = "checks of capabilities: which one, by whom, granted or denied",
      .description =
          "One line each time the kernel checks whether a task has a capability (capabilities(7)): "
          "CAP and NAME are the capability, VERDICT is allow or deny. AUDIT is 1 if the kernel "
          "treats a denial as a security event, and 0 if it only probes, such as for the memory "
          "that processes may reserve; these checks are left out without --non-audit. --extra adds "
          "the system call of the check, and the user namespace that the capability is for.\n\n"
          "A security module (SELinux, AppArmor) may still refuse what is allowed here.",
      .overhead =
          "one hook per check, of which some programs cause thousands a second; checks that "
          "--unique leaves out cost little, stacks cost a microsecond or more each",
      .examples = {{"capable", "all audited checks"},
                   {"capable --denied", "only those that failed"},
                   {"capable --unique pid -x", "each process' capabilities once"},
                   {"capable --capability SYS_ADMIN -K -U -p 181",
                    "with the code that causes the check"},
                   {"capable -- ping -c 1 127.0.0.1", "what a command needs"}},
      .questions = {{"Which capabilities does a program need?", "capable --unique pid -p 1234"},
                    {"Why is an operation not permitted?", "capable --denied -x"}},
      .differs = {{Difference::both,
                   "--unique is per process or cgroup, and shows a check again if it has the other "
                   "verdict. The columns VERDICT and, with --extra, USERNS and SYSCALL are new to "
                   "users of bcc."},
                  {Difference::libbpf_tools,
                   "Checks that are not audited are left out without -v, as in bcc. -u is a user, "
                   "as in other tools; --unique has no short form."}},
      .object = skeleton<capable_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{flag('v', "non-audit", "also checks that are not audited",
                 setting(&Rodata::not_audited))
                .also("verbose"),
            flag(0, "denied", "only checks that failed", setting(&Rodata::denied_only)),
            capabilities(), unique(),
            flag('x', "extra", "columns with thread, user namespace and system call")
                .also("extra-fields"),
            shared::pid(), shared::tid(), user(), shared::comm(), shared::cgroup()},
           belonging_to("unique", {shared::max_keys()}),
           {shared::kernel_stack(), flag('U', "user-stack", "print the user stack of each event")},
           belonging_to("kernel-stack|user-stack", {shared::stack_depth()}),
           belonging_to("user-stack",
                        {shared::stack_storage(), shared::unwind(), shared::unwind_memory()})}),
      .hooks = {{"checks",
                 {{{progs::on_checked}},
                  {{progs::on_asked, progs::on_answered}},
                  {.programs = {progs::on_check},
                   .caveat = "whether a check is audited is not known: all are shown"}},
                 {},
                 {},
                 {},
                 "traceloop shows the calls that fail with EPERM"}},
      .maps = {{maps::seen, MapSize::objects, "unique"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid.with(""), id::pid, id::tid.with("extra"), id::comm),
               field<&Event::capability>("capability_number", "CAP", as::wide(as::small, -4),
                                         "the capability"),
               derived<Event, [](const Event& e) { return capability_name(e.capability); }>(
                   "capability", "NAME", as::wide(as::text, -22), "its name")
                   .bounded(),
               derived<Event, audit>("audit", "AUDIT", as::wide(as::small, -5),
                                     "1: the check is audited, 0: it is not; null: not known"),
               derived<Event, in_setid>("insetid", "INSETID", as::wide(as::small, -7),
                                        "1: in setuid() or the like, 0: not; null: not known")
                   .with("extra"),
               derived<Event, verdict>("verdict", "VERDICT", as::wide(as::text, -7),
                                       "allow or deny")
                   .bounded(),
               field<&Event::userns>("userns", "USERNS", as::number,
                                     "user namespace that it is for: the inode of "
                                     "/proc/PID/ns/user")
                   .with("extra"),
               derived<Event, system_call>("syscall", "SYSCALL", as::syscall,
                                           "system call that the task is in")
                   .with("extra"),
               who<&Event::who>(id::cgroup)},
              "kernel-stack")
              .with_callers<&Event::user_stack, &Event::who>("user-stack")
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing checks of capabilities",
  };
}
