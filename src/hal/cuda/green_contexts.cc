#include "hal/cuda/green_contexts.h"

#include "base/fork_handler.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"

namespace {

constinit xsched::NoDestroy<xsched::PointerMap<CUctx_st>> owners;

uint64_t KeyOf(CUcontext context) { return reinterpret_cast<uint64_t>(context); }

}  // namespace

void CudaGreenContextMade(CUcontext green, CUcontext owner) {
  static constinit xsched::ForkHandler fork_handler = {[] { owners->ResetAfterFork(); }};
  fork_handler.Install();
  if (green != nullptr && owner != nullptr && green != owner) owners->Insert(KeyOf(green), owner);
}

void CudaGreenContextGone(CUcontext green) {
  if (green != nullptr) owners->Remove(KeyOf(green));
}

CUcontext CudaOwnerOf(CUcontext context) {
  CUcontext owner = context == nullptr ? nullptr : owners->Find(KeyOf(context));
  return owner != nullptr ? owner : context;
}
