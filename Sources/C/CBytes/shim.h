// Comparisons of sixteen bytes at once, which Swift's SIMD types do byte by byte.

#pragma once

#include <stdint.h>
#include <string.h>

typedef uint8_t shim_bytes __attribute__((vector_size(16)));

// The place of the first of sixteen bytes that isn't printable ASCII, or is a quote or a backslash; 16 if there is none.
static inline int shim_plain_prefix(const uint8_t *_Nonnull text) {
  shim_bytes bytes;
  memcpy(&bytes, text, sizeof bytes);
  shim_bytes special = (shim_bytes)(bytes - ' ' > '~' - ' ') | (shim_bytes)(bytes == '"') | (shim_bytes)(bytes == '\\');
  // The first byte is in the lowest bits, as on all machines that Swift runs on.
  uint64_t words[2];
  memcpy(words, &special, sizeof words);
  if (words[0]) return __builtin_ctzll(words[0]) >> 3;
  return words[1] ? 8 + (__builtin_ctzll(words[1]) >> 3) : 16;
}
