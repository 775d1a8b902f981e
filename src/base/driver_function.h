// A pointer to a function of the driver, in a table of them. Where locks are checked (lock_order.h), calling
// it is an error while a lock is held that does not allow it. Otherwise a plain pointer; as large as one in
// any case.
#pragma once

#include <concepts>
#include <cstddef>

#include "base/lock_order.h"

namespace xsched {

#ifdef XSCHED_CHECK_LOCKS

template <typename Pointer>
class DriverFunction {
 public:
  constexpr DriverFunction() = default;
  template <std::convertible_to<Pointer> Function>
  constexpr DriverFunction(Function function) : function_(function) {}

  // A call converts first.
  operator Pointer() const {
    lock_order::CheckCall(Calls::kDriver);
    return function_;
  }
  friend bool operator==(DriverFunction function, std::nullptr_t) { return function.function_ == nullptr; }

 private:
  Pointer function_ = nullptr;
};

#else

template <typename Pointer>
using DriverFunction = Pointer;

#endif

}  // namespace xsched
