// As much of librocprofiler-sdk as JAX's plugin asks for. It prints the tables that it is offered: a profiler
// sees them under XSched as it does natively. What the plugin calls besides does nothing, and succeeds.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void* rocprofiler_configure(uint32_t version, const char* runtime, uint32_t priority, void* id) {
  (void)version;
  (void)runtime;
  (void)priority;
  (void)id;
  return NULL;
}

// A table begins with its size.
int rocprofiler_set_api_table(const char* name, uint64_t version, uint64_t instance, void** tables,
                              uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    printf("table %s %lu, instance %lu: %zu bytes\n", name, version, instance, *(size_t*)tables[i]);
  fflush(stdout);
  return 0;
}

#define SUCCEED(name) \
  int rocprofiler_##name(void) { return 0; }
SUCCEED(assign_callback_thread)
SUCCEED(configure_buffer_tracing_service)
SUCCEED(configure_callback_tracing_service)
SUCCEED(configure_external_correlation_id_request_service)
SUCCEED(context_is_valid)
SUCCEED(create_buffer)
SUCCEED(create_callback_thread)
SUCCEED(create_context)
SUCCEED(flush_buffer)
SUCCEED(force_configure)
SUCCEED(get_status_string)
SUCCEED(get_timestamp)
SUCCEED(iterate_callback_tracing_kind_operations)
SUCCEED(iterate_callback_tracing_kinds)
SUCCEED(query_available_agents)
SUCCEED(query_callback_tracing_kind_name)
SUCCEED(query_callback_tracing_kind_operation_name)
SUCCEED(start_context)
SUCCEED(stop_context)
