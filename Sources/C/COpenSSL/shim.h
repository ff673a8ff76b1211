// OpenSSL 3: TLS, signatures, encryption and key files. Inline functions stand for the macros that Swift cannot import.
#pragma once
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/evp.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/hmac.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

static inline int shim_ctx_set_min_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version);
}
static inline int shim_ctx_set_max_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_max_proto_version(context, version);
}
// Partial writes and a moving buffer: output is appended to and taken from between attempts.
// No auto-retry: on a non-blocking socket it only adds a read.
static inline void shim_ctx_set_modes(SSL_CTX *context) {
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}
// For clients of before TLS 1.3: a server that refuses a certificate says so within the handshake, and nothing comes after it unasked for.
static inline int shim_ctx_end_with_tls12(SSL_CTX *context) {
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  return SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
}
// Many connections that say little: buffers are held only while there is something in them.
static inline void shim_ctx_release_buffers(SSL_CTX *context) { SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); }
static inline int shim_ctx_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
  return (int)SSL_CTX_add1_chain_cert(context, certificate);
}
static inline int shim_set_server_name(SSL *ssl, const char *name) { return (int)SSL_set_tlsext_host_name(ssl, name); }
static inline int shim_x509_stack_count(const STACK_OF(X509) *stack) { return stack ? sk_X509_num(stack) : 0; }
static inline X509 *shim_x509_stack_at(const STACK_OF(X509) *stack, int index) { return sk_X509_value(stack, index); }
static inline void shim_x509_stack_free(STACK_OF(X509) *stack) { sk_X509_pop_free(stack, X509_free); }
static inline int shim_x509_store_count(X509_STORE *store) { return sk_X509_OBJECT_num(X509_STORE_get0_objects(store)); }
static inline BIO *shim_memory_bio(const void *bytes, int count) { return BIO_new_mem_buf(bytes, count); }

// One block of SHA-1, given as sixteen big-endian words in the byte order of the machine. The interface by EVP has no state that
// can be copied without an allocation, and costs more than a block.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
typedef struct {
  uint32_t h[5];
} shim_sha1_state;
static inline void shim_sha1_block(shim_sha1_state *state, const uint32_t words[16]) {
  SHA_CTX context = {.h0 = state->h[0], .h1 = state->h[1], .h2 = state->h[2], .h3 = state->h[3], .h4 = state->h[4]};
  uint32_t block[16];
  for (int i = 0; i < 16; i++) block[i] = __builtin_bswap32(words[i]);
  SHA1_Transform(&context, (const unsigned char *)block);
  state->h[0] = context.h0;
  state->h[1] = context.h1;
  state->h[2] = context.h2;
  state->h[3] = context.h3;
  state->h[4] = context.h4;
}
// SHA-256. The interface by EVP allocates for each call.
static inline void shim_sha256(const unsigned char *message, size_t count, unsigned char digest[32]) {
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, message, count);
  SHA256_Final(digest, &context);
}

// HMAC with SHA-256 (RFC 2104) and a key of at most one block, 64 bytes. The interface by EVP looks the algorithm up and allocates
// for each key, and takes ten times as long for a short message.
static inline void shim_hmac_sha256(
    const unsigned char *key, size_t key_count, const unsigned char *message, size_t count, unsigned char code[32]) {
  SHA256_CTX context;
  unsigned char block[64] = {0};
  for (size_t i = 0; i < key_count; i++) block[i] = key[i];
  for (int i = 0; i < 64; i++) block[i] ^= 0x36;
  SHA256_Init(&context);
  SHA256_Update(&context, block, 64);
  SHA256_Update(&context, message, count);
  SHA256_Final(code, &context);
  for (int i = 0; i < 64; i++) block[i] ^= 0x36 ^ 0x5C;
  SHA256_Init(&context);
  SHA256_Update(&context, block, 64);
  SHA256_Update(&context, code, 32);
  SHA256_Final(code, &context);
  OPENSSL_cleanse(block, sizeof block);
}
#pragma clang diagnostic pop
