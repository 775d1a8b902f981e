// The rules of the real driver and GPUs that the stand-in obeys. Each has a test of the same name.
//
// Sources are the kernel's files in drivers/gpu/drm/amd/amdkfd (Linux 6.12 and later, unless another version
// is named), AMD's user-space code (ROCR-Runtime), and the HSA specification. "assumed": not said there, and
// not measured, because no such GPU was at hand.
#pragma once

#include "driver_rule.h"

namespace standin_amdgpu {

constexpr standin::DriverRule kDriverRules[] = {
    // ---- queues ----
    {"queue_settings",
     "A queue's percentage (the low byte) is at most 100, its priority at most 15, its ring's size a power "
     "of two. Otherwise EINVAL.",
     "kfd_chardev.c: set_queue_properties_from_user, kfd_ioctl_update_queue", "queues.cc"},
    {"queue_buffers",
     "A queue's ring is exactly one buffer that is mapped for the GPU; the pages of its two pointers are "
     "buffers of their own. Otherwise EINVAL.",
     "kfd_queue.c: kfd_queue_acquire_buffers, kfd_queue_buffer_get", "queues.cc, memory.cc"},
    {"save_area",
     "A queue that runs kernels has a control stack of the size that the node says, and room for saved waves "
     "of at least that size for each die, in one buffer or in memory of the host that is always mapped. "
     "Otherwise EINVAL.",
     "kfd_queue.c: kfd_queue_acquire_buffers, kfd_queue_ctx_save_restore_size", "queues.cc, machine.py"},
    {"queue_numbers",
     "A new queue gets the smallest free number. To destroy one that does not exist is EINVAL, to update it "
     "EFAULT.",
     "kfd_process_queue_manager.c: find_available_queue_slot, pqm_destroy_queue, pqm_update_queue_properties",
     "queues.cc"},
    {"update_sets_everything",
     "An update sets ring, percentage and priority at once. A ring that is not exactly a mapped buffer is "
     "EFAULT; none disables the queue.",
     "kfd_process_queue_manager.c: pqm_update_queue_properties", "queues.cc, queue.cc"},
    {"percentage_0_suspends",
     "An update to percentage 0 returns when the queue is off the hardware. Its wave is in its save area "
     "then, and nowhere else. An update to more than 0 brings it back.",
     "kfd_device_queue_manager.c: update_queue, unmap_queues_cpsch (waits for the preemption); kfd_priv.h: "
     "QUEUE_IS_ACTIVE. That the registers' place is behind the control stack of the first die: assumed",
     "queue.cc, wave.cc"},
    {"inactive_queues_run_nothing",
     "An inactive queue accepts packets and doorbells. It runs them when it is active again.",
     "kfd_device_queue_manager.c: the queue is not on the hardware's list", "queue.cc"},
    {"failed_updates_are_kept",
     "An update may report an error although it has taken effect: the driver keeps the settings before it "
     "asks the hardware. Never, unless a test asks for it.",
     "kfd_process_queue_manager.c: pqm_update_queue_properties; the errors of unmap_queues_cpsch: ETIME, "
     "ENOMEM, EIO",
     "driver.cc, requests.cc"},
    // ---- packets ----
    {"doorbells", "Nothing runs before its doorbell is rung: with the index of the last packet.",
     "ROCR-Runtime, amd_aql_queue.cpp: doorbells of type 2", "aql_queue.cc"},
    {"packets_in_order",
     "Packets of a queue run one after the other, also without a barrier bit. A packet that has run is "
     "invalid, and the read index is behind it.",
     "HSA system architecture, 2.8 and 2.9. That they never run together: assumed, as the slowest that is "
     "allowed",
     "aql_queue.cc"},
    {"barriers",
     "A barrier-and packet waits until all its signals are 0, a barrier-or packet until one is. No signal "
     "counts as 0.",
     "HSA system architecture, 2.9: barrier packets", "aql_queue.cc"},
    {"completion",
     "A packet that has run takes 1 off its signal. Then it writes the event's number to the signal's "
     "mailbox, and interrupts for it.",
     "ROCR-Runtime, interrupt_signal.cpp; kfd_events.c: kfd_signal_event_interrupt",
     "aql_queue.cc, events.cc"},
    // ---- events ----
    {"events_wake_all_waiters",
     "An event that resets itself wakes all its waiters. If there are none, the next waiter does not wait.",
     "kfd_events.c: set_event, init_event_waiter", "events.cc"},
    {"events_have_an_age",
     "A waiter may give the age of the event that it has seen last. It does not wait if the event is older "
     "now, and gets its age.",
     "kfd_events.c: init_event_waiter, copy_signaled_event_data; since KFD 1.14", "events.cc"},
    {"destroyed_events_fail",
     "To wait for an event that does not exist is EINVAL. If it is destroyed meanwhile, its waiters get EIO.",
     "kfd_events.c: kfd_wait_on_events", "events.cc"},
    // ---- memory ----
    {"buffers",
     "A buffer that is mapped for a GPU is not freed: EBUSY. To map one that does not exist is ENOMEM. Its "
     "bytes are in the render node, at the offset of the answer.",
     "kfd_chardev.c: kfd_ioctl_map_memory_to_gpu; amdgpu_amdkfd_gpuvm.c: "
     "amdgpu_amdkfd_gpuvm_free_memory_of_gpu",
     "memory.cc"},
    {"render_nodes",
     "A GPU's memory is acquired by a descriptor of its own render node, or a duplicate of it. Otherwise "
     "EINVAL.",
     "kfd_chardev.c: kfd_ioctl_acquire_vm", "driver.cc, files.cc"},
    {"runtime_before_queues",
     "A runtime says where it lists its code objects before it makes a queue. Afterwards it is EEXIST.",
     "linux/kfd_ioctl.h: kfd_ioctl_runtime_enable_args", "driver.cc"},
};

}  // namespace standin_amdgpu
