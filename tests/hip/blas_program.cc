#include "blas_program.h"

#include <hipblas/hipblas.h>
#include <rocblas/rocblas.h>

namespace {

constexpr float kOne = 1, kZero = 0;

int RowsOfA(const BlasProduct& p) { return p.a_transposed ? p.k : p.m; }
int RowsOfB(const BlasProduct& p) { return p.b_transposed ? p.n : p.k; }

}  // namespace

int BlasByRocBlas(hipStream_t stream, const BlasProduct* product) {
  const BlasProduct& p = *product;
  static rocblas_handle handle = nullptr;
  if (handle == nullptr) {
    if (rocblas_status status = rocblas_create_handle(&handle); status != rocblas_status_success)
      return status;
  }
  if (rocblas_status status = rocblas_set_stream(handle, stream); status != rocblas_status_success)
    return status;
  auto operation = [](bool transposed) {
    return transposed ? rocblas_operation_transpose : rocblas_operation_none;
  };
  return rocblas_sgemm(handle, operation(p.a_transposed), operation(p.b_transposed), p.m, p.n, p.k, &kOne,
                       p.a, RowsOfA(p), p.b, RowsOfB(p), &kZero, p.c, p.m);
}

int BlasByHipBlas(hipStream_t stream, const BlasProduct* product) {
  const BlasProduct& p = *product;
  static hipblasHandle_t handle = nullptr;
  if (handle == nullptr) {
    if (hipblasStatus_t status = hipblasCreate(&handle); status != HIPBLAS_STATUS_SUCCESS) return status;
  }
  if (hipblasStatus_t status = hipblasSetStream(handle, stream); status != HIPBLAS_STATUS_SUCCESS)
    return status;
  auto operation = [](bool transposed) { return transposed ? HIPBLAS_OP_T : HIPBLAS_OP_N; };
  return hipblasSgemm(handle, operation(p.a_transposed), operation(p.b_transposed), p.m, p.n, p.k, &kOne, p.a,
                      RowsOfA(p), p.b, RowsOfB(p), &kZero, p.c, p.m);
}
