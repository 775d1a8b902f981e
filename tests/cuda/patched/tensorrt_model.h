// What the patch uses of Triton's TensorRT backend.
#pragma once

namespace triton::backend::tensorrt {

class TensorRTModel {
 public:
  enum Priority { DEFAULT = 0, MIN = 1, MAX = 2 };
};

}  // namespace triton::backend::tensorrt
