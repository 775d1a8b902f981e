/* The parts of the API on which programs for XSched 1.2 rely: functions by name and type, constants by name
 * and value. The test is that this compiles and links. It also runs, to load the library. */
#include <stddef.h>
#include <xsched/xsched.h>

static const struct {
  XResult (*queue_create)(XQueueHandle*, HwQueueHandle, int64_t, int64_t);
  XResult (*queue_destroy)(XQueueHandle);
  XResult (*queue_get)(XQueueHandle*, HwQueueHandle);
  XResult (*queue_set_preempt_level)(XQueueHandle, XPreemptLevel);
  XResult (*queue_set_launch_config)(XQueueHandle, int64_t, int64_t);
  XResult (*queue_submit)(XQueueHandle, HwCommandHandle);
  XResult (*queue_wait)(XQueueHandle, HwCommandHandle);
  XResult (*queue_wait_all)(XQueueHandle);
  XResult (*queue_query)(XQueueHandle, XQueueState*);
  XResult (*queue_suspend)(XQueueHandle, int64_t);
  XResult (*queue_resume)(XQueueHandle, int64_t);
  XResult (*queue_profile_hw_command_count)(XQueueHandle, int64_t*);
  XResult (*hw_queue_destroy)(HwQueueHandle);
  XResult (*hw_queue_launch)(HwQueueHandle, HwCommandHandle);
  XResult (*hw_queue_synchronize)(HwQueueHandle);
  XResult (*hw_command_create_callback)(HwCommandHandle*, XResult (*)(HwQueueHandle, void*), void*);
  XResult (*hw_command_destroy)(HwCommandHandle);
  XResult (*hint_set_scheduler)(XSchedulerType, XPolicyType);
  XResult (*hint_priority)(XQueueHandle, int32_t);
  XResult (*hint_utilization)(XQueueHandle, int32_t);
  XResult (*hint_timeslice)(int64_t);
  XResult (*hint_laxity)(XQueueHandle, int64_t, int32_t, int32_t);
  XResult (*hint_deadline)(XQueueHandle, int64_t);
  XResult (*hint_k_deadline)(size_t);
} kFunctions = {
    XQueueCreate,          XQueueDestroy,     XQueueGet,          XQueueSetPreemptLevel,
    XQueueSetLaunchConfig, XQueueSubmit,      XQueueWait,         XQueueWaitAll,
    XQueueQuery,           XQueueSuspend,     XQueueResume,       XQueueProfileHwCommandCount,
    HwQueueDestroy,        HwQueueLaunch,     HwQueueSynchronize, HwCommandCreateCallback,
    HwCommandDestroy,      XHintSetScheduler, XHintPriority,      XHintUtilization,
    XHintTimeslice,        XHintLaxity,       XHintDeadline,      XHintKDeadline,
};

#define IS(name, value) _Static_assert((name) == (value), #name)
IS(sizeof(XQueueHandle), 8);
IS(sizeof(HwQueueHandle), 8);
IS(sizeof(HwCommandHandle), 8);
IS(sizeof(XResult), 4);
IS(sizeof(XPreemptLevel), 4);
IS(sizeof(XQueueState), 4);
IS(sizeof(XSchedulerType), 4);
IS(sizeof(XPolicyType), 4);
IS(sizeof(Priority), 4);
IS(sizeof(Utilization), 4);
IS(sizeof(Timeslice), 8);
IS(sizeof(Laxity), 8);
IS(sizeof(Deadline), 8);

IS(kXSchedSuccess, 0);
IS(kXSchedErrorHardware, 1);
IS(kXSchedErrorInvalidValue, 2);
IS(kXSchedErrorNotFound, 3);
IS(kXSchedErrorNotAllowed, 4);
IS(kXSchedErrorNotSupported, 5);
IS(kXSchedErrorBadResponse, 6);
IS(kXSchedErrorUnknown, 999);

IS(kPlatformCUDA, 2);
IS(kPlatformHIP, 4);
IS(kPlatformOpenCL, 6);
IS(kDeviceTypeGPU, 2);

IS(kPreemptLevelUnknown, 0);
IS(kPreemptLevelBlock, 1);
IS(kPreemptLevelDeactivate, 2);
IS(kPreemptLevelInterrupt, 3);
IS(kPreemptLevelMax, 4);
IS(kQueueStateIdle, 1);
IS(kQueueStateReady, 2);

IS(kQueueCreateFlagBlockingSubmit, 1);
IS(kQueueCreateFlagMaskAll, -1);
IS(kQueueSuspendFlagSyncHwQueue, 1);
IS(kQueueSuspendFlagWaitAll, 2);
IS(kQueueSuspendFlagWaitIdle, 4);
IS(kQueueSuspendFlagMaskAll, -1);
IS(kQueueResumeFlagDropCommands, 1);
IS(kQueueResumeFlagMaskAll, -1);
IS(kQueueFeatureAsyncSubmit, 1);
IS(kQueueFeatureResumeDropCommands, 0x20);

IS(kSchedulerAppManaged, 1);
IS(kSchedulerLocal, 2);
IS(kSchedulerGlobal, 3);
IS(kSchedulerMax, 4);
IS(kPolicyHighestPriorityFirst, 1);
IS(kPolicyHeterogeneousHighestPriorityFirst, 2);
IS(kPolicyCPUHighestPriorityFirst, 3);
IS(kPolicyUtilizationPartition, 4);
IS(kPolicyProcessUtilizationPartition, 5);
IS(kPolicyStrictProcessUtilizationPartition, 6);
IS(kPolicyKEarliestDeadlineFirst, 7);
IS(kPolicyLaxity, 8);
IS(kPolicyActiveWindowFirst, 9);
IS(kPolicyCompletelyFairScheduler, 10);
IS(kPolicyMultiLevelFeedbackQueue, 11);

IS(PRIORITY_NO_EXECUTE, -256);
IS(PRIORITY_MIN, -255);
IS(PRIORITY_DEFAULT, 0);
IS(PRIORITY_MAX, 255);
IS(UTILIZATION_MIN, 0);
IS(UTILIZATION_DEFAULT, 100);
IS(UTILIZATION_MAX, 100);
IS(TIMESLICE_MIN, 100);
IS(TIMESLICE_DEFAULT, 5000);
IS(TIMESLICE_MAX, 10000000);
IS(TIMESLICE_UNLIMITED, UINT64_MAX);
IS(NO_LAXITY, -1);
IS(NO_DEADLINE, -1);

int main(void) {
  int64_t count;
  return kFunctions.queue_profile_hw_command_count(1, &count) == kXSchedErrorNotFound ? 0 : 1;
}
