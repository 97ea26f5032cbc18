// Rules about one piece of evidence beyond its form. For gates and the validator.
#pragma once

#include "h3rt/lab/stats.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// What the envelope alone shows, without reading a blob: ValidateEvidence less E-SAMPLES and the
// sample side of E-PAIR-MISMATCH.
void CheckEnvelope(const Evidence& evidence, const Doc& policy, Findings& findings);

// The least picoseconds a call can take on the target: bytes and operations of the body at the
// policy's peak rates; 0 where neither is known.
double FloorPicoseconds(const Doc& envelope, const Doc& policy);

// The samples that the body of a timing names; E-SAMPLES and nothing when they cannot be used.
std::vector<Sample> ReadSamples(const Store& store, const Evidence& evidence, Findings& findings);

// One parity case says that the outputs agree (`mode` and `bound_e9` of its body), wrote all of
// their elements, nothing else, and left the inputs alone. Empty, or what is wrong.
std::string WhyCaseDiffers(const Doc& body, const Doc& parity_case);

// The kernel (a name without template arguments, say) is among {"symbol","launches"} entries.
bool SymbolMatches(std::string_view seen, std::string_view wanted);

// Measured evidence against the experiment that this build declares: sources, kernels, baseline,
// shape, bytes, operations, and that the run ended well.
void CheckDeclared(const Evidence& evidence, Findings& findings);

}  // namespace h3rt::lab
