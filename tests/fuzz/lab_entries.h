// The bodies of the laboratory's fuzz targets, shared with the test that runs the corpus.
#pragma once

#include <cstddef>
#include <span>

namespace h3rt {

// Each reads `bytes` as its form and aborts when what was accepted breaks a promise of the reader,
// or when what was refused has no finding. True when it was accepted.
bool FuzzPtxasLog(std::span<const std::byte> bytes);
bool FuzzSanitizerLog(std::span<const std::byte> bytes);
bool FuzzNcuCsv(std::span<const std::byte> bytes);
bool FuzzBundle(std::span<const std::byte> bytes);
bool FuzzCubin(std::span<const std::byte> bytes);
// The log is read as it is, and once more with its chain made right, so that what is behind the
// hash is reached.
bool FuzzLog(std::span<const std::byte> bytes);
bool FuzzSeedPage(std::span<const std::byte> bytes);
bool FuzzSeedLog(std::span<const std::byte> bytes);
// One document by itself, then taken for a record, for evidence and for a policy: none of the rules
// may fail on what a document holds.
bool FuzzLabJson(std::span<const std::byte> bytes);

}  // namespace h3rt
