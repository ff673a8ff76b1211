// libmicrohttpd: the HTTP server of the figures. Inline functions stand for the variadic call and the cast constants that Swift
// cannot import.
#pragma once
#include <microhttpd.h>

// Listens on `descriptor`, which is the library's from now on.
static inline struct MHD_Daemon *pushfleet_mhd_start(int descriptor, MHD_AccessHandlerCallback handler, void *context,
                                                     unsigned connections, unsigned idle_seconds) {
  return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handler, context, MHD_OPTION_LISTEN_SOCKET, descriptor,
                          MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds, MHD_OPTION_END);
}

static inline enum MHD_Result pushfleet_mhd_refuse(void) { return MHD_NO; }

static inline enum MHD_Result pushfleet_mhd_respond(struct MHD_Connection *connection, unsigned status, const char *type,
                                                    const void *body, size_t size) {
  struct MHD_Response *response = MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
  if (response == NULL) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
  enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}
