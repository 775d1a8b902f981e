/* Slices and turns: two processes with the shortest slice make no progress, one that is off the device makes none, and calls that
 * set slices may fail.
 *
 * Three processes with one queue each. Process 0 is urgent and has the long slice. Processes 1 and 2 have the shortest slice and take
 * turns: they are equal, or, with -DCLASSES=3, 1 is more urgent than 2. The scheduler knows exactly which processes have work
 * (wakeup.pml checks this).
 *
 *   server: decides --slice--> socket of one message --> agent: wanted --control call--> device: effective
 *                   \-- full: remembered, sent later             \-- fails, or takes effect and reports a failure: again
 *
 * Time is not modeled. A turn is over when its process has retired something in it, or when it cannot although all slices are set.
 * So a turn is long enough for a command. The watchdog acts on a queue that makes no progress although all slices are set.
 *
 * Checked: if nothing more can happen, all work is done, no live process is off the device, and each process without a rival or
 * without a server has the driver's slice. Every execution is finite.
 *
 * -DHIDDEN: the urgent command waits for the first command of process 2, and the scheduler does not know it.
 * FAILURES: control calls that fail. -DDEATH: the server may die or hang forever; its clients notice it by their heartbeat.
 */

#ifndef FAILURES
#define FAILURES 0
#endif
#ifndef CLASSES
#define CLASSES 2
#endif
#ifndef WINDOWS
#define WINDOWS 2 /* windows of the watchdog that end without progress; the last one stays open */
#endif

#define NP 3
#if CLASSES == 3
#define PRIORITY(p) (2 - (p))
#else
#define PRIORITY(p) ((p) == 0 -> 2 : 1)
#endif

#define RUN 1
#define HOLD 0

/* OFF: its channels are disabled. EMPTY: no message. UNKNOWN: a call has failed. */
mtype = { DRIVERS, LONG, SHORTEST, OFF, EMPTY, UNKNOWN };

byte todo[NP];
byte finished[NP];
bit works[NP]; /* a command is in the driver */
bit leaves[NP]; /* it ends after its work */
bit gone[NP];
bit gate[NP] = RUN;

mtype effective[NP] = DRIVERS; /* on the device */
mtype wanted[NP] = DRIVERS;    /* by the agent */
mtype known[NP] = DRIVERS;     /* what the agent knows to be set */
mtype socket[NP] = EMPTY;
mtype unsent[NP] = EMPTY;
mtype reported[NP] = DRIVERS; /* what the scheduler has said last */

byte turn; /* 0: nobody's */
bit retired_in_turn;
bit window; /* the watchdog lets all processes run */
byte windows = WINDOWS;
byte failures = FAILURES;
bit server_gone;
#ifdef MUTATION_OFF_IS_STALLED
bit stalled[NP];
#endif

/* ---- the device's rules ---- */

#define ON(p) (works[p] && effective[p] != OFF) /* also one that stands at its gate */
#define OTHER_ON(p) (((p) != 0 && ON(0)) || ((p) != 1 && ON(1)) || ((p) != 2 && ON(2)))
#ifdef HIDDEN
#define WAITS(p) ((p) == 0 && finished[2] == 0)
#else
#define WAITS(p) false
#endif
#define CAN_RETIRE(p) \
  (ON(p) && (gate[p] == RUN || server_gone) && !WAITS(p) && !(effective[p] == SHORTEST && OTHER_ON(p)))

/* ---- programs, and their agents ---- */

/* ProcessSlices::Apply, level3.cc */
inline applies(p) {
  if
  :: wanted[p] == known[p]
  :: wanted[p] != known[p] -> effective[p] = wanted[p]; known[p] = wanted[p]
  :: wanted[p] != known[p] && failures > 0 -> /* without effect */
    failures--;
#ifdef MUTATION_FAILURE_TAKEN_FOR_SUCCESS
    known[p] = wanted[p]
#else
    known[p] = UNKNOWN
#endif
  :: wanted[p] != known[p] && failures > 0 -> /* takes effect, and reports a failure */
    failures--;
    effective[p] = wanted[p];
#ifndef MUTATION_FAILURE_TAKEN_FOR_NO_EFFECT
    known[p] = UNKNOWN
#endif
  fi
}

proctype process(byte p) {
  do
  :: atomic { todo[p] > 0 && !works[p] -> todo[p]--; works[p] = 1 }
  :: atomic {
       CAN_RETIRE(p) ->
       works[p] = 0; finished[p]++;
       if
       :: turn == p -> retired_in_turn = 1
       :: else
       fi;
       if
       :: p == 0 && window -> window = 0
       :: else
       fi
#ifdef MUTATION_OFF_IS_STALLED
       ; stalled[p] = 0
#endif
     }
  /* The agent. */
  :: atomic { !server_gone && socket[p] != EMPTY -> wanted[p] = socket[p]; socket[p] = EMPTY; applies(p) }
  :: atomic { wanted[p] != known[p] -> applies(p) } /* again */
#ifndef MUTATION_SLICE_KEPT_AFTER_DEATH
  :: atomic { server_gone && (wanted[p] != DRIVERS || socket[p] != EMPTY) -> wanted[p] = DRIVERS; socket[p] = EMPTY }
#endif
  :: atomic { leaves[p] && todo[p] == 0 && !works[p] -> gone[p] = 1; socket[p] = EMPTY; effective[p] = DRIVERS; break }
  od
}

/* ---- the scheduler and the server ---- */

#ifdef MUTATION_OFF_IS_STALLED
#define READY(p) (works[p] && !stalled[p])
#else
#define READY(p) works[p]
#endif
#define IS_BETTER(r, p) (!gone[r] && READY(r) && PRIORITY(r) > PRIORITY(p))
#define MAY_RUN(p) (window || !READY(p) || !(IS_BETTER(0, p) || IS_BETTER(1, p) || IS_BETTER(2, p)))

/* Policy::Divide of HPF */
#if CLASSES == 3
#define MOST_URGENT(p) ((p) == 0 || ((p) == 1 && gone[0]) || (gone[0] && gone[1]))
#define ALL_EQUAL (gone[0] + gone[1] + gone[2] >= 2)
#else
#define MOST_URGENT(p) ((p) == 0)
#define ALL_EQUAL (gone[0] || (gone[1] && gone[2]))
#endif
#define SLICE(p) (ALL_EQUAL -> DRIVERS : (MOST_URGENT(p) -> LONG : SHORTEST))

/* Competes for turns. */
#define COMPETES(p) (!gone[p] && SLICE(p) == SHORTEST && READY(p) && MAY_RUN(p))
#define ANOTHER(p) ((p) == 1 -> 2 : 1)
#ifdef MUTATION_NO_TURNS
#define IS_OFF(p) false
#else
#define IS_OFF(p) (SLICE(p) == SHORTEST && READY(p) && turn != (p) && (COMPETES(1) || COMPETES(2) || reported[p] == OFF))
#endif
#ifdef MUTATION_WINDOW_KEEPS_SLICES
#define MUST_REPORT(p) (IS_OFF(p) -> OFF : SLICE(p))
#else
#define MUST_REPORT(p) (window -> DRIVERS : (IS_OFF(p) -> OFF : SLICE(p)))
#endif

#define SETTLED(p) \
  (gone[p] || (socket[p] == EMPTY && unsent[p] == EMPTY && wanted[p] == reported[p] && known[p] == wanted[p]))
#define ALL_SETTLED (SETTLED(0) && SETTLED(1) && SETTLED(2))
#define MUST_CHOOSE (!window && !COMPETES(turn) && (COMPETES(1) || COMPETES(2)))
#define DUE(p) (!gone[p] && (reported[p] != MUST_REPORT(p) || gate[p] != MAY_RUN(p)))
/* All decisions have been sent. */
#define DECIDED (!MUST_CHOOSE && !DUE(0) && !DUE(1) && !DUE(2))

/* Agents::SetSlice */
inline sends_slice(p) {
  reported[p] = MUST_REPORT(p);
  if
  :: socket[p] == EMPTY && unsent[p] == EMPTY -> socket[p] = reported[p]
  :: else ->
#ifdef MUTATION_SLICE_NOT_RESENT
    skip
#else
    unsent[p] = reported[p]
#endif
  fi
}

inline publishes(p) {
  gate[p] = MAY_RUN(p);
  if
  :: reported[p] != MUST_REPORT(p) -> sends_slice(p)
  :: else
  fi
}

active proctype server() {
  atomic {
#ifndef DEATH
    if :: leaves[0] = 1 :: true fi;
    if :: leaves[1] = 1; leaves[2] = 1 :: true fi;
#endif
    todo[0] = 1; todo[1] = 2; todo[2] = 1;
    run process(0); run process(1); run process(2)
  };
  do
  :: atomic { server_gone -> break }
#ifdef DEATH
  :: atomic { server_gone = 1; break }
#endif
  /* Turns::Update */
  :: atomic { MUST_CHOOSE -> turn = (COMPETES(1) -> 1 : 2); retired_in_turn = 0 }
  :: atomic {
       DECIDED && !window && turn != 0 && COMPETES(turn) && COMPETES(ANOTHER(turn)) &&
       (retired_in_turn || (ALL_SETTLED && !CAN_RETIRE(turn))) ->
       turn = ANOTHER(turn); retired_in_turn = 0
     }
  :: atomic { !MUST_CHOOSE && DUE(0) -> publishes(0) }
  :: atomic { !MUST_CHOOSE && DUE(1) -> publishes(1) }
  :: atomic { !MUST_CHOOSE && DUE(2) -> publishes(2) }
  /* AgentOutbox::SendKept */
  :: atomic { unsent[0] != EMPTY && socket[0] == EMPTY -> socket[0] = unsent[0]; unsent[0] = EMPTY }
  :: atomic { unsent[1] != EMPTY && socket[1] == EMPTY -> socket[1] = unsent[1]; unsent[1] = EMPTY }
  :: atomic { unsent[2] != EMPTY && socket[2] == EMPTY -> socket[2] = unsent[2]; unsent[2] = EMPTY }
#ifndef MUTATION_NO_WATCHDOG
  /* Watch: the urgent process retires nothing while others are held. */
  :: atomic {
       DECIDED && !window && works[0] && ALL_SETTLED && !CAN_RETIRE(0) && (gate[1] == HOLD || gate[2] == HOLD) -> window = 1
     }
  :: atomic { DECIDED && window && windows > 0 && works[0] -> windows--; window = 0 }
  :: atomic { window && !works[0] -> window = 0 }
#endif
#ifdef MUTATION_OFF_IS_STALLED
  :: atomic { DECIDED && works[1] && gate[1] == RUN && ALL_SETTLED && !CAN_RETIRE(1) && !stalled[1] -> stalled[1] = 1 }
  :: atomic { DECIDED && works[2] && gate[2] == RUN && ALL_SETTLED && !CAN_RETIRE(2) && !stalled[2] -> stalled[2] = 1 }
#endif
  od
}

#define DONE(p) (todo[p] == 0 && !works[p])
#define ALONE(p) ((p == 0 || gone[0]) && (p == 1 || gone[1]) && (p == 2 || gone[2]))
#define GIVEN_BACK(p) (gone[p] || (effective[p] != OFF && (!(server_gone || ALONE(p)) || effective[p] == DRIVERS)))

active proctype quiet() {
  timeout;
  assert(DONE(0) && DONE(1) && DONE(2));
  assert(GIVEN_BACK(0) && GIVEN_BACK(1) && GIVEN_BACK(2))
}
