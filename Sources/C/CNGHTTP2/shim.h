// nghttp2: HTTP/2 framing and header compression.
#pragma once
#include <nghttp2/nghttp2.h>
