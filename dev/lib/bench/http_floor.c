// Measures HTTP alone: a libmicrohttpd server with the gateway's threading. It reads a body and answers every request with the same
// few bytes. dev/bench compares the gateway with this and amqp_floor.
//
//   http_floor PORT
//
// Serves on 127.0.0.1 until SIGTERM.
#include <microhttpd.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char answer[] = "{\"multicast_id\":1,\"success\":1,\"failure\":0,\"canonical_ids\":0,\"results\":[{\"message_id\":\"1\"}]}";

static enum MHD_Result take(void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
                            const char *upload, size_t *size, void **state) {
  (void)context, (void)url, (void)method, (void)version, (void)upload;
  static char seen;
  if (*state == NULL) {
    *state = &seen;
    return MHD_YES;
  }
  if (*size > 0) {
    *size = 0;
    return MHD_YES;
  }
  struct MHD_Response *response = MHD_create_response_from_buffer(sizeof answer - 1, answer, MHD_RESPMEM_PERSISTENT);
  MHD_add_response_header(response, "Content-Type", "application/json; charset=UTF-8");
  enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
  MHD_destroy_response(response);
  return result;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: http_floor PORT\n");
    return 64;
  }
  sigset_t ends;
  int number;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, NULL);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, take, NULL,
                                               MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT, 4096u,
                                               MHD_OPTION_CONNECTION_TIMEOUT, 15u, MHD_OPTION_END);
  if (daemon == NULL) {
    fprintf(stderr, "http_floor: 127.0.0.1:%s can't be served\n", argv[1]);
    return 69;
  }
  sigwait(&ends, &number);
  MHD_stop_daemon(daemon);
  return 0;
}
