// SQLite: the embedded registry. statfs(2) tells whether its file lies on a network file system; Glibc's module lacks it.
#pragma once
#include <sqlite3.h>
#include <sys/vfs.h>
