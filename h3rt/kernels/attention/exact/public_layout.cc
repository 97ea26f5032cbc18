#include "h3rt/kernels/attention/exact/public_layout.h"

#include <cstddef>
#include <cstring>

#include "h3rt/kernels/attention/exact/contract.h"

namespace h3rt {
namespace {

constexpr int64_t kTokenPad = 64;  // of the public files, whatever the path

}  // namespace

std::vector<int8_t> PublicCodes(const int8_t* codes, int64_t batch, int64_t heads, int64_t rows,
                                int64_t dim) {
  const int64_t padded = exact::RoundUp(rows, exact::kRowPad);
  std::vector<int8_t> out(static_cast<size_t>(batch * heads * rows * dim));
  int8_t* to = out.data();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t h = 0; h < heads; ++h, to += dim) {
        std::memcpy(to, codes + ((b * heads + h) * padded + row) * dim, static_cast<size_t>(dim));
      }
    }
  }
  return out;
}

std::vector<uint8_t> PublicValueCodes(const uint8_t* codes, int64_t batch, int64_t heads,
                                      int64_t tokens, int64_t dim) {
  const int64_t padded = exact::RoundUp(tokens, exact::kRowPad);
  const int64_t wanted = exact::RoundUp(tokens, kTokenPad);
  std::vector<uint8_t> out(static_cast<size_t>(batch * heads * dim * wanted));
  uint8_t* to = out.data();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t c = 0; c < dim; ++c) {
      for (int64_t h = 0; h < heads; ++h, to += wanted) {
        std::memcpy(to, codes + ((b * heads + h) * dim + c) * padded, static_cast<size_t>(wanted));
      }
    }
  }
  return out;
}

}  // namespace h3rt
