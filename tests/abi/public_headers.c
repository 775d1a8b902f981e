/* Every public header is C11 and needs no other before it; twice, for its guard. */
#include XSCHED_HEADER
#include XSCHED_HEADER
