// Included by the generated headers of kernel objects (scripts/skeleton).
#pragma once
#include <string_view>

#include "coretap/object_names.hpp"
#include "lib/core/shared.h"
