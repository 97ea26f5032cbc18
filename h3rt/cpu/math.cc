#include "h3rt/cpu/math.h"
