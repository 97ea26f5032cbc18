// h3rt's own small conditioner: every word becomes a pseudo-random row.
#pragma once

#include <memory>

#include "h3rt/io/model_config.h"
#include "h3rt/model/text/conditioner.h"

namespace h3rt {

// The same word gives the same row for one seed, whatever stands around it; order is the order of
// the rows. ASCII letters are lower-cased first (a word at the start of a sentence is the same
// word); other letters are taken as they are. Values have mean 0 and variance 1, come from integer
// arithmetic and one multiplication, and are the same bits on every machine. Special tokens have
// rows that no word of a prompt can have. `config` is valid.
std::unique_ptr<Conditioner> MakeHashConditioner(const ConditionerConfig& config);

}  // namespace h3rt
