// scsilatency: latency of SCSI commands, as histograms by command.
#include "block/scsilatency.h"

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "coretap/tracepoint_format.hpp"
#include "scsilatency.skel.h"

using namespace coretap;
using Opt = rodata_of<scsilatency_bpf>;
using Key = scsilatency_key;

namespace {

// SCSI commands for disks, and those for all devices.
constexpr NumberedWord<std::uint32_t> kCommands[] = {
    {0x00, "TEST_UNIT_READY"},
    {0x03, "REQUEST_SENSE"},
    {0x04, "FORMAT_UNIT"},
    {0x08, "READ_6"},
    {0x0a, "WRITE_6"},
    {0x12, "INQUIRY"},
    {0x15, "MODE_SELECT"},
    {0x1a, "MODE_SENSE"},
    {0x1b, "START_STOP"},
    {0x1e, "ALLOW_MEDIUM_REMOVAL"},
    {0x25, "READ_CAPACITY"},
    {0x28, "READ_10"},
    {0x2a, "WRITE_10"},
    {0x2e, "WRITE_VERIFY"},
    {0x2f, "VERIFY"},
    {0x35, "SYNCHRONIZE_CACHE"},
    {0x37, "READ_DEFECT_DATA"},
    {0x3b, "WRITE_BUFFER"},
    {0x3c, "READ_BUFFER"},
    {0x41, "WRITE_SAME"},
    {0x42, "UNMAP"},
    {0x4d, "LOG_SENSE"},
    {0x55, "MODE_SELECT_10"},
    {0x5a, "MODE_SENSE_10"},
    {0x5e, "PERSISTENT_RESERVE_IN"},
    {0x5f, "PERSISTENT_RESERVE_OUT"},
    {0x7f, "VARIABLE_LENGTH_CMD"},
    {0x85, "ATA_16"},
    {0x88, "READ_16"},
    {0x89, "COMPARE_AND_WRITE"},
    {0x8a, "WRITE_16"},
    {0x8f, "VERIFY_16"},
    {0x91, "SYNCHRONIZE_CACHE_16"},
    {0x93, "WRITE_SAME_16"},
    {0x94, "ZBC_OUT"},
    {0x95, "ZBC_IN"},
    {0x9e, "SERVICE_ACTION_IN_16"},
    {0xa0, "REPORT_LUNS"},
    {0xa1, "ATA_12"},
    {0xa3, "MAINTENANCE_IN"},
    {0xa4, "MAINTENANCE_OUT"},
    {0xa8, "READ_12"},
    {0xaa, "WRITE_12"},
};

std::string command(const Key& k) {
  return word_of(kCommands, k.opcode, fmt::format("opcode {:#04x}", k.opcode));
}
std::string device(const Key& k) {
  auto& d = k.device;
  return fmt::format("{}:{}:{}:{}", d.host, d.channel, d.target, d.lun);
}
/// The lowest byte is the device's status, the third one the host's.
std::string status(const Key& k) {
  if (!k.result) return "success";
  if (k.result == SCSI_TIMED_OUT) return "timeout";
  return fmt::format("status {:#04x} host {:#04x}", k.result & 0xff, k.result >> 16 & 0xff);
}

Option one_device() {
  return value('d', "device", "H:C:T:L",
               "only the device with these numbers of host, channel, target and LUN",
               [](Config& c, std::string_view text) -> Result<void> {
                 auto rest = text;
                 for (auto to : {setting(&Opt::wanted_host), setting(&Opt::wanted_channel),
                                 setting(&Opt::wanted_target), setting(&Opt::wanted_lun)}) {
                   auto number = parse_unsigned(take_until(rest, ':'));
                   if (!number || *number > UINT32_MAX)
                     return usage(fmt::format("--device: '{}' is not four numbers", text),
                                  "as in lsscsi and /sys/class/scsi_device: 2:0:0:0");
                   c.set(to, *number);
                 }
                 c.set(setting(&Opt::one_device), 1);
                 return {};
               });
}

Result<void> find_members(Config& c) {
  constexpr std::string_view kStart = "scsi_dispatch_cmd_start", kDone = "scsi_dispatch_cmd_done",
                             kError = "scsi_dispatch_cmd_error";
  return look_up_members(c, "scsi", "SCSI command", "load the disk's module first",
                         "biolatency shows disks of any kind",
                         {{kStart, "host_no", setting(&Opt::at_place)},
                          {kStart, "opcode", setting(&Opt::at_opcode)},
                          {kStart, "driver_tag", setting(&Opt::at_tag), false},
                          {kStart, "cmnd", setting(&Opt::at_bytes)},
                          {kDone, "driver_tag", setting(&Opt::at_end_tag), false},
                          {kDone, "cmnd", setting(&Opt::at_end_bytes)},
                          {kDone, "result", setting(&Opt::at_end_result)},
                          {kError, "driver_tag", setting(&Opt::at_error_tag), false},
                          {kError, "cmnd", setting(&Opt::at_error_bytes)}});
}

}  // namespace

TOOL(scsilatency) {
  return {
      .name = "scsilatency",
      .summary = "latency of SCSI commands by command, as histograms",
      .description =
          "Time of each SCSI command from its dispatch to the host adapter's driver to its end, as "
          "a log2 histogram for each command (READ_10, WRITE_10, ...). A command that times out "
          "has the status timeout. If the driver does not accept a command, its time starts when "
          "it is dispatched again.\n\n"
          "Disks of SATA, SAS, USB and Fibre Channel are SCSI devices. Task filters apply to the "
          "submitter of the I/O, even if a kernel thread dispatches the command, as is usual on "
          "older kernels.",
      .overhead = "two hooks per command; counted in the kernel, no output per event",
      .examples = {{"scsilatency", "until Ctrl-C"},
                   {"scsilatency -mT -d 2:0:0:0 5", "one device in milliseconds, every 5 seconds"},
                   {"scsilatency -e --status", "failed commands, by status"}},
      .questions = {{"Which SCSI commands are slow?", "scsilatency -D 10 1"},
                    {"Do SCSI commands fail, and how?", "scsilatency -e --status 10 1"}},
      .object = skeleton<scsilatency_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('D', "devices", "one histogram per device", setting(&Opt::by_device)),
                  flag(0, "status", "one histogram per status", setting(&Opt::by_result)),
                  flag('e', "errors", "only commands that failed", setting(&Opt::errors_only)),
                  one_device(), shared::milliseconds(), shared::timestamp(), shared::pid(),
                  shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::max_keys()},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}, "task-filter"},
                {"issues to the device", {{{progs::on_issue}}}, "task-filter"},
                {"commands", {{{progs::on_start}}}},
                {"ends of commands", {{{progs::on_done}}}},
                {"timeouts", {{{progs::on_timeout}}}},
                {"commands that are not taken", {{{progs::on_error}}}}},
      .maps = {{maps::commands, MapSize::block_requests},
               {maps::requests, MapSize::block_requests},
               {maps::bios, MapSize::block_bios}},
      .report =
          histogram<Key>(
              maps::latencies, "latency",
              {derived<Key, command>("command", "command", as::text, "the command").bounded(),
               derived<Key, device>("device", "device", as::text, "host, channel, target and LUN")
                   .bounded()
                   .with("devices"),
               derived<Key, status>("status", "status", as::text,
                                    "success, timeout, or the status of the device and the host")
                   .bounded()
                   .with("status")})
              .without_owner(
                  "they are commands of a driver, which has merged and split what tasks submitted"),
      .announce = "Tracing SCSI commands",
      .look_up = find_members,
  };
}
