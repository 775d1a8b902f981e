#include "lookup.h"

#include <cstdio>
#include <cstring>

#include "context.h"
#include "driver.h"

namespace standin {
namespace {

// The newest that is no newer than asked for, and than the driver.
const Symbol* Newest(const char* name, int version, bool per_thread, bool* exists) {
  const Symbol* best = nullptr;
  for (size_t i = 0; i < symbol_count; ++i) {
    const Symbol& symbol = symbols[i];
    if (symbol.per_thread != per_thread || std::strcmp(symbol.name, name) != 0) continue;
    if (symbol.version > DriverVersion()) continue;
    *exists = true;
    if (symbol.version <= version && (best == nullptr || symbol.version > best->version)) best = &symbol;
  }
  return best;
}

// What a driver has that is newer than the headers of this build. Its callbacks are not modeled.
CUresult BeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph, void*) {
  return standin::cuStreamBeginCapture_v2(stream, mode);
}
void* NewerThanHeaders(const char* name) {
  return std::strcmp(name, "cuStreamBeginRecaptureToGraph") == 0
             ? reinterpret_cast<void*>(&BeginRecaptureToGraph)
             : nullptr;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr || version > DriverVersion()) return CUDA_ERROR_INVALID_VALUE;
  const Symbol* symbol = nullptr;
  bool exists = false;
  if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) symbol = Newest(name, version, true, &exists);
  if (symbol == nullptr) symbol = Newest(name, version, false, &exists);
  *function = symbol != nullptr ? symbol->function : NewerThanHeaders(name);
  if (status != nullptr) {
    *status = symbol != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : exists          ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

// The first version has no status: what is not there is an error.
CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  const CUresult result = standin::cuGetProcAddress_v2(name, function, version, flags, nullptr);
  return result == CUDA_SUCCESS && *function == nullptr ? CUDA_ERROR_NOT_FOUND : result;
}

// Undocumented tables, of which there is none here.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace standin
