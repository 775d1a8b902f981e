// The ways in which programs find the driver's functions.
#include <dlfcn.h>
#include <string.h>

#include <string>

#include "fixture.h"

namespace xsched::cuda {
namespace {

struct Place {
  std::string library;
  std::string function;
};

Place PlaceOf(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return {};
  const char* slash = strrchr(info.dli_fname, '/');
  return {slash == nullptr ? info.dli_fname : slash + 1, info.dli_sname == nullptr ? "" : info.dli_sname};
}

bool IsWrapper(void* address, const std::string& name) {
  Place place = PlaceOf(address);
  return place.library.rfind("libshimcuda.so", 0) == 0 && place.function == name;
}

bool IsDrivers(void* address) { return PlaceOf(address).library.rfind("libcuda.so", 0) == 0; }

class Routes : public CudaProgram {
 protected:
  static void* Ask(const char* symbol, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(cuGetProcAddress_v2(symbol, &found, version, flags, &status), CUDA_SUCCESS) << symbol;
    return found;
  }
  static constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
};

TEST_F(Routes, a_direct_link_reaches_the_wrapper) {
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

TEST_F(Routes, dlsym_on_the_drivers_handle_yields_the_wrapper) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  ASSERT_NE(library, nullptr);
  EXPECT_TRUE(IsWrapper(dlsym(library, "cuLaunchKernel"), "cuLaunchKernel"));
  EXPECT_TRUE(IsWrapper(dlsym(library, "cuMemcpyHtoD_v2_ptds"), "cuMemcpyHtoD_v2_ptds"));
  EXPECT_TRUE(IsWrapper(dlsym(library, "cuGetProcAddress_v2"), "cuGetProcAddress_v2"));
}

TEST_F(Routes, dlsym_on_the_global_scope_yields_the_wrapper) {
  EXPECT_TRUE(IsWrapper(dlsym(RTLD_DEFAULT, "cuLaunchKernel"), "cuLaunchKernel"));
  EXPECT_TRUE(IsWrapper(dlsym(dlopen(nullptr, RTLD_LAZY), "cuLaunchKernel"), "cuLaunchKernel"));
}

TEST_F(Routes, dlsym_leaves_what_is_not_wrapped) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  EXPECT_TRUE(IsDrivers(dlsym(library, "cuInit")));
  EXPECT_EQ(dlsym(library, "cuNoSuchFunction"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
}

TEST_F(Routes, dlsym_leaves_another_librarys_lack_of_a_function) {
  void* c_library = dlopen("libc.so.6", RTLD_LAZY);
  EXPECT_EQ(dlsym(c_library, "cuLaunchKernel"), nullptr);
}

TEST_F(Routes, a_looked_up_function_is_scheduled) {
  CUstream stream = NewStream();
  auto set = reinterpret_cast<decltype(&cuMemsetD32Async)>(Ask("cuMemsetD32Async", 13000));
  ASSERT_EQ(set(memory_, 1, kCount, stream), CUDA_SUCCESS);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

TEST_F(Routes, a_version_asked_for_yields_the_wrapper_with_its_abi) {
  EXPECT_TRUE(IsWrapper(Ask("cuMemcpyBatchAsync", 13000), "cuMemcpyBatchAsync_v2"));
  EXPECT_TRUE(IsWrapper(Ask("cuMemcpyBatchAsync", 12080), "cuMemcpyBatchAsync"));
  EXPECT_TRUE(IsWrapper(Ask("cuMemPrefetchAsync", 12010), "cuMemPrefetchAsync"));
  EXPECT_TRUE(IsWrapper(Ask("cuMemPrefetchAsync", 12020), "cuMemPrefetchAsync_v2"));
  EXPECT_TRUE(IsWrapper(Ask("cuCtxSynchronize", 12080), "cuCtxSynchronize"));
  EXPECT_TRUE(IsWrapper(Ask("cuCtxSynchronize", 13000), "cuCtxSynchronize_v2"));
}

TEST_F(Routes, every_version_of_cuda_from_11_8_on_finds_what_it_launches_with) {
  for (int version : {11080, 12000, 12040, 12080, 12090, 13000}) {
    EXPECT_TRUE(IsWrapper(Ask("cuLaunchKernel", version), "cuLaunchKernel")) << version;
    EXPECT_TRUE(IsWrapper(Ask("cuGraphLaunch", version), "cuGraphLaunch")) << version;
    EXPECT_TRUE(IsWrapper(Ask("cuMemcpyHtoD", version), "cuMemcpyHtoD_v2")) << version;
    EXPECT_TRUE(IsWrapper(Ask("cuStreamSynchronize", version), "cuStreamSynchronize")) << version;
  }
}

TEST_F(Routes, the_per_thread_default_stream_has_wrappers_of_its_own) {
  EXPECT_TRUE(IsWrapper(Ask("cuLaunchKernel", 13000, kPerThread), "cuLaunchKernel_ptsz"));
  EXPECT_TRUE(IsWrapper(Ask("cuMemcpyHtoD", 13000, kPerThread), "cuMemcpyHtoD_v2_ptds"));
  EXPECT_TRUE(IsWrapper(Ask("cuMemcpyBatchAsync", 12080, kPerThread), "cuMemcpyBatchAsync_ptsz"));
  EXPECT_TRUE(IsWrapper(Ask("cuMemFree", 13000, kPerThread), "cuMemFree_v2")) << "one function for both";
}

TEST_F(Routes, the_function_that_looks_up_is_looked_up_as_well) {
  EXPECT_TRUE(IsWrapper(Ask("cuGetProcAddress", 11030), "cuGetProcAddress"));
  EXPECT_TRUE(IsWrapper(Ask("cuGetProcAddress", 12000), "cuGetProcAddress_v2"));
  void* found = nullptr;
  ASSERT_EQ(cuGetProcAddress("cuLaunchKernel", &found, 11080, 0), CUDA_SUCCESS);
  EXPECT_TRUE(IsWrapper(found, "cuLaunchKernel"));
}

TEST_F(Routes, what_is_not_wrapped_is_the_drivers_own) {
  EXPECT_TRUE(IsDrivers(Ask("cuDeviceGetCount", 13000)));
}

TEST_F(Routes, what_the_driver_refuses_stays_refused) {
  void* found = this;
  CUdriverProcAddressQueryResult status{};
  cuGetProcAddress_v2("cuMemcpyBatchAsync", &found, 12000, 0, &status);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

}  // namespace
}  // namespace xsched::cuda
