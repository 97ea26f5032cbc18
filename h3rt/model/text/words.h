// Words of a UTF-8 text.
#pragma once

#include <string_view>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

// The parts of `text` between runs of Unicode White_Space, in order; views into `text`. Control
// characters that are not white space are part of words. kInvalidArgument with the byte position
// when the text is not UTF-8 (overlong forms, surrogates and values over U+10FFFF included).
absl::StatusOr<std::vector<std::string_view>> SplitWords(std::string_view text);

}  // namespace h3rt
