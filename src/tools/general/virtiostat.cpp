// virtiostat: buffers that drivers hand to virtio devices, by device and queue.
#include "general/virtiostat.h"

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "virtiostat.skel.h"

using namespace coretap;
using Key = virtiostat_key;
using Sums = virtiostat_value;
using Line = Row<Key, Sums>;

namespace {

bool wanted(const Line& l, const FieldContext& context) {
  auto is = [](std::string_view asked, const char(&name)[16]) {
    return asked.empty() || asked == text_in(name);
  };
  return is(context.config->text("driver"), l.key.driver) &&
         is(context.config->text("devname"), l.key.device);
}

/// The functions that this kernel has; the later ones were added by newer kernels.
Hook additions() {
  using Programs = std::vector<ProgramName>;
  const Programs fentry = {progs::on_sgs,     progs::on_out,        progs::on_in,
                           progs::on_in_ctx,  progs::on_out_mapped, progs::on_in_mapped,
                           progs::on_in_clean},
                 kprobe = {progs::on_sgs_kprobe,        progs::on_out_kprobe,
                           progs::on_in_kprobe,         progs::on_in_ctx_kprobe,
                           progs::on_out_mapped_kprobe, progs::on_in_mapped_kprobe,
                           progs::on_in_clean_kprobe};
  Hook hook{.name = "buffers handed over"};
  for (auto& programs : {fentry, kprobe})
    for (int functions : {7, 6, 4})
      // Verifiers before 5.17, which added this helper, take too long for lists of segments.
      hook.candidates.push_back({Programs(programs.begin(), programs.begin() + functions),
                                 {has_field("virtqueue", "name"),
                                  has_enumerator("bpf_func_id", "BPF_FUNC_get_func_arg")}});
  hook.instead = "biolatency and biotop show disks, tcplife shows connections";
  return hook;
}

}  // namespace

TOOL(virtiostat) {
  return {
      .name = "virtiostat",
      .summary = "buffers and bytes handed to virtio devices, by queue",
      .description =
          "Buffers that the drivers of this virtual machine hand to its virtio devices: by "
          "driver, device and queue, how many segments the device may write (In SGs) and has to "
          "read (Out SGs), and their bytes per second. In BW may exceed what the device then "
          "writes: a network driver hands over whole buffers before packets arrive.\n\n"
          "Task filters apply to the task that runs when the buffer is handed over, which may be "
          "any task for network packets and for work that an interrupt starts.\n\n"
          "It needs kprobes or fentry, and virtio built into the kernel, because type "
          "information of modules is not used: distribution kernels before 6.12 may have virtio "
          "as a module.",
      .overhead = "a hook per buffer, and a read per segment; no output per event",
      .examples = {{"virtiostat", "every three seconds"},
                   {"virtiostat -T 1 10", "ten reports of one second, with the time"},
                   {"virtiostat -d virtio_blk", "disks only"},
                   {"virtiostat -n virtio0", "one device"}},
      .questions = {{"Which virtio device of this virtual machine is busy?", "virtiostat"}},
      .differs = {{Difference::bcc,
                   "In BW and Out BW are bytes per second. There they are the bytes of the "
                   "interval."},
                  {Difference::bcc,
                   "Buffers that the driver has mapped itself count, such as those of network "
                   "devices since Linux 6.11. There they do not."}},
      .object = skeleton<virtiostat_bpf>(),
      .positionals = shared::interval_count(3),
      .options =
          joined({{free_text('d', "driver", "NAME", "only devices of this driver"),
                   free_text('n', "devname", "NAME", "only this device"), shared::timestamp(),
                   shared::debug(), shared::sort(0), shared::top(), shared::max_keys()},
                  shared::task_filters()}),
      .hooks = {additions()},
      .report =
          table<Key, Sums>(
              maps::queues,
              {of_key<Line, &Key::driver>("driver", "Driver", as::wide(as::text, -12),
                                          "driver of the device")
                   .bounded(),
               of_key<Line, &Key::device>("device", "Device", as::wide(as::text, -10), "the device")
                   .bounded(),
               of_key<Line, &Key::index>("queue_index", "VQ", as::wide(as::number, 3),
                                         "number of the queue"),
               of_key<Line, &Key::queue>("queue", "Name", as::wide(as::text, -14),
                                         "name of the queue")
                   .bounded(),
               of_value<Line, &Sums::in_segments>("in_segments", "In SGs", as::wide(as::number, 8),
                                                  "segments that the device may write"),
               of_value<Line, &Sums::out_segments>("out_segments", "Out SGs",
                                                   as::wide(as::number, 8),
                                                   "segments that the device reads"),
               rate_of<Line, &Sums::in_bytes>("in_bytes_per_second", "In BW",
                                              as::wide(as::number, 12),
                                              "bytes that the device may write, per second"),
               rate_of<Line, &Sums::out_bytes>("out_bytes_per_second", "Out BW",
                                               as::wide(as::number, 12),
                                               "bytes that the device reads, per second"),
               with("json", {of_value<Line, &Sums::buffers>("buffers", "BUFFERS", as::number,
                                                            "buffers handed over"),
                             of_value<Line, &Sums::in_bytes>("in_bytes", "IN", as::number,
                                                             "bytes that the device may write"),
                             of_value<Line, &Sums::out_bytes>("out_bytes", "OUT", as::number,
                                                              "bytes that the device reads")})},
              "out_bytes,in_bytes")
              .without_owner("drivers fill queues in whatever task is running")
              .only<Line, wanted>()
              .timed_with("timestamp"),
      .announce = "Tracing virtio devices",
  };
}
