// Numbers of the fields of Perfetto's messages (protos/perfetto/trace in its source).
#pragma once
#include <protozero/types.hpp>

namespace coretap::perfetto {

using Tag = protozero::pbf_tag_type;

inline constexpr Tag kPacketOfTrace = 1;

namespace packet {
enum : Tag {
  ftrace_events = 1,
  process_tree = 2,
  clock_snapshot = 6,
  timestamp = 8,
  sequence = 10,
  track_event = 11,
  interned = 12,
  flags = 13,
  system_info = 45,
  timestamp_clock = 58,
  defaults = 59,
  track_descriptor = 60,
};
}
namespace snapshot {
enum : Tag { clocks = 1, primary = 2 };
}
namespace clock {
enum : Tag { id = 1, time = 2 };
}
namespace interned {
enum : Tag { categories = 1, names = 2, argument_names = 3, texts = 29 };
}
namespace entry {  // of interned names
enum : Tag { id = 1, text = 2 };
}
namespace event {
enum : Tag {
  category = 3,
  arguments = 4,
  type = 9,
  name = 10,
  track = 11,
  value = 44,
  flows = 47,
  ending_flows = 48,
};
}
namespace argument {
enum : Tag {
  name = 1,
  boolean = 2,
  number = 3,
  integer = 4,
  real = 5,
  text = 6,
  address = 7,
  interned_text = 17,
};
}
namespace track {
enum : Tag { uuid = 1, name = 2, process = 3, thread = 4, parent = 5, counter = 8 };
}
namespace thread {
enum : Tag { pid = 1, tid = 2, name = 5 };
}
namespace process {
enum : Tag { pid = 1, name = 6 };
}
namespace counter {
enum : Tag { unit_name = 6 };
}
namespace tree {
enum : Tag { processes = 1, threads = 2 };
}
namespace tree_process {
enum : Tag { pid = 1, parent = 2, command = 3 };
}
namespace tree_thread {
enum : Tag { tid = 1, name = 2, tgid = 3 };
}
namespace bundle {
enum : Tag { cpu = 1, sched = 4 };
}
namespace sched {
enum : Tag {
  switch_time = 1,
  switch_state = 2,
  switch_pid = 3,
  switch_prio = 4,
  names = 5,
  switch_name = 6,
  waking_time = 7,
  waking_pid = 8,
  waking_cpu = 9,
  waking_prio = 10,
  waking_name = 11,
  waking_flags = 12,
};
}
namespace system {
enum : Tag { utsname = 1 };
}
namespace utsname {
enum : Tag { name = 1, version = 2, release = 3, machine = 4 };
}

// Values.
enum ClockId : unsigned { kRealtime = 1, kMonotonic = 3, kBoottime = 6 };
enum EventType : unsigned { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
enum PacketFlag : unsigned { kStateCleared = 1, kNeedsState = 2 };

}  // namespace coretap::perfetto
