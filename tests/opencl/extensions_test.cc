// Functions of extensions, which each vendor's platform has for itself.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "fake_driver.h"
#include "xqueues.h"

namespace xsched::testing {
namespace {

using Enqueue = cl_int(CL_API_CALL*)(cl_uint, cl_command_queue*, cl_command_buffer_khr, cl_uint,
                                     const cl_event*, cl_event*);

using Create = cl_command_buffer_khr(CL_API_CALL*)(cl_uint, const cl_command_queue*,
                                                   const cl_command_buffer_properties_khr*, cl_int*);
using Count = cl_int(CL_API_CALL*)(cl_command_buffer_khr);

// Two vendors' functions for command buffers. Each knows its own objects only.
template <int kVendor>
struct Vendor {
  static inline cl_command_queue recorded_for = nullptr;
  static inline int asked = 0;

  static cl_platform_id platform() { return reinterpret_cast<cl_platform_id>(kVendor); }
  static cl_command_buffer_khr buffer() { return reinterpret_cast<cl_command_buffer_khr>(kVendor); }

  static cl_int CL_API_CALL Enqueue(cl_uint, cl_command_queue*, cl_command_buffer_khr, cl_uint,
                                    const cl_event*, cl_event*) {
    return CL_SUCCESS;
  }
  static cl_command_buffer_khr CL_API_CALL Make(cl_uint, const cl_command_queue*,
                                                const cl_command_buffer_properties_khr*, cl_int*) {
    return buffer();
  }
  static cl_int CL_API_CALL CountReference(cl_command_buffer_khr) { return CL_SUCCESS; }
  static cl_int CL_API_CALL Info(cl_command_buffer_khr asked_for, cl_command_buffer_info_khr, size_t,
                                 void* out, size_t* size) {
    if (asked_for != buffer()) return CL_INVALID_COMMAND_BUFFER_KHR;
    ++asked;
    *static_cast<cl_command_queue*>(out) = recorded_for;
    *size = sizeof recorded_for;
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL Free(cl_command_queue, cl_uint, void**, void*, void*, cl_uint, const cl_event*,
                                 cl_event*) {
    return CL_SUCCESS;
  }
  static void Offer(const char* name, void* function) {
    FakeDriver::Extensions()[{platform(), name}] = function;
  }
  static void* LookUp(const char* name) {
    return FakeDriver::UnderTheShim().clGetExtensionFunctionAddressForPlatform(platform(), name);
  }
};

template <int kVendor>
void OfferCommandBuffers() {
  using Of = Vendor<kVendor>;
  Of::recorded_for = FakeDriver::UnderTheShim().clCreateCommandQueue(nullptr, nullptr, 0, nullptr);
  Of::Offer("clEnqueueCommandBufferKHR", reinterpret_cast<void*>(&Of::Enqueue));
  Of::Offer("clGetCommandBufferInfoKHR", reinterpret_cast<void*>(&Of::Info));
}

template <int kVendor>
void ExpectCounted(void* enqueue) {
  using Of = Vendor<kVendor>;
  const int before = Of::asked;
  EXPECT_EQ(reinterpret_cast<Enqueue>(enqueue)(0, nullptr, Of::buffer(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(Of::asked, before + 1) << "only the vendor knows its command buffer";
  EXPECT_EQ(Launched(Of::recorded_for), 1);
}

TEST(Extensions, a_command_buffer_is_asked_for_its_queues_by_its_own_vendors_function) {
  OfferCommandBuffers<1>();
  OfferCommandBuffers<2>();
  void* first = Vendor<1>::LookUp("clEnqueueCommandBufferKHR");
  void* second = Vendor<2>::LookUp("clEnqueueCommandBufferKHR");
  ASSERT_NE(first, second);
  ExpectCounted<1>(first);
  ExpectCounted<2>(second);
}

// A vendor without command buffers was met first, by another extension.
TEST(Extensions, functions_of_two_vendors_for_different_extensions_do_not_mix) {
  Vendor<3>::Offer("clEnqueueSVMFreeARM", reinterpret_cast<void*>(&Vendor<3>::Free));
  Vendor<3>::Offer("clGetCommandBufferInfoKHR", reinterpret_cast<void*>(&Vendor<3>::Info));
  OfferCommandBuffers<4>();
  Vendor<3>::LookUp("clEnqueueSVMFreeARM");
  ExpectCounted<4>(Vendor<4>::LookUp("clEnqueueCommandBufferKHR"));
}

// A handle may be another command buffer's after the last release.
TEST(Extensions, a_command_buffer_is_not_asked_for_its_queues_until_its_last_release) {
  using Of = Vendor<5>;
  OfferCommandBuffers<5>();
  Of::Offer("clCreateCommandBufferKHR", reinterpret_cast<void*>(&Of::Make));
  Of::Offer("clRetainCommandBufferKHR", reinterpret_cast<void*>(&Of::CountReference));
  Of::Offer("clReleaseCommandBufferKHR", reinterpret_cast<void*>(&Of::CountReference));
  const auto create = reinterpret_cast<Create>(Of::LookUp("clCreateCommandBufferKHR"));
  const auto retain = reinterpret_cast<Count>(Of::LookUp("clRetainCommandBufferKHR"));
  const auto release = reinterpret_cast<Count>(Of::LookUp("clReleaseCommandBufferKHR"));
  const auto enqueue = reinterpret_cast<Enqueue>(Of::LookUp("clEnqueueCommandBufferKHR"));
  const auto launch = [&] { EXPECT_EQ(enqueue(0, nullptr, Of::buffer(), 0, nullptr, nullptr), CL_SUCCESS); };
  ASSERT_EQ(create(1, &Of::recorded_for, nullptr, nullptr), Of::buffer());
  launch();
  retain(Of::buffer());
  release(Of::buffer());
  launch();
  EXPECT_EQ(Of::asked, 0);
  EXPECT_EQ(Launched(Of::recorded_for), 2);
  release(Of::buffer());
  launch();
  EXPECT_EQ(Of::asked, 1);
}

}  // namespace
}  // namespace xsched::testing

int main(int argc, char** argv) {
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  setenv("XSCHED_SCHEDULER", "APP", 1);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
