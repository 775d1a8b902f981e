// HIP's API, without a macro of its headers that takes a name of newer standard libraries' away.
#pragma once

#include <hip/hip_runtime_api.h>

#undef __noinline__
