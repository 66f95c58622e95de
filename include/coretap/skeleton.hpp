// What the headers of kernel objects need (scripts/skeleton); each includes it.
#pragma once
#include <string_view>

#include "lib/shared.h"
