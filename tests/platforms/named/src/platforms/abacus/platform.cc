// Abacus, which may name itself, and not HIP.
