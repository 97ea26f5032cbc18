// What memory the machine and this process have.
#pragma once

#include <cstdint>

#include "h3rt/base/status.h"

namespace h3rt {

// Bytes that a plan may use: H3RT_FAKE_MEMORY, else H3RT_MEMORY_LIMIT, else the smaller of what the
// kernel calls available and what the control group leaves. kInvalidArgument for a variable that is
// not a positive number.
absl::StatusOr<uint64_t> AvailableMemory();

// Resident set of this process now and at its highest, in bytes; 0 where the kernel does not tell.
uint64_t ResidentBytes();
uint64_t PeakResidentBytes();
// Starts the peak again from here, so that it can be read for one piece of work; false where the
// kernel does not allow it.
bool ResetPeakResident();

// Gives memory that was freed back to the system, so that what one stage used is not counted, or
// missing, in the next.
void ReturnFreedMemory();

}  // namespace h3rt
