// A program that needs no library: it says so and ends. Its loader is named when it is linked, so that it is
// a program of any C library that has one.
static long Call(long number, long a, long b, long c) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

#if defined(__x86_64__)
enum { kWrite = 1, kExit = 60 };
#elif defined(__aarch64__)
enum { kWrite = 64, kExit = 93 };
#endif

void _start(void) {
  static const char kText[] = "it runs\n";
  Call(kWrite, 1, (long)kText, sizeof kText - 1);
  Call(kExit, 0, 0, 0);
  __builtin_unreachable();
}
