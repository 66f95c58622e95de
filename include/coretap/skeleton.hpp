// Includes what generated skeletons need; a tool file includes it before its skeleton.
#pragma once
#include <bpf/libbpf.h>

#include "lib/shared.h"
