// e2m1, the 4-bit float of NVFP4: codes 0 to 7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
// It has no NaN and no infinity.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace h3rt {

inline constexpr float kE2m1Max = 6.0f;

inline constexpr std::array<float, 16> kE2m1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                      4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                      -2.0f, -3.0f, -4.0f, -6.0f};

// The value of the low four bits; the high four are ignored.
inline float E2m1ToFloat(uint8_t code) { return kE2m1Values[code & 15u]; }

// Round to nearest, ties to the even code, +-6 beyond the largest value. The sign of what rounds to
// zero is kept (code 8 is -0). A NaN, which the format cannot hold, gives +6 (code 7).
inline uint8_t FloatToE2m1(float value) {
  if (std::isnan(value)) return 7;
  const float magnitude = std::fabs(value);
  // Each comparison is one midpoint; a tie goes down where the lower code is even.
  const int code = static_cast<int>(magnitude > 0.25f) + static_cast<int>(magnitude >= 0.75f) +
                   static_cast<int>(magnitude > 1.25f) + static_cast<int>(magnitude >= 1.75f) +
                   static_cast<int>(magnitude > 2.5f) + static_cast<int>(magnitude >= 3.5f) +
                   static_cast<int>(magnitude > 5.0f);
  return static_cast<uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

}  // namespace h3rt
