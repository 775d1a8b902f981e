// The runtime's name of a stream.
#pragma once

#include "xsched/cuda/hal.h"

using cudaStream_t = CUstream;
