// A global that is never destroyed: other threads of the program may use it until the very end of the
// process.
#pragma once

namespace xsched {

template <typename T>
union NoDestroy {
  constexpr NoDestroy() : value() {}
  constexpr ~NoDestroy() {}

  T* operator->() { return &value; }
  T& operator*() { return value; }

  T value;
};

}  // namespace xsched
