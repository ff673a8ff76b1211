#include <jansson.h>
#include <stdio.h>
#include <time.h>
#include <yajl/yajl_parse.h>
#include <yajl/yajl_tree.h>

static char body[4096];
static size_t size;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int jansson(void) {
  json_t *value = json_loadb(body, size, JSON_REJECT_DUPLICATES, 0);
  json_decref(value);
  return value != 0;
}

static int yajl_tree(void) {
  yajl_val value = yajl_tree_parse(body, 0, 0);
  yajl_tree_free(value);
  return value != 0;
}

static int yajl_events(void) {
  yajl_handle handle = yajl_alloc(0, 0, 0);
  int done = yajl_parse(handle, (unsigned char *)body, size) == yajl_status_ok && yajl_complete_parse(handle) == yajl_status_ok;
  yajl_free(handle);
  return done;
}

static void measure(const char *name, int (*work)(void)) {
  double best = 1e18;
  for (int round = 0; round < 7; round++) {
    double start = now();
    for (int i = 0; i < 50000; i++)
      if (!work()) return;
    double each = (now() - start) / 50000;
    if (each < best) best = each;
  }
  printf("%s: %.0f ns\n", name, best);
}

int main(int count, char **arguments) {
  FILE *file = count == 2 ? fopen(arguments[1], "r") : 0;
  if (!file) return 64;
  size = fread(body, 1, sizeof body - 1, file);
  fclose(file);
  measure("jansson, json_loadb", jansson);
  measure("yajl, tree", yajl_tree);
  measure("yajl, events without callbacks", yajl_events);
  return 0;
}
