// A convolution by AMD's own MIOpen: n images of c planes of h × w, and k filters of c planes of 3 × 3;
// padding keeps the size.
#pragma once

#include "hip_api.h"

extern "C" {
#pragma GCC visibility push(default)

struct MiopenConvolution {
  float* y;            // n × k × h × w
  const float *x, *f;  // n × c × h × w; k × c × 3 × 3
  int n, c, k, h, w;
};
// MIOpen's own status; 0: it is on the stream.
int ConvolveByMiopen(hipStream_t stream, const MiopenConvolution* convolution);

#pragma GCC visibility pop
}
