// The real functions for wrapped calls. One process can have several instances of OpenCL (the loader, a
// loader among the program's files, a vendor's library opened directly). Each call must reach the instance
// that it was meant for:
//
//   OPENCL_LAYERS   The loader calls Via<n>, from the table that clInitLayer gave it. This calls
//                   routes[n].next: the layer below.
//   lookup          The program calls Via<n>, the address that dlsym or clGetExtensionFunctionAddress
//                   returned. This calls routes[n].next.
//   LD_PRELOAD      The program calls the exported function. This calls the next of RouteOfCaller.
//
// Routes are made on first use and are never removed. The libraries that they lead to stay loaded. Nothing
// here loads a library.
#pragma once

#include <link.h>

#include "opencl/functions.h"

namespace xsched::opencl {

struct Route {
  Functions next;
  const link_map* library;  // null: below a layer, or of an extension
  Route* sibling;           // the same, but for extension functions of another vendor; null: none
};

inline constexpr int kMaxRoutes = 8;
extern Route routes[kMaxRoutes];

inline int IndexOf(const Route& route) { return static_cast<int>(&route - routes); }
// The function with index `function` in `next`.
inline void*& FunctionAt(Functions& next, int function) { return reinterpret_cast<void**>(&next)[function]; }

// The route to the instance of OpenCL that the code at `return_address` is bound to. If there is none, a
// route whose functions are null.
Route& RouteOfCaller(void* return_address);
// As above; null: none.
Route* FindRouteOfCaller(const void* caller);
// The route to the instance that has `function`. Null: no room for more (there is one warning).
Route* RouteOfLibrary(const void* function);
// A new route. Null: no room for more (there is one warning).
Route* AddRoute(const Functions& next, const link_map* library);
// `route`, or one to the same instance that has `found` for `function`, which is an extension's. That one has
// no extension functions of other vendors. Null: no room for more.
Route* RouteWith(Route& route, int function, void* found);

// Libraries were loaded or unloaded: callers are examined anew.
void ForgetCallers();

}  // namespace xsched::opencl
