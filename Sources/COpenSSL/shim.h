// OpenSSL 3: TLS, signatures and key files. Inline functions stand for the macros that Swift cannot import.
#pragma once
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/evp.h>
#include <openssl/ecdsa.h>
#include <openssl/x509v3.h>
