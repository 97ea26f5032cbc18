// The bodies of the fuzz targets, shared with the test that runs the corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace h3rt {

// Reads `bytes` as a safetensors file: the header parser, then inspection and opening as each
// network. Aborts when a file that was accepted breaks a promise of the reader. True when the
// header was accepted.
bool FuzzSafetensors(std::span<const std::byte> bytes);

// Reads `bytes` as each of the five configurations. Aborts when one that was accepted is not
// written back as it was read. True when one was accepted.
bool FuzzConfig(std::span<const std::byte> bytes);

}  // namespace h3rt
