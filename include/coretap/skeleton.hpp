// What generated skeletons need; each includes it.
#pragma once
#include <bpf/libbpf.h>

#include "lib/shared.h"
