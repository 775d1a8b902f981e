// What clang's thread-safety analysis (-Wthread-safety) reads: which lock guards what. Empty for gcc. CI
// compiles all that takes locks with the analysis as an error (scripts/thread_safety.py).
#pragma once

#ifdef __clang__
#define XSCHED_THREAD_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define XSCHED_THREAD_ANNOTATION(...)
#endif

// A class that is a lock, and a class that holds one from its constructor to its destructor.
#define CAPABILITY(name) XSCHED_THREAD_ANNOTATION(capability(name))
#define SCOPED_CAPABILITY XSCHED_THREAD_ANNOTATION(scoped_lockable)

// A variable, or what a pointer points to: read and written with the lock held only.
#define GUARDED_BY(lock) XSCHED_THREAD_ANNOTATION(guarded_by(lock))
#define PT_GUARDED_BY(lock) XSCHED_THREAD_ANNOTATION(pt_guarded_by(lock))

// A function whose caller holds the lock, and one whose caller must not hold it.
#define REQUIRES(...) XSCHED_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) XSCHED_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

// A function that takes the lock, gives it back, or takes it where it returns `result`.
#define ACQUIRE(...) XSCHED_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) XSCHED_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(result, ...) XSCHED_THREAD_ANNOTATION(try_acquire_capability(result, ##__VA_ARGS__))

// After this function the caller counts as holding the lock.
#define ASSERT_CAPABILITY(lock) XSCHED_THREAD_ANNOTATION(assert_capability(lock))

// A function that the analysis cannot follow. Each use says why.
#define NO_THREAD_SAFETY_ANALYSIS XSCHED_THREAD_ANNOTATION(no_thread_safety_analysis)
