#include "miopen_program.h"

#include <miopen/miopen.h>

namespace {

// Keeps the first error.
struct Status {
  int value = miopenStatusSuccess;
  bool operator()(miopenStatus_t status) {
    if (value == miopenStatusSuccess) value = status;
    return value == miopenStatusSuccess;
  }
};

}  // namespace

int ConvolveByMiopen(hipStream_t stream, const MiopenConvolution* convolution) {
  const MiopenConvolution& shape = *convolution;
  static miopenHandle_t handle = nullptr;
  Status ok;
  if (handle == nullptr && !ok(miopenCreate(&handle))) return ok.value;
  miopenTensorDescriptor_t x, f, y;
  miopenConvolutionDescriptor_t description;
  ok(miopenSetStream(handle, stream));
  for (miopenTensorDescriptor_t* tensor : {&x, &f, &y}) ok(miopenCreateTensorDescriptor(tensor));
  ok(miopenCreateConvolutionDescriptor(&description));
  if (ok.value != miopenStatusSuccess) return ok.value;
  ok(miopenSet4dTensorDescriptor(x, miopenFloat, shape.n, shape.c, shape.h, shape.w));
  ok(miopenSet4dTensorDescriptor(f, miopenFloat, shape.k, shape.c, 3, 3));
  ok(miopenSet4dTensorDescriptor(y, miopenFloat, shape.n, shape.k, shape.h, shape.w));
  ok(miopenInitConvolutionDescriptor(description, miopenConvolution, 1, 1, 1, 1, 1, 1));
  size_t found = 0;
  miopenConvSolution_t solution;
  ok(miopenConvolutionForwardGetSolution(handle, f, x, description, y, 1, &found, &solution));
  if (ok.value != miopenStatusSuccess || found == 0 || solution.workspace_size != 0)
    return ok.value != miopenStatusSuccess ? ok.value : int{miopenStatusNotImplemented};
  ok(miopenConvolutionForwardImmediate(handle, f, shape.f, x, shape.x, description, y, shape.y, nullptr, 0,
                                       solution.solution_id));
  for (miopenTensorDescriptor_t tensor : {x, f, y}) miopenDestroyTensorDescriptor(tensor);
  miopenDestroyConvolutionDescriptor(description);
  return ok.value;
}
