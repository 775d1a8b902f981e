// The part of DRM's header that linux/kfd_ioctl.h needs. Not every machine has that header.
#pragma once

#include <linux/types.h>
#include <sys/ioctl.h>
