// All that linux/kfd_ioctl.h needs of DRM's header, which not every machine has.
#pragma once

#include <linux/types.h>
#include <sys/ioctl.h>
