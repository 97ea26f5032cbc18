// Latents to rows and back.
#include <cstddef>

#include "h3rt/base/check.h"
#include "h3rt/model/packing/packing.h"

namespace h3rt {
namespace {

// Calls copy(latent index, row element index) for every element, rows in order.
template <typename Copy>
void ForEachElement(int64_t c, int64_t t, int64_t h, int64_t w, const Copy& copy) {
  int64_t element = 0;
  for (int64_t frame = 0; frame < t; ++frame) {
    for (int64_t y = 0; y < h; y += 2) {
      for (int64_t x = 0; x < w; x += 2) {
        for (int64_t channel = 0; channel < c; ++channel) {
          const int64_t corner = ((channel * t + frame) * h + y) * w + x;
          copy(corner, element);
          copy(corner + 1, element + 1);
          copy(corner + w, element + 2);
          copy(corner + w + 1, element + 3);
          element += 4;
        }
      }
    }
  }
}

void CheckSizes(size_t a, size_t b, int64_t c, int64_t t, int64_t h, int64_t w) {
  H3RT_CHECK(c >= 0 && t >= 0 && h >= 0 && w >= 0 && h % 2 == 0 && w % 2 == 0);
  H3RT_CHECK(a == static_cast<size_t>(c * t * h * w) && b == a);
}

}  // namespace

void Patchify(std::span<const float> latents, int64_t c, int64_t t, int64_t h, int64_t w,
              std::span<float> rows) {
  CheckSizes(latents.size(), rows.size(), c, t, h, w);
  ForEachElement(c, t, h, w, [&](int64_t latent, int64_t element) {
    rows[static_cast<size_t>(element)] = latents[static_cast<size_t>(latent)];
  });
}

void Unpatchify(std::span<const float> rows, int64_t c, int64_t t, int64_t h, int64_t w,
                std::span<float> latents) {
  CheckSizes(latents.size(), rows.size(), c, t, h, w);
  ForEachElement(c, t, h, w, [&](int64_t latent, int64_t element) {
    latents[static_cast<size_t>(latent)] = rows[static_cast<size_t>(element)];
  });
}

void AudioRowsToLatents(std::span<const float> rows, int64_t c, int64_t a,
                        std::span<float> latents) {
  H3RT_CHECK(c >= 0 && a >= 0 && rows.size() == static_cast<size_t>(2 * a * c));
  H3RT_CHECK(latents.size() == rows.size());
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t i = 0; i < a; ++i) {
      for (int64_t k = 0; k < c; ++k) {
        latents[static_cast<size_t>((side * c + k) * a + i)] =
            rows[static_cast<size_t>((side * a + i) * c + k)];
      }
    }
  }
}

void AudioLatentsToRows(std::span<const float> latents, int64_t c, int64_t a,
                        std::span<float> rows) {
  H3RT_CHECK(c >= 0 && a >= 0 && rows.size() == static_cast<size_t>(2 * a * c));
  H3RT_CHECK(latents.size() == rows.size());
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t i = 0; i < a; ++i) {
      for (int64_t k = 0; k < c; ++k) {
        rows[static_cast<size_t>((side * a + i) * c + k)] =
            latents[static_cast<size_t>((side * c + k) * a + i)];
      }
    }
  }
}

}  // namespace h3rt
