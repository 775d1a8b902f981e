/* The whole platform-independent API. Each platform adds xsched/<platform>/hal.h. */
#ifndef XSCHED_XSCHED_H_
#define XSCHED_XSCHED_H_

#include "xsched/hint.h"
#include "xsched/types.h"
#include "xsched/xqueue.h"

#endif /* XSCHED_XSCHED_H_ */
