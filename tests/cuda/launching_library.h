// A library of the program that launches commands for it.
#pragma once

#include "hal/cuda/cu.h"

__attribute__((visibility("default"))) CUresult LaunchFromLibrary(CUstream stream, CUdeviceptr memory,
                                                                  size_t count);
__attribute__((visibility("default"))) CUresult WaitFromLibrary(CUstream stream, CUevent event);
