LIBRARY = "libamdhip64.so"
