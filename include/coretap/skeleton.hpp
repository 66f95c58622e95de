// Included by the generated headers of kernel objects (scripts/skeleton).
#pragma once
#include <string_view>

#include "lib/core/shared.h"
