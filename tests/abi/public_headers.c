/* Every public header is C11 and needs no other header before it. It is included twice, to test its guard. */
#include XSCHED_HEADER
#include XSCHED_HEADER
