#include "server/above.h"
#include "server/generated.h"
