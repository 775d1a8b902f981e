// Copies and sets of all families. Each copies or fills a box of bytes, row by row.
#include <cstring>
#include <vector>

#include "context.h"
#include "driver.h"
#include "memory.h"
#include "stream.h"

namespace standin {
namespace {

struct Array {
  std::vector<unsigned char> bytes;
  size_t row_bytes, rows, slices;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
};

Array& ArrayOf(CUarray handle) { return *reinterpret_cast<Array*>(handle); }

// One side of a copy.
struct Place {
  unsigned char* start;
  size_t pitch;           // from row to row
  size_t slice;           // from slice to slice
  bool pageable = false;  // the program's ordinary memory: the driver goes through a buffer of its own
};
struct Extent {
  size_t width = 0, height = 1, depth = 1;
};

unsigned char* Bytes(const void* address) { return static_cast<unsigned char*>(const_cast<void*>(address)); }
unsigned char* Bytes(CUdeviceptr address) { return reinterpret_cast<unsigned char*>(address); }

Place Linear(CUdeviceptr address) { return {Bytes(address), 0, 0}; }
Place Linear(const void* address) { return {Bytes(address), 0, 0, !IsPinned(address)}; }  // REQUIRES TheLock
Place InArray(CUarray array, size_t offset) { return {ArrayOf(array).bytes.data() + offset, 0, 0}; }

void CopyBox(const Place& to, const Place& from, const Extent& extent) {
  for (size_t z = 0; z < extent.depth; ++z) {
    for (size_t y = 0; y < extent.height; ++y) {
      std::memmove(to.start + z * to.slice + y * to.pitch, from.start + z * from.slice + y * from.pitch,
                   extent.width);
    }
  }
}

// Takes the bytes of a pageable source now, because the program may overwrite it as soon as the call returns.
std::vector<Step> CopySteps(Place to, Place from, Extent extent, bool captured) {
  if (from.pageable && !captured) {
    auto staged = std::make_shared<std::vector<unsigned char>>(extent.width * extent.height * extent.depth);
    const Place buffer{staged->data(), extent.width, extent.width * extent.height};
    CopyBox(buffer, from, extent);
    return {{Step::Kind::kAction, [=] { CopyBox(to, buffer, extent), (void)staged; }}};
  }
  return {{Step::Kind::kAction, [=] { CopyBox(to, from, extent); }}};
}

// An asynchronous call. It waits nevertheless if the destination is pageable memory.
CUresult CopyAsync(CUstream handle, auto make_to, auto make_from, Extent extent) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  const Place to = make_to(), from = make_from();
  Work work{CU_GRAPH_NODE_TYPE_MEMCPY, CopySteps(to, from, extent, stream->capture != nullptr)};
  CommandPtr command;
  const CUresult result = Submit(lock, *stream, std::move(work), &command);
  return result == CUDA_SUCCESS && to.pageable && command != nullptr ? AwaitCommand(lock, command) : result;
}

// A synchronous call, on the default stream. Between two places on the device the host does not wait.
CUresult Copy(auto make_to, auto make_from, Extent extent, bool host_waits = true) {
  if (!host_waits) return CopyAsync(nullptr, make_to, make_from, extent);
  if (extent.width * extent.height * extent.depth == 0) return CUDA_SUCCESS;  // rules.h, nothing_to_copy
  Lock lock;
  return SubmitAndAwait(lock, nullptr,
                        {CU_GRAPH_NODE_TYPE_MEMCPY, CopySteps(make_to(), make_from(), extent, false)});
}

template <typename T>
CUresult SetAsync(CUdeviceptr start, size_t pitch, T value, size_t width, size_t height, CUstream stream) {
  if (start % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto act = [=] {
    for (size_t y = 0; y < height; ++y) {
      T* row = reinterpret_cast<T*>(start + y * pitch);
      for (size_t x = 0; x < width; ++x) row[x] = value;
    }
  };
  return SubmitTo(stream, {CU_GRAPH_NODE_TYPE_MEMSET, {{Step::Kind::kAction, act}}});
}

Place PlaceIn(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, size_t pitch,
              size_t height, size_t x, size_t y, size_t z) {
  Place place{};
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      place = Linear(host);
      break;
    case CU_MEMORYTYPE_ARRAY:
      place = InArray(array, 0);
      pitch = ArrayOf(array).row_bytes;
      height = ArrayOf(array).rows;
      break;
    default:
      place = Linear(device);
  }
  place.pitch = pitch;
  place.slice = pitch * height;
  place.start += z * place.slice + y * place.pitch + x;
  return place;
}

template <typename C>
Place To2D(const C& c) {
  return PlaceIn(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstPitch, 0, c.dstXInBytes, c.dstY,
                 0);
}
template <typename C>
Place From2D(const C& c) {
  return PlaceIn(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcPitch, 0, c.srcXInBytes, c.srcY,
                 0);
}
template <typename C>
Place To3D(const C& c) {
  return PlaceIn(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstPitch, c.dstHeight, c.dstXInBytes,
                 c.dstY, c.dstZ);
}
template <typename C>
Place From3D(const C& c) {
  return PlaceIn(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcPitch, c.srcHeight, c.srcXInBytes,
                 c.srcY, c.srcZ);
}

size_t BytesPerElement(CUarray_format format, unsigned channels) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2 * channels;
    default:
      return 4 * channels;
  }
}

// The operands of a batch, one place of the batch after the other, in one command.
CUresult CopyBatch(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count, CUstream handle) {
  Lock lock;
  if (count == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->kind == Stream::Kind::kLegacy) return CUDA_ERROR_INVALID_VALUE;  // documented: must not be
  std::vector<Step> steps;
  for (size_t i = 0; i < count; ++i) {
    for (Step& step : CopySteps(Linear(to[i]), Linear(from[i]), {sizes[i]}, stream->capture != nullptr)) {
      steps.push_back(std::move(step));
    }
  }
  return Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_MEMCPY, std::move(steps)});
}

CUresult Nothing(CUstream stream) { return SubmitTo(stream, {CU_GRAPH_NODE_TYPE_EMPTY, {}}); }

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) {
  const void *to_host = Bytes(to), *from_host = Bytes(from);
  return Copy([=] { return Linear(to_host); }, [=] { return Linear(from_host); }, {n});
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
  const void *to_host = Bytes(to), *from_host = Bytes(from);
  return CopyAsync(
      stream, [=] { return Linear(to_host); }, [=] { return Linear(from_host); }, {n});
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n) {
  return Copy([=] { return Linear(to); }, [=] { return Linear(from); }, {n}, false);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n,
                           CUstream stream) {
  return CopyAsync(
      stream, [=] { return Linear(to); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t n) {
  return Copy([=] { return Linear(to); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t n) {
  return Copy([=] { return Linear(to); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return Copy([=] { return Linear(to); }, [=] { return Linear(from); }, {n}, false);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t n, CUstream stream) {
  return CopyAsync(
      stream, [=] { return Linear(to); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t n, CUstream stream) {
  return CopyAsync(
      stream, [=] { return Linear(to); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
  return CopyAsync(
      stream, [=] { return Linear(to); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t n) {
  return Copy([=] { return InArray(to, offset); }, [=] { return Linear(from); }, {n}, false);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t n) {
  return Copy([=] { return Linear(to); }, [=] { return InArray(from, offset); }, {n}, false);
}
CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t n) {
  return Copy([=] { return InArray(to, offset); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t n) {
  return Copy([=] { return Linear(to); }, [=] { return InArray(from, offset); }, {n});
}
CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t n) {
  return Copy([=] { return InArray(to, to_offset); }, [=] { return InArray(from, from_offset); }, {n}, false);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t n, CUstream stream) {
  return CopyAsync(
      stream, [=] { return InArray(to, offset); }, [=] { return Linear(from); }, {n});
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t n, CUstream stream) {
  return CopyAsync(
      stream, [=] { return Linear(to); }, [=] { return InArray(from, offset); }, {n});
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* c) {
  return Copy([=] { return To2D(*c); }, [=] { return From2D(*c); }, {c->WidthInBytes, c->Height});
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* c) { return standin::cuMemcpy2D_v2(c); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream stream) {
  return CopyAsync(
      stream, [=] { return To2D(*c); }, [=] { return From2D(*c); }, {c->WidthInBytes, c->Height});
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* c) {
  return Copy([=] { return To3D(*c); }, [=] { return From3D(*c); }, {c->WidthInBytes, c->Height, c->Depth});
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* c, CUstream stream) {
  return CopyAsync(
      stream, [=] { return To3D(*c); }, [=] { return From3D(*c); }, {c->WidthInBytes, c->Height, c->Depth});
}
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* c) {
  return Copy([=] { return To3D(*c); }, [=] { return From3D(*c); }, {c->WidthInBytes, c->Height, c->Depth},
              false);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* c, CUstream stream) {
  return CopyAsync(
      stream, [=] { return To3D(*c); }, [=] { return From3D(*c); }, {c->WidthInBytes, c->Height, c->Depth});
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes*, size_t*, size_t, CUstream stream) {
  return CopyBatch(to, from, sizes, count, stream);
}
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                            CUmemcpyAttributes*, size_t*, size_t, size_t* failed, CUstream stream) {
  const CUresult result = CopyBatch(to, from, sizes, count, stream);
  if (result != CUDA_SUCCESS && failed != nullptr) *failed = SIZE_MAX;
  return result;
}

CUresult cuMemsetD8Async(CUdeviceptr start, unsigned char value, size_t n, CUstream stream) {
  return SetAsync(start, 0, value, n, 1, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr start, unsigned short value, size_t n, CUstream stream) {
  return SetAsync(start, 0, value, n, 1, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr start, unsigned int value, size_t n, CUstream stream) {
  return SetAsync(start, 0, value, n, 1, stream);
}
CUresult cuMemsetD2D8Async(CUdeviceptr start, size_t pitch, unsigned char value, size_t w, size_t h,
                           CUstream stream) {
  return SetAsync(start, pitch, value, w, h, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr start, size_t pitch, unsigned short value, size_t w, size_t h,
                            CUstream stream) {
  return SetAsync(start, pitch, value, w, h, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr start, size_t pitch, unsigned int value, size_t w, size_t h,
                            CUstream stream) {
  return SetAsync(start, pitch, value, w, h, stream);
}
// Sets of device memory do not make the host wait.
CUresult cuMemsetD8_v2(CUdeviceptr start, unsigned char value, size_t n) {
  return standin::cuMemsetD8Async(start, value, n, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr start, unsigned short value, size_t n) {
  return standin::cuMemsetD16Async(start, value, n, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr start, unsigned int value, size_t n) {
  return standin::cuMemsetD32Async(start, value, n, nullptr);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr start, size_t pitch, unsigned char value, size_t w, size_t h) {
  return standin::cuMemsetD2D8Async(start, pitch, value, w, h, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr start, size_t pitch, unsigned short value, size_t w, size_t h) {
  return standin::cuMemsetD2D16Async(start, pitch, value, w, h, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr start, size_t pitch, unsigned int value, size_t w, size_t h) {
  return standin::cuMemsetD2D32Async(start, pitch, value, w, h, nullptr);
}

// All devices can use all memory already.
CUresult cuMemPrefetchAsync_v2(CUdeviceptr, size_t, CUmemLocation, unsigned int, CUstream s) {
  return Nothing(s);
}
CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream stream) { return Nothing(stream); }
CUresult cuMemPrefetchBatchAsync(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t,
                                 unsigned long long, CUstream stream) {
  return Nothing(stream);
}
CUresult cuMemDiscardBatchAsync(CUdeviceptr*, size_t*, size_t, unsigned long long, CUstream s) {
  return Nothing(s);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t,
                                           unsigned long long, CUstream stream) {
  return Nothing(stream);
}

CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  auto* array = new Array;
  array->descriptor = *d;
  array->row_bytes = d->Width * BytesPerElement(d->Format, d->NumChannels);
  array->rows = d->Height ? d->Height : 1;
  array->slices = d->Depth ? d->Depth : 1;
  array->bytes.resize(array->row_bytes * array->rows * array->slices);
  *out = reinterpret_cast<CUarray>(array);
  return CUDA_SUCCESS;
}
CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  const CUDA_ARRAY3D_DESCRIPTOR whole{d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
  return standin::cuArray3DCreate_v2(out, &whole);
}
CUresult cuArrayDestroy(CUarray array) {
  Lock lock;
  if (CurrentContext() != nullptr) AwaitContext(lock, *CurrentContext());
  delete &ArrayOf(array);
  return CUDA_SUCCESS;
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray array) {
  *out = ArrayOf(array).descriptor;
  return CUDA_SUCCESS;
}

}  // namespace standin
