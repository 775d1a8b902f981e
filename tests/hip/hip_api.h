// HIP's API, without a macro of its headers that hides a name of newer standard libraries.
#pragma once

#include <hip/hip_runtime_api.h>

#undef __noinline__
