#include "platforms/opencl/probe.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/doctor/child_process.h"
#include "cli/json_text.h"
#include "platforms/opencl/doctor.h"
#include "xsched/types.h"

namespace xsched::cli::opencl {
namespace {

using nlohmann::json;

// True if the queue has an XQueue, by the shim's own libraries, which the layer has loaded.
bool HasXQueue(void* library, cl_platform_id platform, cl_device_id device) {
  auto create_context = reinterpret_cast<decltype(&clCreateContext)>(dlsym(library, "clCreateContext"));
  auto create_queue =
      reinterpret_cast<decltype(&clCreateCommandQueue)>(dlsym(library, "clCreateCommandQueue"));
  cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                        reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int error;
  cl_context context = create_context(properties, 1, &device, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) return false;
  cl_command_queue queue = create_queue(context, device, 0, &error);
  if (error != CL_SUCCESS) return false;
  void* hal = dlopen("libhalopencl.so.2", RTLD_NOW | RTLD_NOLOAD);
  void* preempt = dlopen("libpreempt.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (hal == nullptr || preempt == nullptr) return false;
  auto ocl_queue_get =
      reinterpret_cast<XResult (*)(HwQueueHandle*, cl_command_queue)>(dlsym(hal, "OclQueueGet"));
  auto xqueue_get = reinterpret_cast<XResult (*)(XQueueHandle*, HwQueueHandle)>(dlsym(preempt, "XQueueGet"));
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  return ocl_queue_get != nullptr && xqueue_get != nullptr && ocl_queue_get(&hwq, queue) == kXSchedSuccess &&
         xqueue_get(&xqueue, hwq) == kXSchedSuccess;
}

json Answer(bool with_layer) {
  json answer = {{"loader", false}, {"devices", json::array()}, {"layer", false}};
  void* library = dlopen(kLoader, RTLD_NOW);
  if (library == nullptr) return answer;
  answer["loader"] = true;
  auto get_platforms = reinterpret_cast<decltype(&clGetPlatformIDs)>(dlsym(library, "clGetPlatformIDs"));
  auto get_devices = reinterpret_cast<decltype(&clGetDeviceIDs)>(dlsym(library, "clGetDeviceIDs"));
  auto platform_info = reinterpret_cast<decltype(&clGetPlatformInfo)>(dlsym(library, "clGetPlatformInfo"));
  auto device_info = reinterpret_cast<decltype(&clGetDeviceInfo)>(dlsym(library, "clGetDeviceInfo"));
  cl_platform_id platforms[16];
  cl_uint platform_count = 0;
  if (get_platforms(16, platforms, &platform_count) != CL_SUCCESS) return answer;
  for (cl_uint p = 0; p < platform_count; ++p) {
    char platform_name[256] = "";
    platform_info(platforms[p], CL_PLATFORM_NAME, sizeof platform_name, platform_name, nullptr);
    cl_device_id devices[32];
    cl_uint device_count = 0;
    if (get_devices(platforms[p], CL_DEVICE_TYPE_ALL, 32, devices, &device_count) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < device_count; ++d) {
      char device_name[256] = "";
      device_info(devices[d], CL_DEVICE_NAME, sizeof device_name, device_name, nullptr);
      answer["devices"].push_back({platform_name, device_name});
      if (with_layer && !answer["layer"].get<bool>())
        answer["layer"] = HasXQueue(library, platforms[p], devices[d]);
    }
  }
  return answer;
}

}  // namespace

ProbeResult Probe(const std::string& shim) {
  ProbeResult result;
  std::optional<std::string> text = InChild([&] {
    if (!shim.empty()) {
      setenv(kLayers, shim.c_str(), 1);
      setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
      setenv("XSCHED_SCHEDULER", "APP", 1);
      unsetenv("XSCHED_POLICY");
    }
    return JsonText(Answer(!shim.empty()), -1);
  });
  if (!text) {
    result.error = "OpenCL crashed or hung while it was asked for its devices";
    return result;
  }
  json answer = json::parse(*text);
  result.loader = answer["loader"];
  result.layer_works = answer["layer"];
  for (const json& device : answer["devices"]) result.devices.push_back({device[0], device[1]});
  return result;
}

}  // namespace xsched::cli::opencl
