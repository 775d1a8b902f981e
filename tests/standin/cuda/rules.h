// The rules of the real driver and resource manager that the stand-in obeys, beside the API itself: which
// calls block while other calls are blocked, and what time slices do. rules_test.cc has one test for each, of
// the same name.
//
// Sources:
//   "blocking": measured on one H200, driver 580.159.04 (open kernel modules), CUDA 13.0. A is a stream that
//   stands at a gate, B another stream of the same context; each call is made on a thread of its own, and is
//   said to block if it is not back after 400 ms.
//   "slices": measured on the same machine; docs/design.md, section 6.
//   "assumed": not measured. Taken as the worst that the measured ones allow.
#pragma once

#include <cstddef>

#include "driver_rule.h"

namespace standin {

constexpr DriverRule kDriverRules[] = {
    {"stream_depth",
     "A stream takes 1,020 launches behind one gate. The next command blocks its thread until there is room.",
     "blocking; that the room is counted in commands, and that commands other than launches block, too: "
     "assumed",
     "stream.cc"},
    {"full_stream_blocks",
     "While a thread is blocked in a launch on A, cuStreamQuery(A) and cuStreamSetAttribute of every stream "
     "of "
     "the context block.",
     "blocking", "stream.cc"},
    {"full_stream_spares",
     "Meanwhile cuStreamQuery(B), cuStreamIsCapturing, cuCtxPushCurrent, cuCtxPopCurrent, launches on B, "
     "cuStreamWriteValue32(B) and cuStreamSynchronize(B) do not block.",
     "blocking", "stream.cc"},
    {"waiting_free_blocks",
     "While a thread waits in cuMemFree, launches on the context and cuStreamSetAttribute block. The same "
     "holds "
     "for cuMemFreeHost, cuMemHostUnregister, cuModuleLoad, cuModuleUnload and the first use of a function.",
     "blocking; all but cuMemFree, and that every other command blocks like a launch: assumed", "context.cc"},
    {"waiting_free_spares",
     "Meanwhile cuStreamQuery of any stream, cuStreamIsCapturing, cuCtxPushCurrent, cuCtxPopCurrent and "
     "cuStreamWriteValue32 do not block.",
     "blocking; that all stream memory operations are like cuStreamWriteValue32: assumed", "stream.cc"},
    {"synchronize_spares", "While a thread waits in cuCtxSynchronize, none of these calls blocks.",
     "blocking", "context.cc"},
    {"no_barriers",
     "Behind a gate on A these wait for nothing: cuFuncGetAttribute, cuFuncSetAttribute, "
     "cuFuncSetCacheConfig, cuOccupancyMaxActiveBlocksPerMultiprocessor, cuMemAlloc, cuMemAllocManaged, "
     "cuMemcpyHtoD, cuGraphLaunch of a graph that is under way, cuGraphExecDestroy of one, cuEventDestroy, "
     "cuStreamDestroy(A).",
     "blocking", "module.cc, memory.cc, copy.cc, graph.cc, event.cc, stream.cc"},
    {"nothing_to_copy", "A synchronous copy of 0 bytes waits for nothing.", "assumed", "copy.cc"},
    {"shortest_slices_stand_still",
     "Two groups of channels that are both runnable at a slice of 1 us make no progress. A group is runnable "
     "while it has unfinished work and its channels are on, also if it waits at a gate.",
     "slices; that waiting for an event or a host function is like waiting at a gate: assumed", "sharing.cc"},
    {"shortest_slice_yields",
     "A group at 1 us gets next to nothing while a group with a long slice has kernels to run, and the whole "
     "device while that one waits at a gate.",
     "slices", "sharing.cc"},
    {"stopped_program_keeps_its_gates",
     "A program that is stopped (SIGSTOP) stays runnable if it waits at a gate, and does not take the device "
     "from others. The real device finishes what it was given; the stand-in, which is in the program, "
     "cannot.",
     "assumed", "sharing.cc"},
    {"controls_take_time", "A control of the resource manager takes 0.3 ms.", "slices: 0.1 to 0.56 ms each",
     "fake_rm.cc"},
    {"controls_time_out",
     "A control may take effect and report a time-out (status 0x65), may be refused, and may block. Never, "
     "unless a test asks for it.",
     "assumed; the status is NV_ERR_TIMEOUT of the open kernel modules", "fake_rm.cc"},
};

// False: a test has switched the rule off: STANDIN_CUDA_WITHOUT=stream_depth,waiting_free_blocks
bool Obeys(const char* rule);

// A gate and 1,020 launches.
constexpr size_t kStreamCommands = 1021;

}  // namespace standin
