/* CUDA: an example ends with a message when a call fails. */
#ifndef XSCHED_EXAMPLES_CUDA_CU_CHECK_H_
#define XSCHED_EXAMPLES_CUDA_CU_CHECK_H_

#include <cuda.h>

#include "../common/check.h"

#define CU_CHECK(call)                                          \
  do {                                                          \
    CUresult result = (call);                                   \
    if (result != CUDA_SUCCESS) {                               \
      fprintf(stderr, "%s: CUresult %d\n", #call, (int)result); \
      exit(1);                                                  \
    }                                                           \
  } while (0)

#endif /* XSCHED_EXAMPLES_CUDA_CU_CHECK_H_ */
