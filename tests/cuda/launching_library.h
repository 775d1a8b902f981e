// A library of a program's, by which it puts work on streams.
#pragma once

#include "hal/cuda/cu.h"

__attribute__((visibility("default"))) CUresult LaunchFromLibrary(CUstream stream, CUdeviceptr memory,
                                                                  size_t count);
