// The program's command queues, as the shim sees them come and go.
#pragma once

#include "hal/opencl/driver.h"

namespace xsched::opencl {

// A queue was made by the instance of the runtime that `driver` belongs to.
void QueueCreated(cl_command_queue queue, const OclDriver* driver);
void QueueRetained(cl_command_queue queue);
// Is about to be released; the program's last reference ends the queue's scheduling, when what is held has run.
void QueueReleased(cl_command_queue queue);

// False for queues not seen here.
bool IsInOrder(cl_command_queue queue);
// Null for queues not seen here.
const OclDriver* DriverOfQueue(cl_command_queue queue);

}  // namespace xsched::opencl
