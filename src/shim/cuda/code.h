// Which functions have been launched before: the driver may load a function's code as late as that.
#pragma once

#include "cuda/functions.h"
#include "preempt/launch.h"

namespace xsched::cuda {

// True once per function and life of its code. Takes no lock but then.
bool IsFirstLaunch(CUfunction function);

// Functions' handles may be others' from now on.
void ForgetLaunchedFunctions();

// Around cuModuleUnload and cuLibraryUnload, which are barriers as well.
class CodeUnloading {
 public:
  CodeUnloading() { ForgetLaunchedFunctions(); }
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::cuda
