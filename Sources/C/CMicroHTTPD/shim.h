// libmicrohttpd: the HTTP server of the figures and of the gateway. Inline functions stand for the variadic call and the cast constants
// that Swift cannot import.
#pragma once
#include <microhttpd.h>
#include <string.h>
#include <strings.h>

struct pushfleet_mhd_options {
  unsigned connections;
  unsigned idle_seconds;
  size_t connection_memory;
  // Nonzero: without a thread of its own, run by calls of MHD_run.
  int is_driven;
  // PEM; both NULL for plain HTTP.
  const char *certificate;
  const char *key;
};

// As GnuTLS writes it: TLS 1.2 and 1.3, and ciphers that authenticate what they encrypt, with keys that nobody can find out later.
static const char pushfleet_mhd_tls[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"
                                        "-CIPHER-ALL:+AES-256-GCM:+AES-128-GCM:+CHACHA20-POLY1305";

// Listens on `descriptor`, which is the library's from now on.
static inline struct MHD_Daemon *pushfleet_mhd_start(int descriptor, MHD_NotifyConnectionCallback notified,
                                                     void *(*arrived)(void *, const char *, struct MHD_Connection *),
                                                     MHD_AccessHandlerCallback handler, MHD_RequestCompletedCallback completed,
                                                     void *context, const struct pushfleet_mhd_options *options) {
  // Whoever drives the library knows when answers have been given: without its own signal each answer is a system call cheaper.
  unsigned flags = options->is_driven ? MHD_USE_EPOLL | (MHD_ALLOW_SUSPEND_RESUME & ~MHD_USE_ITC)
                                      : MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)options->certificate},
                                 {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)options->key},
                                 {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)pushfleet_mhd_tls},
                                 {MHD_OPTION_END, 0, NULL}};
  struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
  if (options->certificate != NULL) flags |= MHD_USE_TLS;
  return MHD_start_daemon(flags, 0, NULL, NULL, handler, context, MHD_OPTION_LISTEN_SOCKET, descriptor,
                          MHD_OPTION_CONNECTION_LIMIT, options->connections, MHD_OPTION_CONNECTION_TIMEOUT, options->idle_seconds,
                          MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->connection_memory, MHD_OPTION_URI_LOG_CALLBACK, arrived,
                          context, MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_NOTIFY_CONNECTION, notified, context,
                          MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
                          options->certificate != NULL ? tls : none, MHD_OPTION_END);
}

static inline enum MHD_Result pushfleet_mhd_refuse(void) { return MHD_NO; }
static inline enum MHD_Result pushfleet_mhd_go_on(void) { return MHD_YES; }

static inline struct MHD_Response *pushfleet_mhd_response(const void *body, size_t size) {
  return MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
}

struct pushfleet_mhd_search {
  const char *name, *value;
  size_t size;
  int count;
};

static enum MHD_Result pushfleet_mhd_compare(void *context, enum MHD_ValueKind kind, const char *name, size_t size, const char *value,
                                             size_t value_size) {
  struct pushfleet_mhd_search *search = (struct pushfleet_mhd_search *)context;
  if (size == search->size && strncasecmp(name, search->name, size) == 0) {
    search->value = value;
    search->count++;
  }
  return MHD_YES;
}

// The last header with this name: a proxy adds its own behind the caller's.
static inline const char *pushfleet_mhd_header(struct MHD_Connection *connection, const char *name) {
  struct pushfleet_mhd_search search = {name, NULL, strlen(name), 0};
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, pushfleet_mhd_compare, &search);
  return search.value;
}

// The number of headers with this name.
static inline int pushfleet_mhd_count(struct MHD_Connection *connection, const char *name) {
  struct pushfleet_mhd_search search = {name, NULL, strlen(name), 0};
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, pushfleet_mhd_compare, &search);
  return search.count;
}

static inline void pushfleet_mhd_each_header(struct MHD_Connection *connection, MHD_KeyValueIteratorN look, void *context) {
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look, context);
}

static inline int pushfleet_mhd_descriptor(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

// What the notification of the connection's start has set; 0 for nothing.
static inline long pushfleet_mhd_id(struct MHD_Connection *connection) {
  return (long)MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static inline unsigned pushfleet_mhd_connections(struct MHD_Daemon *daemon) {
  return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

static inline int pushfleet_mhd_listener(struct MHD_Daemon *daemon) {
  return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd;
}

static inline int pushfleet_mhd_poll_descriptor(struct MHD_Daemon *daemon) {
  return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

// Does what there is to do without waiting; nonzero: more is to be done at once. One step of the library's seldom brings a connection to where it
// has to wait.
static inline int pushfleet_mhd_run(struct MHD_Daemon *daemon) {
  MHD_UNSIGNED_LONG_LONG milliseconds;
  for (int step = 0; step < 4; step++) {
    MHD_run(daemon);
    if (MHD_get_timeout(daemon, &milliseconds) != MHD_YES || milliseconds > 0) return 0;
  }
  return 1;
}

static inline int pushfleet_mhd_is_start(enum MHD_ConnectionNotificationCode code) { return code == MHD_CONNECTION_NOTIFY_STARTED; }
