// cuBLAS and cuDNN from C++: a product and a convolution on a stream of the program. Prints {"sums": […]}, or
// one line on stderr and exit status 1. The libraries of wheels or toolkits are found at run time
// (LD_LIBRARY_PATH).
#include <cublas_v2.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"

namespace xsched::bench {
namespace {

class Library {
 public:
  explicit Library(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  // Calls a function that returns a status, 0 for success.
  template <typename Function, typename... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (function == nullptr) throw std::runtime_error(std::string("no ") + name);
    if (int status = static_cast<int>(function(arguments...)); status != 0) {
      throw std::runtime_error(std::string(name) + ": " + std::to_string(status));
    }
  }

 private:
  void* handle_;
};

// The symbol's name is the macro's expansion (cublasCreate is cublasCreate_v2).
#define XSCHED_NAME(name) #name
#define XSCHED_CALL(library, name, ...) (library).Call<decltype(name)>(XSCHED_NAME(name), __VA_ARGS__)

class DeviceArray {
 public:
  DeviceArray(const Driver& driver, const std::vector<float>& values)
      : driver_(driver), size_(values.size()) {
    driver.Check(driver.cuMemAlloc(&address_, Bytes()), "cuMemAlloc");
    driver.Check(driver.cuMemcpyHtoD(address_, values.data(), Bytes()), "cuMemcpyHtoD");
  }
  ~DeviceArray() { driver_.cuMemFree(address_); }
  float* get() const { return reinterpret_cast<float*>(address_); }
  double Sum() const {
    std::vector<float> values(size_);
    driver_.Check(driver_.cuMemcpyDtoH(values.data(), address_, Bytes()), "cuMemcpyDtoH");
    return std::accumulate(values.begin(), values.end(), 0.0);
  }

 private:
  size_t Bytes() const { return size_ * sizeof(float); }

  const Driver& driver_;
  size_t size_;
  CUdeviceptr address_{};
};

std::vector<float> Pattern(size_t size) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 17) / 17 - 0.4f;
  return values;
}

// x = x · a, many times over.
double Product(const Device& device, CUstream stream) {
  constexpr int kSize = 512;
  Library cublas("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR));
  cublasHandle_t handle;
  XSCHED_CALL(cublas, cublasCreate, &handle);
  XSCHED_CALL(cublas, cublasSetStream, handle, stream);
  DeviceArray a(device.driver(), Pattern(kSize * kSize)), x(device.driver(), Pattern(kSize * kSize));
  DeviceArray y(device.driver(), Pattern(kSize * kSize));
  const float scale = 1.0f / kSize, zero = 0;
  for (int i = 0; i < 50; ++i) {
    XSCHED_CALL(cublas, cublasSgemm, handle, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &scale, a.get(),
                kSize, i % 2 == 0 ? x.get() : y.get(), kSize, &zero, i % 2 == 0 ? y.get() : x.get(), kSize);
  }
  device.Synchronize(stream);
  double sum = x.Sum();
  XSCHED_CALL(cublas, cublasDestroy, handle);
  return sum;
}

double Convolution(const Device& device, CUstream stream) {
  constexpr int kBatch = 8, kChannels = 16, kFilters = 32, kSide = 64;
  Library cudnn("libcudnn.so." + std::to_string(CUDNN_MAJOR));
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t in, out;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  XSCHED_CALL(cudnn, cudnnCreate, &handle);
  XSCHED_CALL(cudnn, cudnnSetStream, handle, stream);
  XSCHED_CALL(cudnn, cudnnCreateTensorDescriptor, &in);
  XSCHED_CALL(cudnn, cudnnCreateTensorDescriptor, &out);
  XSCHED_CALL(cudnn, cudnnCreateFilterDescriptor, &filter);
  XSCHED_CALL(cudnn, cudnnCreateConvolutionDescriptor, &convolution);
  XSCHED_CALL(cudnn, cudnnSetTensor4dDescriptor, in, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kBatch, kChannels,
              kSide, kSide);
  XSCHED_CALL(cudnn, cudnnSetTensor4dDescriptor, out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kBatch, kFilters,
              kSide, kSide);
  XSCHED_CALL(cudnn, cudnnSetFilter4dDescriptor, filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, kFilters,
              kChannels, 3, 3);
  XSCHED_CALL(cudnn, cudnnSetConvolution2dDescriptor, convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
              CUDNN_DATA_FLOAT);
  DeviceArray x(device.driver(), Pattern(kBatch * kChannels * kSide * kSide));
  DeviceArray w(device.driver(), Pattern(kFilters * kChannels * 9));
  DeviceArray y(device.driver(), Pattern(kBatch * kFilters * kSide * kSide));
  const float one = 1, zero = 0;
  for (int i = 0; i < 50; ++i) {
    XSCHED_CALL(cudnn, cudnnConvolutionForward, handle, &one, in, x.get(), filter, w.get(), convolution,
                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, size_t{0}, &zero, out, y.get());
  }
  device.Synchronize(stream);
  double sum = y.Sum();
  XSCHED_CALL(cudnn, cudnnDestroy, handle);
  return sum;
}

}  // namespace
}  // namespace xsched::bench

int main() {
  using namespace xsched::bench;
  try {
    Device device;
    CUstream stream = device.NewStream();
    double product = Product(device, stream);
    double convolution = Convolution(device, stream);
    std::printf("%s\n", nlohmann::json{{"sums", {product, convolution}}}.dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "library_check: %s\n", error.what());
    return 1;
  }
  return 0;
}
