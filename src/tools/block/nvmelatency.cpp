// nvmelatency: latency of NVMe commands, as histograms by disk and command.
#include "block/nvmelatency.h"

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/disks.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "coretap/tracepoint_format.hpp"
#include "nvmelatency.skel.h"

using namespace coretap;
using Opt = rodata_of<nvmelatency_bpf>;
using Key = nvmelatency_key;
using Line = Row<Key, hist>;

namespace {

// NVM Express: base specification, and the command sets for NVM and for zones.
constexpr NumberedWord<std::uint32_t> kCommands[] = {
    {0x00, "flush"},       {0x01, "write"},          {0x02, "read"},
    {0x04, "write_uncor"}, {0x05, "compare"},        {0x08, "write_zeroes"},
    {0x09, "dsm"},         {0x0c, "verify"},         {0x0d, "resv_register"},
    {0x0e, "resv_report"}, {0x11, "resv_acquire"},   {0x15, "resv_release"},
    {0x19, "copy"},        {0x79, "zone_mgmt_send"}, {0x7a, "zone_mgmt_recv"},
    {0x7d, "zone_append"},
};
constexpr NumberedWord<std::uint32_t> kAdminCommands[] = {
    {0x00, "delete_sq"},      {0x01, "create_sq"},      {0x02, "get_log_page"},
    {0x04, "delete_cq"},      {0x05, "create_cq"},      {0x06, "identify"},
    {0x08, "abort_cmd"},      {0x09, "set_features"},   {0x0a, "get_features"},
    {0x0c, "async_event"},    {0x0d, "ns_mgmt"},        {0x10, "activate_fw"},
    {0x11, "download_fw"},    {0x14, "dev_self_test"},  {0x15, "ns_attach"},
    {0x18, "keep_alive"},     {0x19, "directive_send"}, {0x1a, "directive_recv"},
    {0x7c, "dbbuf"},          {0x7f, "fabrics"},        {0x80, "format_nvm"},
    {0x81, "security_send"},  {0x82, "security_recv"},  {0x84, "sanitize_nvm"},
    {0x86, "get_lba_status"},
};

std::string disk(const Key& k) {
  return k.disk[0] ? text_in(k.disk) : fmt::format("nvme{}", k.controller);
}
std::string command(const Key& k) {
  auto name = k.admin ? word_of(kAdminCommands, k.opcode, "") : word_of(kCommands, k.opcode, "");
  return name.empty() ? fmt::format("{}opcode {:#04x}", k.admin ? "admin " : "", k.opcode)
                      : fmt::format("nvme_{}{}", k.admin ? "admin_" : "cmd_", name);
}
std::string status(const Key& k) { return k.status ? fmt::format("{:#x}", k.status) : "success"; }

bool wanted(const Line& l, const FieldContext& context) {
  auto number = context.config->places.disk;
  return !number || disk_name(*number) == disk(l.key);
}

}  // namespace

TOOL(nvmelatency) {
  return {
      .name = "nvmelatency",
      .summary = "latency of NVMe commands by disk and command, as histograms",
      .description =
          "Time of each NVMe command from its setup by the driver to its completion, as a log2 "
          "histogram for each disk and command (nvme_cmd_read, nvme_cmd_write, ...). With --admin, "
          "also commands to the controller, whose disk is nvme0 and so on. A command that fails "
          "and is retried counts each time.\n\n"
          "Task filters apply to the submitter of the I/O, even if a kernel thread dispatches the "
          "command; data that the kernel writes back later belongs to no process.",
      .overhead = "two hooks per command; counted in the kernel, no output per event",
      .examples = {{"nvmelatency", "until Ctrl-C"},
                   {"nvmelatency -mT -d nvme0n1 5", "one disk in milliseconds, every 5 seconds"},
                   {"nvmelatency --admin --status",
                    "by status too, including controller commands"}},
      .questions = {{"Which NVMe commands are slow?", "nvmelatency 10 1"},
                    {"Do NVMe commands fail?", "nvmelatency --status 10 1"}},
      .object = skeleton<nvmelatency_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag(0, "admin", "also commands to the controllers", setting(&Opt::with_admin)),
                  flag(0, "qid", "one histogram per queue", setting(&Opt::by_queue)),
                  flag(0, "status", "one histogram per status", setting(&Opt::by_status)),
                  shared::request_disk(), shared::milliseconds(), shared::timestamp(),
                  shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::max_keys()},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}, "task-filter"},
                {"issues to the device", {{{progs::on_issue}}}, "task-filter"},
                {"commands", {{{progs::on_setup}}}},
                {"completions", {{{progs::on_complete}}}}},
      .maps = {{maps::commands, MapSize::block_requests},
               {maps::requests, MapSize::block_requests},
               {maps::bios, MapSize::block_bios}},
      .report =
          histogram<Key>(
              maps::latencies, "latency",
              {derived<Key, disk>("disk", "disk", as::text, "the disk, or controller").bounded(),
               derived<Key, command>("command", "command", as::text, "the command").bounded(),
               field<&Key::queue>("queue_index", "qid", as::number, "number of the queue")
                   .with("qid"),
               derived<Key, status>("status", "status", as::text,
                                    "NVMe status in hexadecimal, or success")
                   .bounded()
                   .with("status")})
              .without_owner(
                  "they are commands of a driver, which has merged and split what tasks submitted")
              .only<Line, wanted>(),
      .announce = "Tracing NVMe commands",
      .look_up =
          [](Config& c) {
            constexpr std::string_view kSetup = "nvme_setup_cmd", kComplete = "nvme_complete_rq";
            return look_up_members(c, "nvme", "NVMe command", "load the module nvme first",
                                   "biolatency shows disks of any kind",
                                   {{kSetup, "disk", setting(&Opt::at_disk)},
                                    {kSetup, "ctrl_id", setting(&Opt::at_controller)},
                                    {kSetup, "qid", setting(&Opt::at_queue)},
                                    {kSetup, "opcode", setting(&Opt::at_opcode)},
                                    {kSetup, "cid", setting(&Opt::at_start_id)},
                                    {kComplete, "ctrl_id", setting(&Opt::at_end_controller)},
                                    {kComplete, "qid", setting(&Opt::at_end_queue)},
                                    {kComplete, "cid", setting(&Opt::at_end_id)},
                                    {kComplete, "status", setting(&Opt::at_end_status)}});
          },
  };
}
