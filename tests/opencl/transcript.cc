// Uses OpenCL in many ways and prints everything that it sees: results, return codes, states of events,
// reference counts. The transcript must be the same natively, under the layer and preloaded
// (compare_transcripts.py).
//
//   transcript [--dlopen]     --dlopen: functions are not linked, but looked up
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

bool use_dlopen = false;

void* Lookup(const char* name) {
  static void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return dlsym(library, name);
}

// Calls a function by link or by lookup.
#define CL(name) (use_dlopen ? reinterpret_cast<decltype(&name)>(Lookup(#name)) : &name)

void Say(const std::string& what) { std::printf("%s\n", what.c_str()); }
void Say(const std::string& what, long value) { std::printf("%s: %ld\n", what.c_str(), value); }

constexpr size_t kCount = 4096;
constexpr size_t kBytes = kCount * sizeof(int);

struct Setup {
  cl_platform_id platform{};
  cl_device_id device{};
  cl_context context{};
  cl_program program{};
  // Kept to the end: PoCL 3.1 still uses a context for a moment after the last blocking call on it has
  // returned.
  std::vector<cl_context> other_contexts;
  std::vector<cl_device_id> sub_devices;

  Setup() {
    CL(clGetPlatformIDs)(1, &platform, nullptr);
    CL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
    cl_int error;
    context = CL(clCreateContext)(nullptr, 1, &device, nullptr, nullptr, &error);
    Say("context", error);
    const char* source =
        "__kernel void add(__global int* data, int n) { data[get_global_id(0)] += n; }\n"
        "__kernel void twice(__global int* data) { data[get_global_id(0)] *= 2; }\n";
    program = CL(clCreateProgramWithSource)(context, 1, &source, nullptr, &error);
    Say("build", CL(clBuildProgram)(program, 1, &device, "", nullptr, nullptr));
  }
  ~Setup() {
    for (cl_context other : other_contexts) Say("release context", CL(clReleaseContext)(other));
    for (cl_device_id part : sub_devices) Say("release device", CL(clReleaseDevice)(part));
    Say("release program", CL(clReleaseProgram)(program));
    Say("release context", CL(clReleaseContext)(context));
  }

  cl_command_queue Queue(cl_command_queue_properties properties) const {
    cl_int error;
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
    cl_command_queue queue = CL(clCreateCommandQueueWithProperties)(context, device, list, &error);
    Say("queue", error);
    return queue;
  }
  cl_kernel Kernel(const char* name) const { return CL(clCreateKernel)(program, name, nullptr); }
  cl_mem Buffer() const {
    std::vector<int> data(kCount);
    std::iota(data.begin(), data.end(), 0);
    return CL(clCreateBuffer)(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, kBytes, data.data(),
                              nullptr);
  }
};

// Only for a queue without work: commands in flight count as references, until the runtime drops them at any
// time.
void SayReferences(cl_command_queue queue) {
  cl_uint count = 0;
  CL(clGetCommandQueueInfo)(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr);
  Say("references", count);
}

void SaySum(cl_command_queue queue, cl_mem buffer) {
  std::vector<int> data(kCount);
  Say("read", CL(clEnqueueReadBuffer)(queue, buffer, CL_TRUE, 0, kBytes, data.data(), 0, nullptr, nullptr));
  Say("sum", std::accumulate(data.begin(), data.end(), 0L));
}

void KernelsCopiesFillsAndMaps(const Setup& cl) {
  Say("== kernels, copies, fills, maps");
  cl_command_queue queue = cl.Queue(0);
  cl_mem a = cl.Buffer();
  cl_mem b = cl.Buffer();
  cl_kernel add = cl.Kernel("add");
  int n = 3;
  CL(clSetKernelArg)(add, 0, sizeof a, &a);
  CL(clSetKernelArg)(add, 1, sizeof n, &n);
  for (int i = 0; i < 50; ++i) {
    cl_int error = CL(clEnqueueNDRangeKernel)(queue, add, 1, nullptr, &kCount, nullptr, 0, nullptr, nullptr);
    if (error != CL_SUCCESS) Say("kernel", error);
  }
  SaySum(queue, a);
  Say("copy", CL(clEnqueueCopyBuffer)(queue, a, b, 0, 0, kBytes, 0, nullptr, nullptr));
  int pattern = 7;
  Say("fill",
      CL(clEnqueueFillBuffer)(queue, b, &pattern, sizeof pattern, 0, kBytes / 2, 0, nullptr, nullptr));
  SaySum(queue, b);
  cl_int error;
  auto* mapped = static_cast<int*>(CL(clEnqueueMapBuffer)(queue, b, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                          kBytes, 0, nullptr, nullptr, &error));
  Say("map", error);
  mapped[0] += 100;
  Say("unmap", CL(clEnqueueUnmapMemObject)(queue, b, mapped, 0, nullptr, nullptr));
  SaySum(queue, b);
  cl_buffer_region region{kBytes / 2, kBytes / 4};
  cl_mem sub = CL(clCreateSubBuffer)(b, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  Say("sub-buffer", error);
  cl_kernel twice = cl.Kernel("twice");
  size_t quarter = kCount / 4;
  CL(clSetKernelArg)(twice, 0, sizeof sub, &sub);
  Say("twice", CL(clEnqueueNDRangeKernel)(queue, twice, 1, nullptr, &quarter, nullptr, 0, nullptr, nullptr));
  SaySum(queue, b);
  Say("finish", CL(clFinish)(queue));
  CL(clReleaseMemObject)(sub);
  CL(clReleaseKernel)(add);
  CL(clReleaseKernel)(twice);
  CL(clReleaseMemObject)(a);
  CL(clReleaseMemObject)(b);
  Say("release queue", CL(clReleaseCommandQueue)(queue));
}

std::atomic<int> callbacks{0};
void CL_CALLBACK CountCallback(cl_event, cl_int status, void*) {
  callbacks += status == CL_COMPLETE ? 1 : 1000;
}

void Events(const Setup& cl) {
  Say("== events: user, across queues, callbacks, profiling");
  cl_command_queue first = cl.Queue(CL_QUEUE_PROFILING_ENABLE);
  cl_command_queue second = cl.Queue(CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  cl_mem buffer = cl.Buffer();
  cl_kernel add = cl.Kernel("add");
  int n = 1;
  CL(clSetKernelArg)(add, 0, sizeof buffer, &buffer);
  CL(clSetKernelArg)(add, 1, sizeof n, &n);
  cl_int error;
  cl_event go = CL(clCreateUserEvent)(cl.context, &error);
  Say("user event", error);
  cl_event events[4] = {};
  CL(clEnqueueNDRangeKernel)(first, add, 1, nullptr, &kCount, nullptr, 1, &go, &events[0]);
  CL(clEnqueueNDRangeKernel)(second, add, 1, nullptr, &kCount, nullptr, 1, &events[0], &events[1]);
  CL(clEnqueueNDRangeKernel)(first, add, 1, nullptr, &kCount, nullptr, 1, &events[1], &events[2]);
  Say("marker", CL(clEnqueueMarkerWithWaitList)(second, 1, &events[2], &events[3]));
  for (cl_event event : events)
    Say("callback", CL(clSetEventCallback)(event, CL_COMPLETE, CountCallback, nullptr));
  CL(clFlush)(first);
  CL(clFlush)(second);
  cl_int status;
  CL(clGetEventInfo)(events[3], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  Say("waits for the user event", status > CL_COMPLETE);
  Say("set user event", CL(clSetUserEventStatus)(go, CL_COMPLETE));
  Say("wait", CL(clWaitForEvents)(1, &events[3]));
  for (cl_event event : events) {
    CL(clGetEventInfo)(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    Say("status", status);
    cl_command_type type;
    CL(clGetEventInfo)(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr);
    Say("type", type);
  }
  cl_ulong queued = 0, submitted = 0, started = 0, ended = 0;
  Say("profiling", CL(clGetEventProfilingInfo)(events[0], CL_PROFILING_COMMAND_QUEUED, 8, &queued, nullptr));
  CL(clGetEventProfilingInfo)(events[0], CL_PROFILING_COMMAND_SUBMIT, 8, &submitted, nullptr);
  CL(clGetEventProfilingInfo)(events[0], CL_PROFILING_COMMAND_START, 8, &started, nullptr);
  CL(clGetEventProfilingInfo)(events[0], CL_PROFILING_COMMAND_END, 8, &ended, nullptr);
  Say("times are in order", queued <= submitted && submitted <= started && started < ended);
  for (int i = 0; i < 2000 && callbacks != 4; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Say("callbacks", callbacks);
  SaySum(first, buffer);
  for (cl_event event : events) CL(clReleaseEvent)(event);
  CL(clReleaseEvent)(go);
  CL(clReleaseKernel)(add);
  CL(clReleaseMemObject)(buffer);
  Say("retain", CL(clRetainCommandQueue)(first));
  Say("release", CL(clReleaseCommandQueue)(first));
  Say("release", CL(clReleaseCommandQueue)(first));
  Say("release", CL(clReleaseCommandQueue)(second));
}

void CL_CALLBACK NativeKernel(void* arguments) {
  int* data;
  std::memcpy(&data, arguments, sizeof data);
  data[0] = 42;
}

void NativeKernelsAndOldFunctions(const Setup& cl) {
  Say("== native kernels, OpenCL 1.x functions");
  cl_int error;
  cl_command_queue queue = CL(clCreateCommandQueue)(cl.context, cl.device, 0, &error);
  Say("queue", error);
  cl_mem buffer = cl.Buffer();
  struct {
    cl_mem memory;
  } arguments{buffer};
  const void* location = &arguments.memory;
  Say("native kernel", CL(clEnqueueNativeKernel)(queue, NativeKernel, &arguments, sizeof arguments, 1,
                                                 &buffer, &location, 0, nullptr, nullptr));
  SaySum(queue, buffer);
  cl_event event = nullptr;
  Say("old marker", CL(clEnqueueMarker)(queue, &event));
  Say("old barrier", CL(clEnqueueBarrier)(queue));
  Say("migrate", CL(clEnqueueMigrateMemObjects)(queue, 1, &buffer, 0, 0, nullptr, nullptr));
  Say("finish", CL(clFinish)(queue));
  CL(clReleaseEvent)(event);
  CL(clReleaseMemObject)(buffer);
  Say("release", CL(clReleaseCommandQueue)(queue));
}

void Mistakes(const Setup& cl) {
  Say("== mistakes");
  cl_command_queue queue = cl.Queue(0);
  cl_mem buffer = cl.Buffer();
  cl_kernel add = cl.Kernel("add");
  int data[4];
  Say("null queue", CL(clFinish)(nullptr));
  Say("null queue",
      CL(clEnqueueNDRangeKernel)(nullptr, add, 1, nullptr, &kCount, nullptr, 0, nullptr, nullptr));
  Say("arguments not set",
      CL(clEnqueueNDRangeKernel)(queue, add, 1, nullptr, &kCount, nullptr, 0, nullptr, nullptr));
  Say("dimension 4",
      CL(clEnqueueNDRangeKernel)(queue, add, 4, nullptr, &kCount, nullptr, 0, nullptr, nullptr));
  Say("beyond the end",
      CL(clEnqueueReadBuffer)(queue, buffer, CL_TRUE, kBytes, 16, data, 0, nullptr, nullptr));
  Say("no host pointer",
      CL(clEnqueueReadBuffer)(queue, buffer, CL_TRUE, 0, 16, nullptr, 0, nullptr, nullptr));
  Say("no wait list", CL(clEnqueueReadBuffer)(queue, buffer, CL_TRUE, 0, 16, data, 2, nullptr, nullptr));
  cl_int error = 0;
  CL(clEnqueueMapBuffer)(queue, buffer, CL_TRUE, CL_MAP_READ, kBytes, 16, 0, nullptr, nullptr, &error);
  Say("map beyond the end", error);
  Say("release nothing", CL(clReleaseCommandQueue)(nullptr));
  CL(clCreateCommandQueueWithProperties)(nullptr, cl.device, nullptr, &error);
  Say("no context", error);
  Say("still works", CL(clFinish)(queue));
  SaySum(queue, buffer);
  CL(clReleaseKernel)(add);
  CL(clReleaseMemObject)(buffer);
  CL(clReleaseCommandQueue)(queue);
}

void ExtensionLookup(const Setup& cl) {
  Say("== extension lookup");
  auto found = CL(clGetExtensionFunctionAddressForPlatform)(cl.platform, "clNoSuchFunctionXYZ");
  Say("unknown", found != nullptr);
  auto icd = CL(clGetExtensionFunctionAddress)("clIcdGetPlatformIDsKHR");
  Say("clIcdGetPlatformIDsKHR", icd != nullptr);
}

void QueuesComeAndGo(const Setup& cl) {
  Say("== queues come and go");
  cl_command_queue queue = cl.Queue(0);
  SayReferences(queue);
  Say("retain", CL(clRetainCommandQueue)(queue));
  SayReferences(queue);
  Say("release", CL(clReleaseCommandQueue)(queue));
  SayReferences(queue);
  cl_mem buffer = cl.Buffer();
  std::vector<int> data(kCount, 3);
  cl_event written;
  Say("write",
      CL(clEnqueueWriteBuffer)(queue, buffer, CL_FALSE, 0, kBytes, data.data(), 0, nullptr, &written));
  Say("release with work", CL(clReleaseCommandQueue)(queue));
  Say("wait", CL(clWaitForEvents)(1, &written));
  CL(clReleaseEvent)(written);
  cl_command_queue other = cl.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  SaySum(other, buffer);
  Say("release", CL(clReleaseCommandQueue)(other));
  CL(clReleaseMemObject)(buffer);
}

// A ring of queues. Each waits for the one before it.
void EventsAcrossManyQueues(const Setup& cl) {
  Say("== events across many queues");
  constexpr size_t kQueues = 4;
  cl_command_queue queues[kQueues];
  for (size_t i = 0; i < kQueues; ++i)
    queues[i] = cl.Queue(i % 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
  cl_mem buffer = cl.Buffer();
  cl_kernel add = cl.Kernel("add");
  CL(clSetKernelArg)(add, 0, sizeof buffer, &buffer);
  cl_event last = nullptr;
  for (int i = 0; i < 200; ++i) {
    cl_command_queue queue = queues[static_cast<size_t>(i) % kQueues];
    cl_event next;
    CL(clSetKernelArg)(add, 1, sizeof i, &i);
    bool by_barrier = i % 3 == 0 && last != nullptr;
    if (by_barrier) CL(clEnqueueBarrierWithWaitList)(queue, 1, &last, nullptr);
    cl_uint waits = last == nullptr || by_barrier ? 0 : 1;
    CL(clEnqueueNDRangeKernel)
    (queue, add, 1, nullptr, &kCount, nullptr, waits, waits ? &last : nullptr, &next);
    CL(clFlush)(queue);
    if (last != nullptr) CL(clReleaseEvent)(last);
    last = next;
  }
  Say("wait", CL(clWaitForEvents)(1, &last));
  SaySum(queues[0], buffer);
  CL(clReleaseEvent)(last);
  CL(clReleaseKernel)(add);
  CL(clReleaseMemObject)(buffer);
  for (cl_command_queue queue : queues) Say("release", CL(clReleaseCommandQueue)(queue));
}

void SubDevicesAndContexts(Setup& cl) {
  Say("== sub-devices, each with a context");
  const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_device_id parts[64];
  cl_uint count = 0;
  Say("partition", CL(clCreateSubDevices)(cl.device, equally, 64, parts, &count));
  for (cl_uint i = 0; i < count; ++i) {
    cl_int error;
    cl_context context = CL(clCreateContext)(nullptr, 1, &parts[i], nullptr, nullptr, &error);
    Say("context", error);
    cl_command_queue queue = CL(clCreateCommandQueue)(context, parts[i], 0, &error);
    Say("queue", error);
    cl_mem buffer = CL(clCreateBuffer)(context, CL_MEM_READ_WRITE, kBytes, nullptr, &error);
    const int nine = 9;
    Say("fill", CL(clEnqueueFillBuffer)(queue, buffer, &nine, sizeof nine, 0, kBytes, 0, nullptr, nullptr));
    SaySum(queue, buffer);
    CL(clReleaseMemObject)(buffer);
    Say("release", CL(clReleaseCommandQueue)(queue));
    cl.other_contexts.push_back(context);
    cl.sub_devices.push_back(parts[i]);
  }
}

void RectanglesAndImages(const Setup& cl) {
  Say("== rectangles, images");
  cl_command_queue queue = cl.Queue(0);
  cl_mem buffer = cl.Buffer();
  const size_t origin[] = {0, 0, 0};
  const size_t corner[] = {64, 4, 0};
  const size_t part[] = {32, 4, 1};
  std::vector<int> data(kCount, -1);
  Say("copy", CL(clEnqueueCopyBufferRect)(queue, buffer, buffer, origin, corner, part, 128, 0, 128, 0, 0,
                                          nullptr, nullptr));
  Say("read", CL(clEnqueueReadBufferRect)(queue, buffer, CL_TRUE, corner, origin, part, 128, 0, 64, 0,
                                          data.data(), 0, nullptr, nullptr));
  Say("write", CL(clEnqueueWriteBufferRect)(queue, buffer, CL_TRUE, origin, corner, part, 64, 0, 256, 0,
                                            data.data(), 0, nullptr, nullptr));
  SaySum(queue, buffer);
  const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc description{};
  description.image_type = CL_MEM_OBJECT_IMAGE2D;
  description.image_width = description.image_height = 64;
  cl_int error;
  cl_mem image = CL(clCreateImage)(cl.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
  Say("image", error);
  cl_mem other = CL(clCreateImage)(cl.context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
  const size_t all[] = {64, 64, 1};
  const size_t tile[] = {8, 8, 1};
  const cl_uint color[] = {1, 2, 3, 4};
  Say("write",
      CL(clEnqueueWriteImage)(queue, image, CL_TRUE, origin, all, 0, 0, data.data(), 0, nullptr, nullptr));
  Say("fill", CL(clEnqueueFillImage)(queue, other, color, origin, all, 0, nullptr, nullptr));
  Say("copy", CL(clEnqueueCopyImage)(queue, image, other, origin, tile, tile, 0, nullptr, nullptr));
  Say("to buffer", CL(clEnqueueCopyImageToBuffer)(queue, other, buffer, origin, all, 0, 0, nullptr, nullptr));
  SaySum(queue, buffer);
  Say("to image", CL(clEnqueueCopyBufferToImage)(queue, buffer, image, 0, origin, all, 0, nullptr, nullptr));
  Say("read",
      CL(clEnqueueReadImage)(queue, image, CL_TRUE, origin, all, 0, 0, data.data(), 0, nullptr, nullptr));
  Say("sum", std::accumulate(data.begin(), data.end(), 0L));
  size_t pitch = 0;
  void* mapped = CL(clEnqueueMapImage)(queue, image, CL_TRUE, CL_MAP_READ, origin, tile, &pitch, nullptr, 0,
                                       nullptr, nullptr, &error);
  Say("map", error);
  Say("pitch", static_cast<long>(pitch));
  Say("unmap", CL(clEnqueueUnmapMemObject)(queue, image, mapped, 0, nullptr, nullptr));
  Say("finish", CL(clFinish)(queue));
  for (cl_mem memory : {buffer, image, other}) CL(clReleaseMemObject)(memory);
  Say("release", CL(clReleaseCommandQueue)(queue));
}

void SharedVirtualMemory(const Setup& cl) {
  Say("== shared virtual memory");
  cl_command_queue queue = cl.Queue(0);
  auto* a = static_cast<int*>(CL(clSVMAlloc)(cl.context, CL_MEM_READ_WRITE, kBytes, 0));
  auto* b = static_cast<int*>(CL(clSVMAlloc)(cl.context, CL_MEM_READ_WRITE, kBytes, 0));
  Say("allocated", a != nullptr && b != nullptr);
  if (a != nullptr && b != nullptr) {
    const int nine = 9;
    Say("fill", CL(clEnqueueSVMMemFill)(queue, a, &nine, sizeof nine, kBytes, 0, nullptr, nullptr));
    Say("copy", CL(clEnqueueSVMMemcpy)(queue, CL_TRUE, b, a, kBytes, 0, nullptr, nullptr));
    Say("map", CL(clEnqueueSVMMap)(queue, CL_TRUE, CL_MAP_READ, b, kBytes, 0, nullptr, nullptr));
    Say("sum", std::accumulate(b, b + kCount, 0L));
    Say("unmap", CL(clEnqueueSVMUnmap)(queue, b, 0, nullptr, nullptr));
    void* both[] = {a, b};
    Say("free", CL(clEnqueueSVMFree)(queue, 2, both, nullptr, nullptr, 0, nullptr, nullptr));
  }
  Say("finish", CL(clFinish)(queue));
  Say("release", CL(clReleaseCommandQueue)(queue));
}

template <typename Function>
bool LookUpExtension(const Setup& cl, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(CL(clGetExtensionFunctionAddressForPlatform)(cl.platform, name));
  Say(name, *function != nullptr);
  return *function != nullptr;
}

// Functions of extensions can only be looked up. The second and third launch name no queue.
void CommandBuffers(const Setup& cl) {
  Say("== command buffers");
  clCreateCommandBufferKHR_fn create;
  clCommandFillBufferKHR_fn fill;
  clFinalizeCommandBufferKHR_fn finalize;
  clEnqueueCommandBufferKHR_fn enqueue;
  clReleaseCommandBufferKHR_fn release;
  if (!LookUpExtension(cl, "clCreateCommandBufferKHR", &create) ||
      !LookUpExtension(cl, "clCommandFillBufferKHR", &fill) ||
      !LookUpExtension(cl, "clFinalizeCommandBufferKHR", &finalize) ||
      !LookUpExtension(cl, "clEnqueueCommandBufferKHR", &enqueue) ||
      !LookUpExtension(cl, "clReleaseCommandBufferKHR", &release)) {
    return;
  }
  cl_command_queue queue = cl.Queue(0);
  cl_mem buffer = cl.Buffer();
  cl_int error;
  cl_command_buffer_khr commands = create(1, &queue, nullptr, &error);
  Say("made", error);
  const int eleven = 11;
  cl_sync_point_khr filled;
  Say("fill",
      fill(commands, nullptr, buffer, &eleven, sizeof eleven, 0, kBytes, 0, nullptr, &filled, nullptr));
  Say("finalize", finalize(commands));
  for (cl_uint queues : {1u, 0u, 0u}) {
    Say("enqueue", enqueue(queues, queues ? &queue : nullptr, commands, 0, nullptr, nullptr));
    SaySum(queue, buffer);
  }
  Say("release", release(commands));
  CL(clReleaseMemObject)(buffer);
  Say("release", CL(clReleaseCommandQueue)(queue));
}

// PoCL 3.1 crashes natively when threads create and release kernels of one program at the same time. So the
// threads only launch here.
void ManyThreads(const Setup& cl) {
  Say("== threads, each with a queue");
  constexpr int kThreads = 4;
  struct Work {
    cl_command_queue queue;
    cl_mem buffer;
    cl_kernel kernel;
  };
  std::vector<Work> works;
  int n = 1;
  for (int t = 0; t < kThreads; ++t) {
    Work work{cl.Queue(0), cl.Buffer(), cl.Kernel("add")};
    CL(clSetKernelArg)(work.kernel, 0, sizeof work.buffer, &work.buffer);
    CL(clSetKernelArg)(work.kernel, 1, sizeof n, &n);
    works.push_back(work);
  }
  std::atomic<long> total{0};
  std::vector<std::thread> threads;
  for (const Work& work : works) {
    threads.emplace_back([&work, &total] {
      for (int i = 0; i < 100; ++i) {
        CL(clEnqueueNDRangeKernel)
        (work.queue, work.kernel, 1, nullptr, &kCount, nullptr, 0, nullptr, nullptr);
      }
      std::vector<int> data(kCount);
      CL(clEnqueueReadBuffer)(work.queue, work.buffer, CL_TRUE, 0, kBytes, data.data(), 0, nullptr, nullptr);
      total += std::accumulate(data.begin(), data.end(), 0L);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Say("total", total);
  for (const Work& work : works) {
    CL(clReleaseKernel)(work.kernel);
    CL(clReleaseMemObject)(work.buffer);
    Say("release", CL(clReleaseCommandQueue)(work.queue));
  }
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);  // so that the lines before a crash are printed
  use_dlopen = argc > 1 && std::strcmp(argv[1], "--dlopen") == 0;
  Setup cl;
  KernelsCopiesFillsAndMaps(cl);
  Events(cl);
  NativeKernelsAndOldFunctions(cl);
  Mistakes(cl);
  ExtensionLookup(cl);
  QueuesComeAndGo(cl);
  EventsAcrossManyQueues(cl);
  SubDevicesAndContexts(cl);
  RectanglesAndImages(cl);
  SharedVirtualMemory(cl);
  CommandBuffers(cl);
  ManyThreads(cl);
  return 0;
}
