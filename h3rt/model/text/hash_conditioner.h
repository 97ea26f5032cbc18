// h3rt's own small conditioner: every word becomes a pseudo-random row.
#pragma once

#include <memory>

#include "h3rt/io/model_config.h"
#include "h3rt/model/text/conditioner.h"

namespace h3rt {

// The same word gives the same row for one seed, whatever stands around it; order is the order of
// the rows. ASCII letters are lower-cased first (a word at the start of a sentence is the same
// word); other letters are taken as they are. Values have mean 0 and variance 1, come from integer
// arithmetic and one multiplication, and are the same bits on every machine. A row follows from a
// 64-bit hash of the word, so two words share a row where their hashes collide: by chance one pair
// in 2^64, but such words can be made. Special tokens hash apart from words of the same letters,
// with the same limit. `config` is valid.
std::unique_ptr<Conditioner> MakeHashConditioner(const ConditionerConfig& config);

}  // namespace h3rt
