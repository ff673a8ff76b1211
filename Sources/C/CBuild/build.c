#include "CBuild.h"

#ifndef PUSHFLEET_COMMIT
#define PUSHFLEET_COMMIT ""
#endif

const char *build_commit(void) { return PUSHFLEET_COMMIT; }
