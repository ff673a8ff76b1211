// Comparisons of sixteen bytes at once, which Swift's SIMD types do byte by byte.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t shim_bytes __attribute__((vector_size(16)));

static inline shim_bytes shim_load(const uint8_t *_Nonnull text) {
  shim_bytes bytes;
  memcpy(&bytes, text, sizeof bytes);
  return bytes;
}

// The place of the first of sixteen bytes that isn't printable ASCII, or is a quote or a backslash; 16 if there is none.
static inline int shim_plain_prefix(const uint8_t *_Nonnull text) {
  shim_bytes bytes = shim_load(text);
  shim_bytes special = (shim_bytes)(bytes - ' ' > '~' - ' ') | (shim_bytes)(bytes == '"') | (shim_bytes)(bytes == '\\');
  // The first byte is in the lowest bits, as on all machines that Swift runs on.
  uint64_t words[2];
  memcpy(words, &special, sizeof words);
  if (words[0]) return __builtin_ctzll(words[0]) >> 3;
  return words[1] ? 8 + (__builtin_ctzll(words[1]) >> 3) : 16;
}

static inline bool shim_all(shim_bytes matches) {
  uint64_t words[2];
  memcpy(words, &matches, sizeof words);
  return (words[0] & words[1]) == UINT64_MAX;
}

// True if each of sixteen bytes is a digit or a letter from a to f.
static inline bool shim_lower_hex(const uint8_t *_Nonnull text) {
  shim_bytes bytes = shim_load(text);
  return shim_all((shim_bytes)(bytes - '0' <= 9) | (shim_bytes)(bytes - 'a' <= 5));
}

// True if each of sixteen bytes is a letter, a digit, a hyphen, a colon or an underscore. The colon follows the digits.
static inline bool shim_usual_in_fcm(const uint8_t *_Nonnull text) {
  shim_bytes bytes = shim_load(text);
  return shim_all(
    (shim_bytes)(bytes - '0' <= 10) | (shim_bytes)((bytes | 0x20) - 'a' <= 25) | (shim_bytes)(bytes == '-') | (shim_bytes)(bytes == '_'));
}
