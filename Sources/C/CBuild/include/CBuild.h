// What the program was built from.
#pragma once

/// The commit, as whoever builds names it in PUSHFLEET_COMMIT; empty where nobody did.
const char *build_commit(void);
