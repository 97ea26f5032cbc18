#include "h3rt/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace h3rt {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "h3rt: internal check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace h3rt
