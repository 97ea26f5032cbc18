// Prepared codes in the layout of the public library, as golden files hold them (NHD).
#pragma once

#include <cstdint>
#include <vector>

namespace h3rt {

// Codes of q or k, [batch, heads, rows padded to exact::kRowPad, dim], as [batch, rows, heads,
// dim].
std::vector<int8_t> PublicCodes(const int8_t* codes, int64_t batch, int64_t heads, int64_t rows,
                                int64_t dim);

// Codes of v, [batch, heads, dim, tokens padded to exact::kRowPad], as [batch, dim, heads, tokens
// padded to 64].
std::vector<uint8_t> PublicValueCodes(const uint8_t* codes, int64_t batch, int64_t heads,
                                      int64_t tokens, int64_t dim);

}  // namespace h3rt
