// Stream memory operations: the stream waits until a word of memory has a value, or writes one.
//
// The words are really read and written, also in memory that is shared with another process. So that process
// can hold a stream, or read its progress. Waiting reads with acquire order, and writing has release order,
// as a real device's accesses have towards its host.
#include <cstdint>
#include <vector>

#include "context.h"
#include "driver.h"
#include "stream.h"

namespace standin {
namespace {

template <typename T>
bool Holds(CUdeviceptr address, T value, unsigned flags) {
  const T word = __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_ACQUIRE);
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(word - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return word == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (word & value) != 0;
    default:
      return static_cast<T>(~(word | value)) != 0;  // NOR
  }
}

template <typename T>
CUresult AddWait(std::vector<Step>& steps, CUdeviceptr address, T value, unsigned flags) {
  if (address == 0 || address % sizeof(T) != 0 || (flags & ~(3u | CU_STREAM_WAIT_VALUE_FLUSH))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  steps.push_back({Step::Kind::kWait, nullptr, [=] { return Holds<T>(address, value, flags); }});
  return CUDA_SUCCESS;
}

template <typename T>
CUresult AddWrite(std::vector<Step>& steps, CUdeviceptr address, T value, unsigned flags) {
  if (address == 0 || address % sizeof(T) != 0 || (flags & ~CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  steps.push_back({Step::Kind::kAction,
                   [=] { __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELEASE); }});
  return CUDA_SUCCESS;
}

CUresult AddOperation(std::vector<Step>& steps, const CUstreamBatchMemOpParams& p) {
  switch (p.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return AddWait<uint32_t>(steps, p.waitValue.address, p.waitValue.value, p.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return AddWait<uint64_t>(steps, p.waitValue.address, p.waitValue.value64, p.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return AddWrite<uint32_t>(steps, p.writeValue.address, p.writeValue.value, p.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return AddWrite<uint64_t>(steps, p.writeValue.address, p.writeValue.value64, p.writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

template <typename Add, typename T>
CUresult SubmitOne(CUstream stream, Add add, CUdeviceptr address, T value, unsigned flags) {
  std::vector<Step> steps;
  if (const CUresult error = add(steps, address, value, flags)) return error;
  return SubmitTo(stream, {CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(steps)});
}

}  // namespace

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return SubmitOne(stream, AddWait<uint32_t>, address, value, flags);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return SubmitOne(stream, AddWait<uint64_t>, address, value, flags);
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return SubmitOne(stream, AddWrite<uint32_t>, address, value, flags);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return SubmitOne(stream, AddWrite<uint64_t>, address, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                               unsigned int flags) {
  if (flags != 0 || count > 256 || (count > 0 && operations == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Step> steps;
  for (unsigned i = 0; i < count; ++i) {
    if (const CUresult error = AddOperation(steps, operations[i])) return error;
  }
  return SubmitTo(stream, {CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(steps)});
}

// The first version, of CUDA 8, took the same arguments.
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return standin::cuStreamWaitValue32_v2(stream, address, value, flags);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return standin::cuStreamWaitValue64_v2(stream, address, value, flags);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return standin::cuStreamWriteValue32_v2(stream, address, value, flags);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return standin::cuStreamWriteValue64_v2(stream, address, value, flags);
}
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations,
                            unsigned int flags) {
  return standin::cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

}  // namespace standin
