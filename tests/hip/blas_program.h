// Matrix products by AMD's own BLAS libraries: c = a b, in column-major order; a is m × k, b is k × n.
#pragma once

#include "hip_api.h"

extern "C" {
#pragma GCC visibility push(default)

struct BlasProduct {
  float* c;
  const float *a, *b;
  int m, n, k;
  bool a_transposed, b_transposed;
};
// The library's own status; 0: it is on the stream.
int BlasByRocBlas(hipStream_t stream, const BlasProduct* product);
int BlasByHipBlas(hipStream_t stream, const BlasProduct* product);

#pragma GCC visibility pop
}
