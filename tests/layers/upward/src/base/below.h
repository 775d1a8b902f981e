#include "server/above.h"
