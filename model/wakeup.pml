/* No wake-up is lost: counters, dirty bit, doorbell and the flag "tracked".
 *
 * One queue, at the level of single memory accesses. The launching thread and the device change the counters. A thread that makes
 * the queue idle or ready rings. The server clears the dirty bit and reads the counters. Rivals come and go, and the flag changes
 * with them. So the server must also learn what happened while the flag was not set and nothing rang.
 *
 * Memory: plain stores wait in their thread's store buffer, one entry for each word, and reach memory at any later time (process
 * `memory`). Read-modify-write operations with seq_cst empty their thread's buffer, as on x86. If a thread reads its own word only
 * through memory, no forwarding is needed.
 *
 * Checked: if nothing more can happen, the server knows of a tracked queue whether it is ready or idle, and its dependency. Every
 * execution is finite.
 *
 * The end of the work becomes known in two ways:
 *   default      the program waits for its last command, and RetiredUpTo rings
 *   -DQUERIES    the program never waits; the device's report changes `retired` and does not ring; the server asks
 */

#ifndef COMMANDS
#define COMMANDS 3
#endif
#ifndef RIVALS
#define RIVALS 2 /* how often rivals come */
#endif

/* The control block, and what is beside it. */
byte submitted, retired;
bit tracked;
bit dependency;
bit dirty;
bit bell; /* an edge of the eventfd that epoll has not returned yet */

/* Store buffers: a value that its thread has stored and memory does not have yet. */
bit tracked_pending, tracked_stored;
bit dependency_pending;
#ifdef MUTATION_COUNTER_IS_NO_BARRIER
byte submitted_pending; /* 0: empty */
#endif

byte launched; /* commands that the driver has */
byte done;     /* commands that the device has finished */
bit halted;    /* it finishes no more */

/* What the server knows. */
byte known_submitted, known_retired;
bit known_dependency;
bit tracks;
byte rivals_left = RIVALS;

bit query;           /* asked and not answered: ControlBlock::query != answered_query_ */
bit report_progress; /* XQueue::report_progress_ */

/* ipc::RingScheduler. The release order of the mark is what makes the counters and the dependency visible with it. */
inline ring() {
#ifndef MUTATION_RING_IS_UNORDERED
  !dependency_pending;
#endif
  dirty = 1;
  bell = 1
}

/* XQueue::RetiredUpTo, by whoever learns that `number` commands have finished. The device's report may have been first:
 * then the one who learns of it rings all the same. */
inline retired_up_to(number) {
  atomic {
    if
    :: retired < number -> retired = number; news = 1
    :: else -> news = 0
    fi
  }
#ifdef MUTATION_SILENT_REPORT
  if
  :: news == 0 -> goto known
  :: else
  fi;
#endif
  if
  :: tracked -> seen = submitted
  :: else -> goto known
  fi;
  if
  :: number >= seen -> wanted = 1
  :: else -> atomic { wanted = report_progress; report_progress = 0 }
  fi;
#ifndef MUTATION_NO_RING_AT_END
  if
  :: wanted -> ring()
  :: else
  fi;
#endif
known:
  news = 0; seen = 0; wanted = 0
}

active proctype launching_thread() {
  byte number, seen;
  bit news, wanted, flags;
  /* What QuietSpan remembers of the last launch that was not quiet; 0: nothing. */
  byte quiet_after, quiet_retired;
  do
  :: number < COMMANDS ->
    number++;
    if
    :: number == COMMANDS -> dependency_pending = 1; ring() /* Agent::AddDependency */
    :: else
    fi;
    /* XQueue::LaunchBegin */
#ifdef MUTATION_COUNTER_IS_NO_BARRIER
    (submitted_pending == 0);
    submitted_pending = number;
#else
    submitted = number;
#endif
    flags = tracked;
    /* FlowState::Quiet. The flags were set then as well. */
    if
#ifdef MUTATION_QUIET_IN_SPITE_OF_PROGRESS
    :: flags && quiet_after -> goto launch
#else
    :: flags && quiet_after && retired == quiet_retired -> goto launch
#endif
    :: else
    fi;
    if
    :: flags -> seen = retired
    :: else -> goto launch
    fi;
#ifndef MUTATION_NO_RING_AT_BEGIN
    if
    :: seen + 1 >= number -> ring()
    :: else
    fi;
#endif
    /* DeviceGates::BeforeLaunch. It asks again what has retired. */
    atomic { quiet_after = number; quiet_retired = retired };
launch:
    flags = 0; seen = 0;
    launched = number;
#ifndef QUERIES
end_waits:
    if
    :: done >= number -> retired_up_to(number) /* the program waits */
    :: number < COMMANDS                       /* or launches ahead */
    fi
#endif
  :: else -> break
  od
}

/* Finishes commands in order, and reports some of them: a progress write changes `retired` and does not ring. It may stop
 * forever, as at a gate. */
active proctype device() {
end:
  do
  :: atomic { !halted && done < launched -> done++ }
  :: atomic { !halted && done < launched -> halted = 1 }
  :: atomic { retired < done -> retired = done }
  od
}

/* Plain stores reach memory. */
active proctype memory() {
end:
  do
  :: atomic { tracked_pending -> tracked = tracked_stored; tracked_pending = 0; tracked_stored = 0 }
  :: atomic { dependency_pending -> dependency = 1; dependency_pending = 0 }
#ifdef MUTATION_COUNTER_IS_NO_BARRIER
  :: atomic { submitted_pending -> submitted = submitted_pending; submitted_pending = 0 }
#endif
  od
}

/* Queues::Observe. `retired` first: the pair never shows more retired than submitted. */
inline observe() {
  known_retired = retired;
  known_submitted = submitted;
  known_dependency = dependency
}

/* Queues::SetControl stores the flag. The one before is in memory long since: a round lies between. */
inline set_tracked(value) {
  atomic { !tracked_pending -> tracked_stored = value; tracked_pending = 1; tracks = value }
}

active proctype server() {
end:
  do
  :: bell ->
    bell = 0;
    /* Queues::ReadDoorbell */
#ifdef MUTATION_READ_BEFORE_CLEAR
    if
    :: dirty -> observe(); dirty = 0
    :: else
    fi
#else
    if
    :: dirty -> dirty = 0; observe()
    :: else
    fi
#endif
  :: !tracks && rivals_left > 0 ->
    rivals_left--;
    set_tracked(1);
    /* Queues::ObserveNewlyTracked */
#ifndef MUTATION_NO_RECHECK
#ifndef MUTATION_NO_FENCE
    !tracked_pending;
#endif
    observe()
#endif
  :: tracks && rivals_left > 0 -> set_tracked(0) /* the rival has gone; another may come */
#ifdef QUERIES
  /* Watch::Step and Queues::Query, while another queue is held. The model queries again only if there is something to learn,
   * because other queries change nothing. */
  :: atomic {
       !bell && tracks && !query && known_submitted > known_retired &&
       (retired > known_retired || (done == launched && done > known_retired)) -> query = 1
     }
#endif
  od
}

#ifdef QUERIES
active proctype agent() {
  byte newest, seen;
  bit news, wanted;
end:
  do
  :: atomic { query -> query = 0 }; /* XQueue::AnswerQuery */
    report_progress = (retired < submitted);
#ifndef MUTATION_QUERY_UNANSWERED
    ring();
#endif
    /* XQueue::RequestProgress, XQueue::AskDevice */
    newest = launched;
    if
    :: retired < submitted && done >= newest -> retired_up_to(newest)
    :: else
    fi;
    newest = 0
  od
}
#endif

active proctype quiet() {
  timeout;
  assert(halted || done == COMMANDS);
  assert(!tracks || (known_submitted > known_retired) == (submitted > done)); /* ready or idle */
  assert(!tracks || known_dependency == dependency)
}
