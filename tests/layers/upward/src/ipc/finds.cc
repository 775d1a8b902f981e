void* found = dlopen("libc.so.6", 1);
