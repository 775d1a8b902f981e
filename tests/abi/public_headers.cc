/* Every public header is C++17 and needs no other before it; twice, for its guard. CMakeLists.txt names the
 * header. */
#include XSCHED_HEADER
#include XSCHED_HEADER
