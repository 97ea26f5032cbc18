// Where exceptions of the standard library and of others end: we throw nothing ourselves.
#pragma once

#include <string_view>

#include "h3rt/base/status.h"

namespace h3rt {

// Called inside a catch block: what the exception says as a status. std::bad_alloc and
// std::length_error are kResourceExhausted, everything else is kInternal.
absl::Status StatusOfException(std::string_view where);

}  // namespace h3rt
