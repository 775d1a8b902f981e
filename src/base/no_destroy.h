// A global that is never destroyed, because other threads of the program may use it until the end of the
// process.
#pragma once

namespace xsched {

template <typename T>
union NoDestroy {
  template <typename... Arguments>
  explicit constexpr NoDestroy(Arguments&... arguments) : value(arguments...) {}
  constexpr ~NoDestroy() {}

  constexpr T* operator->() { return &value; }
  constexpr T& operator*() { return value; }

  T value;
};

}  // namespace xsched
