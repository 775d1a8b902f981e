// Overruns: what a device still does of a queue after the queue was held. A command that has begun runs to
// its end.
//
//   a queue         [ its turn ][ held: overrun ]
//   the next one                                 [ its turn ... ]
//                               ^ still charged  ^ its client reports that the device has nothing more of it
//
// The scheduler does not see whose commands a device executes. So where the client reports the end of an
// overrun (Scheduler::Drained; QueueTraits), the next queue begins only then, and each is charged for what it
// had. An overrun may last for longer than its commands take, because the device waits for something. So the
// others wait for about three times as long as usual, and then begin beside it. For a second after that, they
// do not wait for this queue's overruns.
//
// Other clients are asked for their progress from time to time. What they run is in gates on the device, and
// whether a command has begun behind the last one that is known to have retired is not seen. An overrun of
// theirs ends with the next command, since the gate behind that is closed. Many short commands have one gate
// together, and the last one may not report. So without a report it ends after the time of two commands, and
// overruns of short ones are not counted. Others run meanwhile, because it may have ended long ago:
//
//   the long queue    [ its turn ][ held: overrun ]
//   the short queue                 [ its turn ... ]
//                     ^ service    ^ whose?      ^ all of the long queue's has ended
//
// An overrun beside which others run is taken for the held queue's alone, because most devices end what they
// have begun first. If several queues overrun, it is that of the one with the longest commands. The others
// that overrun, and what runs meanwhile, are charged later, when they report: for the commands that they have
// retired, by the time that such commands took when they ran alone. So each is charged for what it had, also
// on devices that execute several at the same time. A queue may never run alone: the short commands that
// others have in flight are then done one by one between its long ones. So its commands are also taken to be
// longer if neither they nor those of the queue that overran account for the time that has passed.
#pragma once

#include "sched/core/queue_record.h"

namespace xsched::sched {

// Does the device still have something of the queue, which is held?
inline void SetOverruns(QueueRecord& queue, bool overruns, TimePoint now) {
  if (queue.overruns == overruns) return;
  queue.overruns = overruns;
  (overruns ? queue.overrun.since : queue.overrun.ended_at) = now;
  queue.overrun.alone_since = now;
}
// An overrun has begun. Asks for its progress.
void BeginOverrun(QueueRecord& queue, TimePoint now, const SchedulerConfig& config, ControlSink& sink);
// Asks for the progress of a queue, seldom where it reports by itself. Sets DeviceRecord::ask_at accordingly.
void AskOverrun(QueueRecord& queue, TimePoint now, const SchedulerConfig& config, ControlSink& sink);
// Asks for the progress of a queue that is behind an overrun, likewise.
void AskBehind(QueueRecord& queue, TimePoint now, ControlSink& sink);
// The queue runs. Does it overrun if it is held now? Where the client has to be asked: only by a long
// command.
bool MayOverrun(const QueueRecord& queue);
// Do others wait for its end, and until when at most? REQUIRES: it overruns, or will when it is held now; and
// its client reports the end.
bool OverrunIsAwaited(QueueRecord& queue, TimePoint now, TimePoint& until);
// When its overrun ends without a report. kNever: not at all.
TimePoint OverrunEnds(const QueueRecord& queue, const SchedulerConfig& config);
// The device has nothing more of a held queue.
void EndOverrun(QueueRecord& queue, TimePoint now);
// The queue has reported `retired`, or again what was known.
void SeeOverrun(QueueRecord& queue, uint64_t retired, TimePoint now);

// So many further commands of the queue have retired, by its report: charges it for what it had of the time
// of overruns of other queues, and measures its commands otherwise.
void ChargeForRetired(QueueRecord& queue, uint64_t count, TimePoint now);

}  // namespace xsched::sched
