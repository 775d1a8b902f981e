/* Every hold ends: gates, the agent, the connection, and the death and the hang of server and client.
 *
 * Two processes with two queues each, three classes, one device, highest priority first. Process 0 has device-side gates, at
 * which the device reads `gate` and `open`. Process 1 has host gates, which its agent opens. The server decides in rounds and
 * stores word by word. It may die or hang between any two stores, and later continue where it was.
 *
 * The newest command of a queue (with host gates, another one may be in the driver before it, `ahead`):
 *
 *                submitted            driver has it              retires
 *     IDLE ----------------> SAW_RUN --------------> IN_DRIVER ---------> IDLE
 *                      \---> SAW_HOLD --> AT_GATE --> BEHIND_GATE (host gates: the agent makes it IN_DRIVER)
 *
 * Wake-ups are assumed to be correct here (wakeup.pml checks them): `news` is the doorbell with its dirty bits. Time is not
 * modeled: a timer may expire at any moment before the event that it waits for. The heartbeat expires when the server hangs,
 * or, once, when it is only slow.
 *
 * Checked: if nothing more can happen, every live program has retired all its commands and no queue is held. Every execution is
 * finite. So there is no deadlock, no hold without a holder, and there is progress. The only fairness that this needs: a process
 * that can go on does so in the end.
 *
 * Faults; the command line sets the number of each: DEATHS and HANGS of the server, RESUMES of a hung one, RESTARTS of a dead
 * one; KILLS and STOPS of clients, CONTS of stopped ones; ALARMS: heartbeats that expire although the server lives; LEAVES:
 * clients that disconnect and stay away (XHintSetScheduler).
 */

#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef HANGS
#define HANGS 0
#endif
#ifndef RESUMES
#define RESUMES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef CONTS
#define CONTS 0
#endif
#ifndef ALARMS
#define ALARMS 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef COMMANDS
#define COMMANDS 1 /* of each queue; the first of each process has one more */
#endif

#ifndef LAST_COMMANDS
#define LAST_COMMANDS COMMANDS /* of queue 3, which is as urgent as queue 2 */
#endif

#define NP 2
#define NQ 4
#define PROCESS(q) ((q) >> 1)
#define HOST_GATES(q) ((q) >= 2)
#define PRIORITY(q) ((q) == 0 -> 2 : ((q) == 1 -> 0 : 1))

#define RUN 1
#define HOLD 0

mtype:queue = { IDLE, SAW_RUN, SAW_HOLD, AT_GATE, BEHIND_GATE, IN_DRIVER };
mtype:queue state[NQ] = IDLE;
byte todo[NQ];
bit ahead[NQ];
#define WORKS(q) (state[q] != IDLE || ahead[q])

/* The segment. `open` is per queue in the code; one thread writes it for all of a process. */
bit gate[NQ] = RUN;
bit flags[NQ];
bit open[NP] = 1;
bit news[NP];

/* The connection. */
mtype:link = { NONE, HELLO, UP, LEFT };
mtype:link link[NP] = NONE; /* as the client has it */
bit hello[NP], welcome[NP], created[NP], wake[NP]; /* sent, and not received yet */
bit accepted[NP];   /* the server has a connection of this process */
bit closed[NP];     /* the client has closed it, and the server has not noticed */
bit registered[NP]; /* the server knows the queues */

bit watching[NP]; /* the agent keeps a heartbeat */
bit dead[NP], stopped[NP];

mtype:server = { ALIVE, HUNG, KILLED, DEAD };
mtype:server server_is = ALIVE;

/* What the server knows, and what it last wrote for its clients. */
bit ready[NQ];
bit written[NQ] = RUN;
bit written_flags[NQ];
bit absent[NP];
#ifdef MUTATION_OLD_CONNECTION_KEPT
bit old[NP]; /* an older connection of this process, closed by it */
bit old_ready[NQ];
#endif

byte deaths = DEATHS, hangs = HANGS, resumes = RESUMES, restarts = RESTARTS, kills = KILLS, stops = STOPS, conts = CONTS,
     alarms = ALARMS, leaves = LEAVES;

/* XQueue::Held */
#define HELD(q) (gate[q] == HOLD && !open[PROCESS(q)])
#define HAS_TAKEN(q) (gate[q] == HOLD || flags[q])
#define TAKEN(p) (HAS_TAKEN(2 * (p)) || HAS_TAKEN(2 * (p) + 1))

/* ---- programs and devices ---- */

inline launches(q) {
  if
  :: state[q] == IDLE || state[q] == IN_DRIVER ->
    ahead[q] = (state[q] == IN_DRIVER);
    todo[q]--; news[PROCESS(q)] = 1;
    state[q] = (HOST_GATES(q) && HELD(q) -> SAW_HOLD : (STOPS > 0 -> SAW_RUN : IN_DRIVER))
  :: state[q] == SAW_RUN -> state[q] = IN_DRIVER
  :: state[q] == SAW_HOLD -> state[q] = AT_GATE
  :: state[q] == AT_GATE ->
#ifdef MUTATION_NO_RECHECK_AFTER_GATE
    state[q] = BEHIND_GATE
#else
    state[q] = (HELD(q) -> BEHIND_GATE : IN_DRIVER)
#endif
  fi
}

inline opens_host_gate(q) {
  if
  :: state[q] == BEHIND_GATE && !HELD(q) -> state[q] = IN_DRIVER
  :: else
  fi
}

#define CAN_LAUNCH(q) (!dead[PROCESS(q)] && !stopped[PROCESS(q)] && \
  (((state[q] == IDLE || (HOST_GATES(q) && state[q] == IN_DRIVER && !ahead[q])) && todo[q] > 0) || state[q] == SAW_RUN || \
   state[q] == SAW_HOLD || state[q] == AT_GATE))
#define CAN_RETIRE(q) \
  (ahead[q] || (state[q] == IN_DRIVER && (HOST_GATES(q) || gate[q] == RUN || open[PROCESS(q)])))

inline retires(q) {
  if
  :: ahead[q] -> ahead[q] = 0
  :: else -> state[q] = IDLE
  fi;
  if
  :: !stopped[PROCESS(q)] -> news[PROCESS(q)] = 1
  :: else /* who would ring is stopped */
  fi
}

inline dies(p) {
  kills--;
  dead[p] = 1;
  state[2 * p] = IDLE; state[2 * p + 1] = IDLE; todo[2 * p] = 0; todo[2 * p + 1] = 0;
  ahead[2 * p] = 0; ahead[2 * p + 1] = 0;
  closed[p] = accepted[p];
  hello[p] = 0; created[p] = 0; stopped[p] = 0; watching[p] = 0
}

active proctype world() {
#ifdef SMALL
  atomic { todo[0] = 1; todo[1] = 1; todo[2] = 2; todo[3] = 0 };
#else
  atomic { todo[0] = 2; todo[1] = 1; todo[2] = 2; todo[3] = 1 };
#endif
  do
  :: atomic { CAN_LAUNCH(0) -> launches(0) }
  :: atomic { CAN_LAUNCH(1) -> launches(1) }
  :: atomic { CAN_LAUNCH(2) -> launches(2) }
  :: atomic { CAN_LAUNCH(3) -> launches(3) }
  :: atomic { CAN_RETIRE(0) -> retires(0) }
  :: atomic { CAN_RETIRE(1) -> retires(1) }
  :: atomic { CAN_RETIRE(2) -> retires(2) }
  :: atomic { CAN_RETIRE(3) -> retires(3) }
#if KILLS > 0
  :: atomic { kills > 0 && !dead[0] -> dies(0) }
  :: atomic { kills > 0 && !dead[1] -> dies(1) }
#endif
#if STOPS > 0
  :: atomic { stops > 0 && !stopped[0] && !dead[0] -> stops--; stopped[0] = 1 }
  :: atomic { stops > 0 && !stopped[1] && !dead[1] -> stops--; stopped[1] = 1 }
  :: atomic { conts > 0 && stopped[0] -> conts--; stopped[0] = 0; news[0] = 1 }
  :: atomic { conts > 0 && stopped[1] -> conts--; stopped[1] = 0; news[1] = 1 }
#endif
  :: atomic { server_is == HUNG && resumes > 0 -> resumes--; server_is = ALIVE }
  :: atomic { server_is == HUNG && deaths > 0 -> deaths--; server_is = KILLED }
  od
}

/* ---- the agent: a thread that never calls the driver (driver.pml says why) ---- */

/* Agent::AttendQueues */
inline attends(p) {
  opens_host_gate(2 * p);
  opens_host_gate(2 * p + 1)
}

/* Gives everything back and closes the connection. From the first store on, nothing that the server stores holds a queue. */
inline gives_back(p, next) {
#ifndef MUTATION_OPEN_NOT_SET
  open[p] = 1;
#endif
  atomic {
    gate[2 * p] = RUN; gate[2 * p + 1] = RUN; flags[2 * p] = 0; flags[2 * p + 1] = 0;
    attends(p)
  };
  atomic {
    if
    :: accepted[p] -> closed[p] = 1
    :: else
    fi;
    created[p] = 0; welcome[p] = 0; wake[p] = 0; watching[p] = 0;
    link[p] = next
  }
}

proctype agent(bit p) {
  do
  :: atomic { dead[p] -> break }
#ifdef MUTATION_AGENT_SILENCES_LATE
  :: atomic { !stopped[p] && wake[p] -> attends(p) };
    atomic { wake[p] = 0; watching[p] = TAKEN(p) }
#else
  :: atomic { !stopped[p] && wake[p] -> wake[p] = 0; watching[p] = 1 };
    atomic { attends(p); watching[p] = TAKEN(p) }
#endif
  :: !stopped[p] && link[p] == NONE && (server_is == ALIVE || server_is == HUNG) ->
    atomic {
      if
      :: server_is != DEAD && server_is != KILLED -> link[p] = HELLO; hello[p] = 1
      :: else
      fi
    }
  :: atomic { !stopped[p] && link[p] == HELLO && welcome[p] -> welcome[p] = 0; link[p] = UP };
    atomic {
      gate[2 * p] = RUN; gate[2 * p + 1] = RUN; /* what a server that is gone has stored late */
      open[p] = 0;
      created[p] = accepted[p]
    }
  :: atomic { !stopped[p] && link[p] == HELLO && !hello[p] && !accepted[p] -> link[p] = NONE }
  /* The server is gone. */
  :: !stopped[p] && link[p] == UP && !accepted[p] ->
#ifdef MUTATION_DEATH_UNNOTICED
    link[p] = LEFT
#else
    gives_back(p, NONE)
#endif
#ifndef MUTATION_NO_HEARTBEAT
  :: atomic {
       !stopped[p] && link[p] == UP && watching[p] && (server_is == HUNG || alarms > 0) ->
       if
       :: server_is != HUNG -> alarms--
       :: else
       fi
     };
     gives_back(p, NONE)
#endif
#if LEAVES > 0
  :: atomic { !stopped[p] && link[p] == UP && leaves > 0 -> leaves-- };
    gives_back(p, LEFT)
#endif
  od
}

/* ---- the server: rounds on one thread ---- */

inline dies_as_server() {
  atomic {
    server_is = DEAD;
    for (p : 0 .. NP - 1) {
      accepted[p] = 0; closed[p] = 0; registered[p] = 0; hello[p] = 0; welcome[p] = 0; created[p] = 0; absent[p] = 0
#ifdef MUTATION_OLD_CONNECTION_KEPT
      ; old[p] = 0
#endif
    }
    for (q : 0 .. NQ - 1) { ready[q] = 0; written[q] = RUN; written_flags[q] = 0 }
    p = 0; q = 0; late_wake[0] = 0; late_wake[1] = 0;
    decided[0] = 0; decided[1] = 0; decided[2] = 0; decided[3] = 0
  }
}

/* Before each of its steps the server may stop forever, or for a while. */
#if DEATHS > 0 || HANGS > 0
#define MAY_FAIL \
  :: atomic { deaths > 0 -> deaths--; goto die } \
  :: atomic { hangs > 0 -> hangs--; server_is = HUNG }; \
    if \
    :: atomic { server_is == ALIVE } \
    :: atomic { server_is == KILLED -> goto die } \
    fi
#else
#define MAY_FAIL
#endif

/* Queues::Forget */
inline forgets(p) {
  registered[p] = 0; absent[p] = 0;
  ready[2 * p] = 0; ready[2 * p + 1] = 0;
  written[2 * p] = RUN; written[2 * p + 1] = RUN; written_flags[2 * p] = 0; written_flags[2 * p + 1] = 0
}

#ifdef MUTATION_OLD_CONNECTION_KEPT
#define IS_NEWS(p) (news[p] && (registered[p] || old[p]))
#define READY(q) ((ready[q] && !absent[PROCESS(q)]) || (old[PROCESS(q)] && old_ready[q]))
#else
#define IS_NEWS(p) (news[p] && registered[p])
#define READY(q) (ready[q] && !absent[PROCESS(q)])
#endif
#ifdef MUTATION_STOPPED_STILL_CLAIMS
#define STOP_UNNOTICED(p) false
#else
#define STOP_UNNOTICED(p) (registered[p] && stopped[p] != absent[p])
#endif
#ifdef MUTATION_CLIENT_DEATH_UNNOTICED
#define CLOSE_UNNOTICED(p) (closed[p] && !dead[p])
#else
#define CLOSE_UNNOTICED(p) closed[p]
#endif
#define HAPPENED(p) (hello[p] || CLOSE_UNNOTICED(p) || created[p] || IS_NEWS(p) || STOP_UNNOTICED(p))

/* Server::HandleEvent, RemoveClosed, ProcessWatch::Check: one round may see only a part of what has happened. */
inline takes_events(p) {
  if
  :: CLOSE_UNNOTICED(p) && !hello[p] -> closed[p] = 0; accepted[p] = 0; forgets(p)
  /* A hello with the segment of an older connection: that one ends first. */
  :: hello[p] ->
    hello[p] = 0;
#ifdef MUTATION_OLD_CONNECTION_KEPT
    if
    :: closed[p] ->
      old[p] = 1; old_ready[2 * p] = ready[2 * p]; old_ready[2 * p + 1] = ready[2 * p + 1]; closed[p] = 0
    :: else
    fi;
#endif
    closed[p] = 0; forgets(p); accepted[p] = 1; welcome[p] = 1
#ifdef MUTATION_OLD_CONNECTION_KEPT
  :: old[p] -> old[p] = 0; old_ready[2 * p] = 0; old_ready[2 * p + 1] = 0
#endif
  :: created[p] && !closed[p] ->
    /* Agents::CreateQueue */
    created[p] = 0; registered[p] = 1; news[p] = 0;
    flags[2 * p] = 0; flags[2 * p + 1] = 0; gate[2 * p] = RUN; gate[2 * p + 1] = RUN;
    ready[2 * p] = WORKS(2 * p); ready[2 * p + 1] = WORKS(2 * p + 1)
  :: IS_NEWS(p) ->
    news[p] = 0;
#ifdef MUTATION_OLD_CONNECTION_KEPT
    if
    :: old[p] -> old_ready[2 * p] = WORKS(2 * p); old_ready[2 * p + 1] = WORKS(2 * p + 1)
    :: else ->
#endif
    ready[2 * p] = WORKS(2 * p);
    ready[2 * p + 1] = WORKS(2 * p + 1)
#ifdef MUTATION_OLD_CONNECTION_KEPT
    fi
#endif
  :: STOP_UNNOTICED(p) -> absent[p] = stopped[p]
  :: else
  fi
}

#define IS_BETTER(r, q) (registered[PROCESS(r)] && READY(r) && PRIORITY(r) > PRIORITY(q))
#define RUNS(q) (!READY(q) || !(IS_BETTER(0, q) || IS_BETTER(1, q) || IS_BETTER(2, q) || IS_BETTER(3, q)))
/* True if there is a process of another class. */
#define IS_GATED(q) (registered[PROCESS(q)] && (PROCESS(q) == 0 || registered[0]))

/* Queues::SetControl, for flags: a change makes the agent keep its heartbeat, or end it. */
inline writes_flags(p) {
  if
  :: registered[p] && (written_flags[2 * p] != IS_GATED(2 * p)) ->
    written_flags[2 * p] = IS_GATED(2 * p); written_flags[2 * p + 1] = written_flags[2 * p];
    flags[2 * p] = written_flags[2 * p]; flags[2 * p + 1] = written_flags[2 * p];
#ifdef MUTATION_GATE_BEFORE_WAKE
    late_wake[p] = 1
#else
    wake[p] = 1
#endif
  :: else
  fi
}

/* Queues::SetControl, for a gate. */
#define MUST_WRITE(q, word) (registered[PROCESS(q)] && written[q] != word && decided[q] == word)
inline writes_gates(word) {
  do
  :: atomic { MUST_WRITE(0, word) -> stores_gate(0) }
  :: atomic { !MUST_WRITE(0, word) && MUST_WRITE(1, word) -> stores_gate(1) }
  :: atomic { !MUST_WRITE(0, word) && !MUST_WRITE(1, word) && MUST_WRITE(2, word) -> stores_gate(2) }
  :: atomic { !MUST_WRITE(0, word) && !MUST_WRITE(1, word) && !MUST_WRITE(2, word) && MUST_WRITE(3, word) -> stores_gate(3) }
  :: atomic { !MUST_WRITE(0, word) && !MUST_WRITE(1, word) && !MUST_WRITE(2, word) && !MUST_WRITE(3, word) -> break }
  MAY_FAIL
  od
}
inline stores_gate(q) {
  gate[q] = decided[q]; written[q] = decided[q];
#ifndef MUTATION_NO_WAKE_AT_OPENING
  if
  :: HOST_GATES(q) -> late_wake[PROCESS(q)] = 1
  :: else
  fi
#endif
}

active proctype server() {
  byte p, q;
  bit decided[NQ], late_wake[NP];
alive:
  do
  :: atomic {
       HAPPENED(0) || HAPPENED(1) ->
       takes_events(0);
       takes_events(1);
       /* Scheduler::Decide: which queues run. The flags are stored before the gates, and the message is sent between. */
       decided[0] = RUNS(0); decided[1] = RUNS(1); decided[2] = RUNS(2); decided[3] = RUNS(3);
       writes_flags(0);
       writes_flags(1)
     };
    writes_gates(HOLD);
    writes_gates(RUN);
    do
    :: atomic {
         /* Wakes::Send */
         if :: late_wake[0] -> wake[0] = 1; late_wake[0] = 0 :: else fi;
         if :: late_wake[1] -> wake[1] = 1; late_wake[1] = 0 :: else fi;
         decided[0] = 0; decided[1] = 0; decided[2] = 0; decided[3] = 0;
         break
       }
    MAY_FAIL
    od
  MAY_FAIL
  od;
die:
  dies_as_server();
#if RESTARTS > 0
  atomic { restarts > 0 -> restarts--; server_is = ALIVE };
  goto alive
#endif
}

#define DONE(q) (dead[PROCESS(q)] || stopped[PROCESS(q)] || (todo[q] == 0 && !WORKS(q) && !HELD(q)))

active proctype quiet() {
  timeout;
  assert(DONE(0));
  assert(DONE(1));
  assert(DONE(2));
  assert(DONE(3))
}

init {
  atomic { run agent(0); run agent(1) }
}
