// A library that launches commands, as libraries of programs do.
#include "launching_library.h"

CUresult LaunchFromLibrary(CUstream stream, CUdeviceptr memory, size_t count) {
  CUresult result = cuMemsetD32Async(memory, 1, count, stream);
  // This prevents a tail call, after which the return address would be in the caller's caller.
  asm volatile("" ::: "memory");
  return result;
}

CUresult WaitFromLibrary(CUstream stream, CUevent event) {
  CUresult result = cuStreamWaitEvent(stream, event, 0);
  asm volatile("" ::: "memory");  // as above
  return result;
}
