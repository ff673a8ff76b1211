// Measures AMQP alone, with librabbitmq's blocking interface on 127.0.0.1. dev/bench compares the worker with it, and publishes
// with it.
//
//   amqp_floor publish PORT QUEUE COUNT BODY-FILE DISTINCT [WINDOW]
//     Publishes COUNT persistent messages with confirms, at most WINDOW (1,000) unconfirmed. In the body, each run of eight '@' becomes
//     the eight hexadecimal digits of (message number mod DISTINCT), so that requests name different devices. If the file has several
//     lines, each is a body; the messages have them in turn.
//   amqp_floor consume PORT QUEUE COUNT
//     Consumes COUNT messages with a prefetch of 1,000. Acknowledges 100 at a time.
//
// Declares QUEUE as a durable quorum queue unless it exists. Prints "<messages per second> <µs of CPU per message>".
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { channel = 1, window = 1000, ackBatch = 100, frameSize = 131072 };

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "amqp_floor: %s failed\n", what);
  exit(1);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpuSeconds(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static amqp_connection_state_t openConnection(int port) {
  amqp_connection_state_t connection = amqp_new_connection();
  amqp_socket_t *socket = amqp_tcp_socket_new(connection);
  require(amqp_socket_open(socket, "127.0.0.1", port) == AMQP_STATUS_OK, "connecting");
  amqp_rpc_reply_t login =
      amqp_login(connection, "/", 0, frameSize, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
  require(login.reply_type == AMQP_RESPONSE_NORMAL, "login");
  require(amqp_channel_open(connection, channel) != NULL, "opening the channel");
  return connection;
}

// A passive declaration closes the channel if the queue is missing, and an active one if its arguments differ. So a second
// connection checks first whether the queue exists.
static void declareQueue(int port, amqp_bytes_t queue) {
  amqp_connection_state_t probe = openConnection(port);
  int exists = amqp_queue_declare(probe, channel, queue, 1, 0, 0, 0, amqp_empty_table) != NULL;
  amqp_connection_close(probe, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(probe);
  if (exists) return;
  amqp_table_entry_t type = {.key = amqp_cstring_bytes("x-queue-type"),
                             .value = {.kind = AMQP_FIELD_KIND_UTF8, .value = {.bytes = amqp_cstring_bytes("quorum")}}};
  amqp_table_t arguments = {.num_entries = 1, .entries = &type};
  amqp_connection_state_t connection = openConnection(port);
  require(amqp_queue_declare(connection, channel, queue, 0, 1, 0, 0, arguments) != NULL, "declaring the queue");
  amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(connection);
}

static amqp_bytes_t readFile(const char *path) {
  FILE *file = fopen(path, "rb");
  require(file != NULL, path);
  amqp_bytes_t body = amqp_bytes_malloc(1 << 20);
  body.len = fread(body.bytes, 1, body.len, file);
  fclose(file);
  return body;
}

static void stamp(amqp_bytes_t body, const char *pattern, unsigned number) {
  char digits[9];
  snprintf(digits, sizeof digits, "%08x", number);
  for (size_t i = 0; i + 8 <= body.len;)
    if (memcmp(pattern + i, "@@@@@@@@", 8) == 0) {
      memcpy((char *)body.bytes + i, digits, 8);
      i += 8;
    } else {
      i++;
    }
}

static void publish(amqp_connection_state_t connection, amqp_bytes_t queue, int count, const char *path, unsigned distinct,
                    int most) {
  amqp_bytes_t bodies = readFile(path), patterns = amqp_bytes_malloc_dup(bodies);
  size_t line = 0;
  char identity[32];
  amqp_basic_properties_t properties = {
      ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG |
                AMQP_BASIC_TIMESTAMP_FLAG,
      .delivery_mode = AMQP_DELIVERY_PERSISTENT,
      .content_type = amqp_cstring_bytes("application/json"),
      .timestamp = (uint64_t)time(NULL),
  };
  amqp_confirm_select(connection, channel);
  int confirmed = 0;
  for (int sent = 1; sent <= count; sent++) {
    const char *pattern = (const char *)patterns.bytes + line, *end = memchr(pattern, '\n', patterns.len - line);
    amqp_bytes_t body = {.len = end ? (size_t)(end - pattern) : patterns.len - line, .bytes = (char *)bodies.bytes + line};
    line += body.len + 1;
    if (line >= patterns.len) line = 0;
    stamp(body, pattern, (unsigned)(sent - 1) % distinct);
    snprintf(identity, sizeof identity, "bench-%08x", (unsigned)sent);
    properties.message_id = amqp_cstring_bytes(identity);
    require(amqp_basic_publish(connection, channel, amqp_empty_bytes, queue, 0, 0, &properties, body) == 0, "publishing");
    while (sent - confirmed >= most || (sent == count && confirmed < count)) {
      amqp_frame_t frame;
      require(amqp_simple_wait_frame(connection, &frame) == AMQP_STATUS_OK, "waiting for confirms");
      if (frame.frame_type == AMQP_FRAME_METHOD) {
        require(frame.payload.method.id == AMQP_BASIC_ACK_METHOD, "a confirm");
        // The broker confirms a quorum queue's messages in order, so the last tag is enough.
        confirmed = (int)((amqp_basic_ack_t *)frame.payload.method.decoded)->delivery_tag;
      }
      amqp_maybe_release_buffers(connection);
    }
  }
  amqp_bytes_free(bodies);
  amqp_bytes_free(patterns);
}

static void consume(amqp_connection_state_t connection, amqp_bytes_t queue, int count) {
  require(amqp_basic_qos(connection, channel, 0, window, 0) != NULL, "setting the prefetch");
  require(amqp_basic_consume(connection, channel, queue, amqp_empty_bytes, 0, 0, 0, amqp_empty_table) != NULL, "consuming");
  for (int received = 1; received <= count; received++) {
    amqp_envelope_t envelope;
    amqp_maybe_release_buffers(connection);
    amqp_rpc_reply_t reply = amqp_consume_message(connection, &envelope, NULL, 0);
    require(reply.reply_type == AMQP_RESPONSE_NORMAL, "receiving");
    if (received % ackBatch == 0 || received == count) amqp_basic_ack(connection, channel, envelope.delivery_tag, 1);
    amqp_destroy_envelope(&envelope);
  }
}

int main(int argc, char **argv) {
  int publishing = (argc == 7 || argc == 8) && strcmp(argv[1], "publish") == 0;
  if (!publishing && !(argc == 5 && strcmp(argv[1], "consume") == 0)) {
    fprintf(stderr, "usage: amqp_floor publish PORT QUEUE COUNT BODY-FILE DISTINCT [WINDOW] | amqp_floor consume PORT QUEUE COUNT\n");
    return 64;
  }
  int port = atoi(argv[2]), count = atoi(argv[4]);
  amqp_bytes_t queue = amqp_cstring_bytes(argv[3]);
  declareQueue(port, queue);
  amqp_connection_state_t connection = openConnection(port);
  double start = seconds(), startCPU = cpuSeconds();
  if (publishing)
    publish(connection, queue, count, argv[5], (unsigned)atoi(argv[6]), argc == 8 ? atoi(argv[7]) : window);
  else
    consume(connection, queue, count);
  double elapsed = seconds() - start, cpu = cpuSeconds() - startCPU;
  printf("%.0f %.3f\n", count / elapsed, cpu / count * 1e6);
  amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(connection);
  return 0;
}
