// Overruns: what a device still does of a queue after the queue was held. A command that has begun runs to
// its end.
//
//   a queue         [ its turn ][ held: overrun ]
//   the next one                                 [ its turn ... ]
//                               ^ still charged  ^ its client reports that the device has nothing more of it
//
// The scheduler does not see whose commands a device executes. So the client reports the end of an overrun
// (Scheduler::Drained). The next queue begins only then, and each is charged for what it had. An overrun may
// last for longer than its commands take, because the device waits for something. So the others wait for
// about three times as long as usual, and then begin beside it. For a second after that, they do not wait for
// this queue's overruns. Nor do they if these are usually very short; nor do queues of other processes if the
// device divides its time between processes (QueueTraits::runs_beside_others).
//
// If others run beside an overrun, each is charged for an equal part of the time.
//
// A queue whose client does not report the end (QueueTraits) is not charged for its overruns.
#pragma once

#include "sched/core/queue_record.h"

namespace xsched::sched {

// The queue is held while the device has something of it. Asks whether that has ended already.
void BeginOverrun(QueueRecord& queue, TimePoint now, ControlSink& sink);
// Asks again from time to time, and charges the queue, for so long at most. Sets DeviceRecord::ask_at
// accordingly.
void StepOverrun(QueueRecord& queue, TimePoint now, ControlSink& sink);
// The queue runs. Does it overrun if it is held now?
bool MayOverrun(const QueueRecord& queue);
// Do others wait for its end, and until when at most? REQUIRES: it overruns, or will when it is held now.
bool OverrunIsAwaited(QueueRecord& queue, TimePoint now, TimePoint& until);
// The device has nothing more of a held queue.
void EndOverrun(QueueRecord& queue, TimePoint now);
// The queue runs again, or does not count any more. If it overruns, that would have lasted for longer.
void LeaveOverrun(QueueRecord& queue, TimePoint now);

}  // namespace xsched::sched
