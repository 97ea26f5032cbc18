// One macro for loops that the compiler vectorises: the same source is built for the base
// instruction set and, on x86-64, for AVX2 too; the loader picks. Fused multiply-add stays off
// (-ffp-contract=off) and reductions name their lanes, so every version gives the same bytes.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define H3RT_MULTIVERSION __attribute__((target_clones("default", "avx2")))
#else
#define H3RT_MULTIVERSION
#endif

// Helpers called from such a loop must become part of it.
#define H3RT_ALWAYS_INLINE inline __attribute__((always_inline))
