// What generated skeletons need; each includes it.
#pragma once
#include <bpf/libbpf.h>

#include "lib/shared.h"

namespace coretap {
/// The same kernel program without filters; each generated skeleton names it.
template <class Skeleton>
struct plain_form;
}  // namespace coretap
