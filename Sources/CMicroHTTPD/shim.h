// libmicrohttpd: the HTTP server of the figures. Inline functions stand for the variadic call and the cast constants that Swift
// cannot import.
#pragma once
#include <microhttpd.h>
#include <netinet/in.h>

static inline struct MHD_Daemon *pushfleet_mhd_start(const struct sockaddr *address, MHD_AccessHandlerCallback handler, void *context) {
  return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | (address->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0), 0, NULL, NULL, handler,
                          context, MHD_OPTION_SOCK_ADDR, address, MHD_OPTION_CONNECTION_LIMIT, 32u, MHD_OPTION_CONNECTION_TIMEOUT, 10u,
                          MHD_OPTION_END);
}

static inline enum MHD_Result pushfleet_mhd_refuse(void) { return MHD_NO; }

static inline enum MHD_Result pushfleet_mhd_respond(struct MHD_Connection *connection, unsigned status, const char *type,
                                                    const void *body, size_t size) {
  struct MHD_Response *response = MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
  if (response == NULL) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", type);
  enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}
