# Needs nothing, and tests need it: always built.
set(XSCHED_SOFT ON)
set(XSCHED_SOFT_DESCRIPTION "A device in software, to try XSched without an accelerator")
