// libpq: the registry of a fleet, in PostgreSQL.
#pragma once
#include <libpq-fe.h>
