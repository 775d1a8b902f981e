/* Giving back never waits for the driver: barriers, blocking calls, the agent and the thread that calls the driver.
 *
 * One process has an urgent queue 0 and a less urgent queue 1. The priority of a rival process is between them, and the rival
 * comes and goes. Queue 1 is held while one of the others has work. The process is off the device while the rival has work.
 * Programs launch ahead and never wait. Two threads of the program also make a call that waits for everything (cuMemFree).
 *
 * The driver's rules, as measured:
 *   - a stream takes CAPACITY commands; the next launch waits inside the driver
 *   - while a thread is in cuMemFree, launches of the process wait
 *   - a query whether a stream has finished waits while a launch waits at that stream
 *
 * -DHOST_GATES: queue 1 has host gates, which the agent opens, and no device-side gates.
 *
 * Checked: if nothing more can happen, every command has retired, every thread has ended, and the process is on the device.
 * Every execution is finite.
 */

#ifndef COMMANDS
#define COMMANDS 2 /* of queue 1 */
#endif
#ifndef CAPACITY
#define CAPACITY 1
#endif
#ifndef RIVALS
#define RIVALS 1
#endif
#ifndef QUERIES
#define QUERIES 1
#endif

#define RUN 1
#define HOLD 0

bit gate[2] = RUN;
bit open;
byte forced; /* XQueueTable's forced_open: the number of active barriers */
bit level_lock;

byte submitted[2], in_driver[2], retired[2];
bit launching[2]; /* a thread is inside the driver's launch */
byte freeing;     /* threads inside cuMemFree */
byte ended;       /* threads of the program */
bit off_device;

/* Host gates: one closed gate of queue 1, and everything new is behind it. */
bit closed;
byte before_gate; /* commands in front of it */
bit chain_lock;

/* Messages to the agent: the newest value of each, and a flag that something has changed. */
bit wake, wanted_off;
bit query[2], ask[2];

bit rival_works;
byte rivals = RIVALS, queries = QUERIES;

#define WORKS(q) (submitted[q] > retired[q])
#define HELD(q) (gate[q] == HOLD && !open)
#ifdef HOST_GATES
#define PASSES(q) (q == 0 || !closed || before_gate > 0)
#else
#define PASSES(q) !HELD(q)
#endif

/* ---- program ---- */

/* The driver's launch, entered by XQueue::LaunchBegin's caller or, for a gate, by GateChain::BeforeLaunch. */
inline driver_launch(q) {
  atomic {
    launching[q] = 1;
    in_driver[q] < CAPACITY && !freeing -> in_driver[q]++; launching[q] = 0
  }
}

proctype launcher(bit q; byte commands) {
  byte number;
  bit seen;
  do
  :: number < commands ->
    atomic { number++; submitted[q] = number };
#ifdef HOST_GATES
    /* GateChain::BeforeLaunch, and the check after it: the state may have changed before its gate existed. */
    if
    :: q == 1 ->
      atomic { !chain_lock -> chain_lock = 1; seen = HELD(1) };
#ifdef MUTATION_LOCK_HELD_IN_DRIVER
      (in_driver[1] < CAPACITY && !freeing);
#endif
      atomic {
        chain_lock = 0;
        if
        :: seen && !closed -> closed = 1; before_gate = in_driver[1]; wake = 1; seen = 0
        :: else -> seen = 0
        fi
      }
    :: else
    fi;
#endif
    driver_launch(q)
  :: else -> break
  od;
  atomic { ended++; number = 0 }
}

/* XQueueTable::ForceAllOpen, Suspension::Apply: `open` follows `forced`, decided under the lock. */
inline applies_to_device() {
#ifdef MUTATION_OPEN_DECIDED_UNLOCKED
  value = (forced > 0);
  open = value;
#else
  atomic { !level_lock -> level_lock = 1; value = (forced > 0) };
  atomic { open = value; level_lock = 0; value = 0 }
#endif
}

proctype freer() {
  bit value;
#ifndef MUTATION_NO_BARRIER
  forced++;
  applies_to_device();
#endif
  atomic { wake = 1; freeing++ };
  atomic { in_driver[0] == 0 && in_driver[1] == 0 -> freeing-- }; /* the driver */
#ifndef MUTATION_NO_BARRIER
  forced--;
  applies_to_device();
#endif
  ended++
}

active proctype device() {
  do
  :: atomic { !off_device && in_driver[0] > 0 && PASSES(0) -> in_driver[0]--; retired[0]++ }
  :: atomic {
       !off_device && in_driver[1] > 0 && PASSES(1) ->
       in_driver[1]--; retired[1]++;
       before_gate = (before_gate > 0 -> before_gate - 1 : 0)
     }
  od
}

/* ---- the agent's thread ---- */

/* GateChain::Advance */
inline opens_host_gate() {
  if
  :: closed && !HELD(1) -> closed = 0; before_gate = 0
  :: else
  fi
}

inline asks_driver(q) {
  !(launching[q] && in_driver[q] >= CAPACITY)
}

active proctype agent() {
  do
  :: atomic {
       wake -> wake = 0;
       off_device = wanted_off; /* ProcessSlices::Apply, for a turn: a control call, not the driver's library */
#ifdef HOST_GATES
       if
       :: !chain_lock -> opens_host_gate()
#ifndef MUTATION_NO_RETRY_OF_LOCK
       :: chain_lock -> !chain_lock; opens_host_gate() /* try-lock: it comes back in a while */
#else
       :: chain_lock
#endif
       fi;
#endif
#ifdef MUTATION_AGENT_CALLS_DRIVER
       if
       :: query[0] -> query[0] = 0; asks_driver(0)
       :: query[1] -> query[1] = 0; asks_driver(1)
       :: else
       fi
#else
       if :: query[0] -> query[0] = 0; ask[0] = 1 :: else fi;
       if :: query[1] -> query[1] = 0; ask[1] = 1 :: else fi
#endif
     }
  od
}

/* ---- the thread that calls the driver: nothing waits for it ---- */

active proctype driver_caller() {
  do
  :: atomic { ask[0] -> ask[0] = 0; asks_driver(0) }
  :: atomic { ask[1] -> ask[1] = 0; asks_driver(1) }
  od
}

/* ---- server and rival ---- */

#define MUST_HOLD_1 (WORKS(0) || rival_works)

active proctype server() {
  do
  :: atomic { gate[1] == RUN && MUST_HOLD_1 -> gate[1] = HOLD }
  :: atomic { gate[1] == HOLD && !MUST_HOLD_1 -> gate[1] = RUN; wake = 1 }
  :: atomic { wanted_off != rival_works -> wanted_off = rival_works; wake = 1 }
  :: atomic { queries > 0 && WORKS(0) -> queries--; query[0] = 1; wake = 1 }
  :: atomic { queries > 0 && WORKS(1) -> queries--; query[1] = 1; wake = 1 }
  od
}

active proctype rival() {
  do
  :: atomic { rivals > 0 && !rival_works -> rivals--; rival_works = 1 }
  :: atomic { rival_works -> rival_works = 0 }
  od
}

active proctype quiet() {
  timeout;
  assert(ended == 4);
  assert(!WORKS(0) && !WORKS(1));
  assert(!off_device);
  assert(!HELD(0) && !HELD(1) && !open)
}

init {
  atomic { run launcher(0, 1); run launcher(1, COMMANDS); run freer(); run freer() }
}
