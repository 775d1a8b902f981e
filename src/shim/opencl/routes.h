// Where wrapped calls go on to. Several instances of OpenCL can be in one process (the loader, a loader that
// came with a program's files, a vendor's library opened directly), and each call must reach the one that it
// was meant for:
//
//   OPENCL_LAYERS     loader -> Via<n> (in the table that clInitLayer gave it)     -> routes[n].next: below
//   the layer dlsym, clGetExtensionFunctionAddress   -> Via<n> (the address they returned)   ->
//   routes[n].next LD_PRELOAD        program -> exported function -> RouteOfCaller                -> its
//   route's next
//
// Routes are made on first use and stay; so do the libraries that they go to. Nothing here loads a library.
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

// The route to the instance of OpenCL that the code at `return_address` is bound to. Without one: a route to
// nowhere.
Route& RouteOfCaller(void* return_address);
// As above; null: none.
Route* FindRouteOfCaller(const void* caller);
// The route to the instance that `function`, one of its functions, belongs to. Null: no room for more (warned
// of once).
Route* RouteOfLibrary(const void* function);
// A new route. Null: no room for more (warned of once).
Route* AddRoute(const Functions& next, const link_map* library);
// The route that is as `route`, but goes on to `found` for `function`. Null: no room for more.
Route* RouteWith(Route& route, int function, void* found);

// Libraries have come or gone: callers are looked at anew.
void ForgetCallers();

}  // namespace xsched::opencl
