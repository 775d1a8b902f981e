/* Types of the XSched C API.
 *
 * Names and values are those of XSched 1.2, so that programs written for it compile and link unchanged.
 * Every function of the API is thread-safe and returns an XResult; none throws, aborts or exits.
 */
#ifndef XSCHED_TYPES_H_
#define XSCHED_TYPES_H_

#include <stddef.h>
#include <stdint.h>

/* Marks what the libraries export. */
#ifndef XSCHED_API
#define XSCHED_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A device: (XDeviceType << 32) | XDeviceId. Each part of a divided GPU has its own number above bit 40. */
typedef uint64_t XDevice;
/* A device within its type. It is the PCI address where there is one, so that all processes use the same number. */
typedef uint32_t XDeviceId;
/* Handles are checked: a stale or invalid one yields kXSchedErrorNotFound. 0 is never a valid handle. */
typedef uint64_t XQueueHandle;
typedef uint64_t HwQueueHandle;
typedef uint64_t HwCommandHandle;

typedef enum {
  kXSchedSuccess = 0,
  kXSchedErrorHardware = 1,     /* the driver reported an error */
  kXSchedErrorInvalidValue = 2, /* an argument is out of its range or null */
  kXSchedErrorNotFound = 3,     /* no such queue, command or library */
  kXSchedErrorNotAllowed = 4,   /* not allowed in this state, or for this user */
  kXSchedErrorNotSupported = 5, /* the platform cannot do this (a preemption level, say) */
  kXSchedErrorBadResponse = 6,  /* the server sent an unexpected answer */
  kXSchedErrorUnknown = 999,
} XResult;

typedef enum {
  kPlatformUnknown = 0,
  kPlatformVPI = 1,
  kPlatformCUDA = 2,
  kPlatformCUDLA = 3,
  kPlatformHIP = 4,
  kPlatformAscend = 5,
  kPlatformOpenCL = 6,
  kPlatformLevelZero = 7,
} XPlatform;

typedef enum {
  kDeviceTypeUnknown = 0,
  kDeviceTypeCPU = 1,
  kDeviceTypeGPU = 2,
  kDeviceTypeNPU = 3,
  kDeviceTypeFPGA = 4,
  kDeviceTypeASIC = 5,
  kDeviceTypeMCA = 6, /* memory copy accelerator */
} XDeviceType;

typedef enum {
  kPreemptLevelUnknown = 0,
  kPreemptLevelBlock = 1,      /* commands not yet launched are held back */
  kPreemptLevelDeactivate = 2, /* commands that are launched but not started are held as well */
  kPreemptLevelInterrupt = 3,  /* the running command is stopped, and later continues where it stopped */
  kPreemptLevelMax,
} XPreemptLevel;

typedef enum {
  kQueueStateUnknown = 0,
  kQueueStateIdle = 1,  /* everything submitted has finished */
  kQueueStateReady = 2, /* there is unfinished work */
} XQueueState;

typedef enum {
  kQueueFeatureNone = 0x0000,
  kQueueFeatureAsyncSubmit = 0x0001,
  kQueueFeatureDynamicLevel = 0x0002,
  kQueueFeatureDynamicThreshold = 0x0004,
  kQueueFeatureDynamicBatchSize = 0x0008,
  kQueueFeatureSyncSuspend = 0x0010,
  kQueueFeatureResumeDropCommands = 0x0020,
  kQueueFeatureMaskAll = -1,
} XQueueFeature;

typedef enum {
  kQueueCreateFlagNone = 0x0000,
  kQueueCreateFlagBlockingSubmit = 0x0001, /* XQueueSubmit returns when the command has been launched */
  kQueueCreateFlagMaskAll = -1,
} XQueueCreateFlag;

typedef enum {
  kQueueSuspendFlagNone = 0x0000,
  kQueueSuspendFlagSyncHwQueue = 0x0001, /* return when what was in flight has finished */
  kQueueSuspendFlagWaitAll = 0x0002,     /* first wait for all commands submitted so far */
  kQueueSuspendFlagWaitIdle = 0x0004,    /* first wait until the queue is idle */
  kQueueSuspendFlagMaskAll = -1,
} XQueueSuspendFlag;

typedef enum {
  kQueueResumeFlagNone = 0x0000,
  kQueueResumeFlagDropCommands = 0x0001, /* forget submitted commands that were not launched yet */
  kQueueResumeFlagMaskAll = -1,
} XQueueResumeFlag;

typedef enum {
  kSchedulerUnknown = 0,
  kSchedulerAppManaged = 1, /* the program suspends and resumes its queues itself */
  kSchedulerLocal = 2,      /* a policy in this process, for this process's queues */
  kSchedulerGlobal = 3,     /* xserver, for all processes */
  kSchedulerMax,
} XSchedulerType;

typedef enum {
  kPolicyUnknown = 0,
  kPolicyHighestPriorityFirst = 1,
  kPolicyHeterogeneousHighestPriorityFirst = 2,
  kPolicyCPUHighestPriorityFirst = 3,
  kPolicyUtilizationPartition = 4,
  kPolicyProcessUtilizationPartition = 5,
  kPolicyStrictProcessUtilizationPartition = 6,
  kPolicyKEarliestDeadlineFirst = 7,
  kPolicyLaxity = 8,
  kPolicyActiveWindowFirst = 9,
  kPolicyCompletelyFairScheduler = 10,
  kPolicyMultiLevelFeedbackQueue = 11,
  kPolicyEarliestEligibleVirtualDeadlineFirst = 12, /* not in XSched 1.2 */
  kPolicyReservation = 13, /* not in XSched 1.2 */
  kPolicyServiceLevelObjective = 14, /* not in XSched 1.2 */
  kPolicyMax,
} XPolicyType;

/* Launches a command on the hardware queue. Called on a thread of XSched. */
typedef XResult (*LaunchCallback)(HwQueueHandle, void *);

/* Bigger is more urgent. */
typedef int32_t Priority;
#define PRIORITY_NO_EXECUTE -256 /* never runs while any other queue of its device is ready */
#define PRIORITY_MIN -255
#define PRIORITY_DEFAULT 000
#define PRIORITY_MAX 255

/* Percent of the device's time, relative to the other queues' figures. */
typedef int32_t Utilization;
#define UTILIZATION_MIN 0
#define UTILIZATION_DEFAULT 100
#define UTILIZATION_MAX 100

/* A queue's share of the device's time is in proportion to its weight: as cpu.weight of control groups. */
typedef int32_t Weight;
#define WEIGHT_MIN 1
#define WEIGHT_DEFAULT 100
#define WEIGHT_MAX 10000

/* Microseconds, from when a request came until it has ended: 99 of 100 should take no longer. */
typedef int64_t LatencyTarget;
#define NO_LATENCY_TARGET 0
#define LATENCY_TARGET_MAX 1000000000

/* Percent of a device that queues without a latency target get together at least. */
typedef int32_t Floor;
#define FLOOR_MIN 1
#define FLOOR_DEFAULT 5
#define FLOOR_MAX 99

/* Microseconds: the period of a reservation. */
#define RESERVATION_PERIOD_MIN 1000
#define RESERVATION_PERIOD_MAX 1000000

/* Microseconds. */
typedef int64_t Timeslice;
#define TIMESLICE_MIN 100
#define TIMESLICE_DEFAULT 5000
#define TIMESLICE_MAX 10000000
#define TIMESLICE_UNLIMITED UINT64_MAX

/* Microseconds by which a queue may be delayed. */
typedef int64_t Laxity;
#define NO_LAXITY -1

/* Microseconds from the time the queue becomes ready. */
typedef int64_t Deadline;
#define NO_DEADLINE -1
#define DEADLINE_MAX 31556952000000 /* a year; also of a laxity */

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_TYPES_H_ */
