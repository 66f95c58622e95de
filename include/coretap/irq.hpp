// Names of softirqs, and programs at the interrupt vectors without handlers.
#pragma once

#include <string_view>

#include "lib/sched/irq.h"

namespace coretap {

#define CORETAP_NAME(name) #name,
inline constexpr std::string_view kSoftirqNames[] = {SOFTIRQS(CORETAP_NAME)};
#undef CORETAP_NAME

/// For IRQ_VECTORS(), in a list of programs.
#define IRQ_VECTOR_PROGRAMS(vector) progs::on_##vector##_entry, progs::on_##vector##_exit,

}  // namespace coretap
