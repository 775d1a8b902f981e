/* What programs written for XSched 1.2 rely on: functions by name and type, constants by name and value. That
 * this compiles and links is the test; it also runs, to load the library. */
#include <stddef.h>
#include <xsched/xsched.h>

static const struct {
  XResult (*queue_create)(XQueueHandle*, HwQueueHandle, int64_t, int64_t);
  XResult (*queue_destroy)(XQueueHandle);
  XResult (*queue_get)(XQueueHandle*, HwQueueHandle);
  XResult (*queue_set_preempt_level)(XQueueHandle, int64_t);
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

IS(kXSchedSuccess, 0);
IS(kXSchedErrorHardware, 1);
IS(kXSchedErrorInvalidValue, 2);
IS(kXSchedErrorNotFound, 3);
IS(kXSchedErrorNotAllowed, 4);
IS(kXSchedErrorNotSupported, 5);
IS(kXSchedErrorUnknown, 999);

IS(kPreemptLevelBlock, 1);
IS(kPreemptLevelDeactivate, 2);
IS(kPreemptLevelInterrupt, 3);
IS(kQueueStateIdle, 1);
IS(kQueueStateReady, 2);

IS(kQueueCreateFlagBlockingSubmit, 1);
IS(kQueueSuspendFlagSyncHwQueue, 1);
IS(kQueueResumeFlagDropCommands, 1);

IS(kSchedulerAppManaged, 1);
IS(kSchedulerLocal, 2);
IS(kSchedulerGlobal, 3);
IS(kPolicyHighestPriorityFirst, 1);
IS(kPolicyUtilizationPartition, 4);

IS(PRIORITY_MIN, -255);
IS(PRIORITY_DEFAULT, 0);
IS(PRIORITY_MAX, 255);
IS(UTILIZATION_MAX, 100);

int main(void) {
  int64_t count;
  return kFunctions.queue_profile_hw_command_count(1, &count) == kXSchedErrorNotFound ? 0 : 1;
}
