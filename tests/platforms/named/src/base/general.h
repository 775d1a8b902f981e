// A stream of hipMalloc's friends.
#include <abacus.h>
