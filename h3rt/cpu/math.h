// Elementary functions written so that a plain loop over them vectorises: no branch, no table.
#pragma once

#include <cstdint>

#include "h3rt/cpu/multiversion.h"

namespace h3rt {}  // namespace h3rt
