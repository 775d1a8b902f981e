option(XSCHED_HIP "Build the HIP platform" ON)
set(XSCHED_HIP_DESCRIPTION "XSched for HIP streams")
