// HSA functions that newer runtimes import, and that Debian 12's headers do not declare.
#include <stdint.h>

enum { kSuccess = 0 };

typedef struct {
  uint64_t handle;
} Handle;

int hsa_amd_memory_async_copy(void* to, Handle to_agent, const void* from, Handle from_agent, uint64_t size,
                              uint32_t count, const Handle* after, Handle completion);

int hsa_amd_memory_async_copy_on_engine(void* to, Handle to_agent, const void* from, Handle from_agent,
                                        uint64_t size, uint32_t count, const Handle* after, Handle completion,
                                        uint32_t engine, _Bool force) {
  (void)engine;
  (void)force;
  return hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, count, after, completion);
}
int hsa_amd_memory_copy_engine_status(Handle to, Handle from, uint32_t* engines) {
  (void)to;
  (void)from;
  *engines = 1;
  return kSuccess;
}
int hsa_amd_memory_get_preferred_copy_engine(Handle to, Handle from, uint32_t* engines) {
  return hsa_amd_memory_copy_engine_status(to, from, engines);
}
int hsa_amd_enable_logging(uint8_t* flags, void* file) {
  (void)flags;
  (void)file;
  return kSuccess;
}
int hsa_amd_register_system_event_handler(void* callback, void* data) {
  (void)callback;
  (void)data;
  return kSuccess;
}
