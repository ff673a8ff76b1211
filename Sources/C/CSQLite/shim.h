// SQLite: the embedded registry. What Glibc's module lacks: statfs(2) tells whether a file lies on a network file system, getrandom(2)
// makes ids that can't be guessed.
#pragma once
#include <sqlite3.h>
#include <sys/random.h>
#include <sys/vfs.h>

// Without the statistics of its memory SQLite needs no lock for each allocation. Variadic, so out of Swift's reach; before the first
// connection only.
static inline int pushfleet_sqlite_without_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
