// Which results of the driver say that a context is lost: nothing of it runs or reports any more, and every
// call returns the same error until the context or the process ends.
//
// This is so for the errors of which CUDA's documentation (cuda.h) says that they leave the process in an
// inconsistent state, that the process must be terminated, or that the context cannot be used or is
// destroyed. Uncorrectable memory and NVLink errors occur while a kernel runs, and end it as well. It is not
// said of CUDA_ERROR_UNKNOWN, which can come from any single call.
#pragma once

#include "cuda/functions.h"

namespace xsched::cuda {

inline bool IsLost(CUresult result) {
  // By number, because older headers do not have all names.
  switch (static_cast<int>(result)) {
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case 220:  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    case 226:  // CUDA_ERROR_CONTAINED
    case 700:  // CUDA_ERROR_ILLEGAL_ADDRESS
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 709:  // CUDA_ERROR_CONTEXT_IS_DESTROYED
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case 810:  // CUDA_ERROR_MPS_CLIENT_TERMINATED
    case 911:  // CUDA_ERROR_EXTERNAL_DEVICE
      return true;
    default:
      return false;
  }
}

}  // namespace xsched::cuda
