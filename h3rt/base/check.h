// H3RT_CHECK is for our own faults, never for input: it prints what failed and where, then aborts.
#pragma once

namespace h3rt {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace h3rt

#define H3RT_CHECK(condition)                                              \
  do {                                                                     \
    if (!(condition)) ::h3rt::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)
