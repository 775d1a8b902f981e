// rocBLAS's matrix products: Tensile's kernels with named arguments, in float and double. Their names give
// the layout of the matrices: "Cijk_Ailk_Bljk_SB_…" is C[i, j] = sum over l of A[i, l] B[l, j] for each k of
// a batch. Along the first index of an operand, numbers are adjacent in memory.
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels.h"

namespace standin_hsa {
namespace {

constexpr std::string_view kA = "Cijk_A", kB = "Cijk_Ailk_B";  // what comes before their indices

class Matrices {
 public:
  Matrices(const Arguments& a, const std::string& name, bool transposed)
      : address_(a.Named<uint64_t>("Address" + name)),
        offset_(a.Has("Offset" + name) ? a.Named<uint64_t>("Offset" + name) : 0),
        strides_(a.Named<std::array<uint32_t, 2>>("Strides" + name)),
        each_has_an_address_(a.kernel().find("_GB_") != std::string::npos),
        transposed_(transposed) {}

  template <typename T>
  T& At(size_t row, size_t column, size_t batch) const {
    if (transposed_) std::swap(row, column);
    T* matrix = each_has_an_address_ ? reinterpret_cast<T**>(address_)[batch]
                                     : reinterpret_cast<T*>(address_) + batch * strides_[1];
    return matrix[offset_ + row + column * strides_[0]];
  }

 private:
  uint64_t address_, offset_;
  std::array<uint32_t, 2> strides_;
  bool each_has_an_address_, transposed_;
};

template <typename T>
void Gemm(const Arguments& arguments) {
  const std::string& name = arguments.kernel();
  const Matrices a(arguments, "A", name[kA.size()] != 'i'), b(arguments, "B", name[kB.size()] != 'l'),
      c(arguments, "C", false), d(arguments, "D", false);
  const auto [m, n, batches] = arguments.Named<std::array<uint32_t, 3>>("SizesFree");
  const auto k = arguments.Named<uint32_t>("SizesSum");
  const T alpha = arguments.Named<T>("Alpha"), beta = arguments.Named<T>("Beta");
  for (uint32_t batch = 0; batch < batches; ++batch) {
    for (uint32_t j = 0; j < n; ++j) {
      for (uint32_t i = 0; i < m; ++i) {
        T sum = 0;
        for (uint32_t l = 0; l < k; ++l) sum += a.At<T>(i, l, batch) * b.At<T>(l, j, batch);
        d.At<T>(i, j, batch) = alpha * sum + (beta == 0 ? 0 : beta * c.At<T>(i, j, batch));
      }
    }
  }
}

}  // namespace

KernelFunction FindGemmKernel(const KernelCode& code) {
  // Only kernels with one pass. Those that divide the sum into several ("_GSU4_") are not implemented.
  if (!code.name.starts_with(kA) || code.name.find("_GSU1_") == std::string::npos) return nullptr;
  if (!Arguments(nullptr, &code).Has("AddressD")) return nullptr;
  const std::string_view type = std::string_view(code.name).substr(sizeof "Cijk_Ailk_Bljk_" - 1);
  if (type.starts_with("SB_")) return Gemm<float>;
  return type.starts_with("DB_") ? Gemm<double> : nullptr;
}

}  // namespace standin_hsa
