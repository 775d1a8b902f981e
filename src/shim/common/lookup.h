// What a shim tells the interposed dlsym.
#pragma once

namespace xsched::shim {

// `found` is what the program would get for `name`: returns it, or the function that wraps it. Implemented by each shim.
void* WrapLookedUp(const char* name, void* found);

}  // namespace xsched::shim
