/* HIP: an example ends with a message when a call fails. */
#ifndef XSCHED_EXAMPLES_HIP_HIP_CHECK_H_
#define XSCHED_EXAMPLES_HIP_HIP_CHECK_H_

#include <hip/hip_runtime_api.h>

#include "../common/check.h"

#define HIP_CHECK(call)                                           \
  do {                                                            \
    hipError_t result = (call);                                   \
    if (result != hipSuccess) {                                   \
      fprintf(stderr, "%s: hipError_t %d\n", #call, (int)result); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

#endif /* XSCHED_EXAMPLES_HIP_HIP_CHECK_H_ */
