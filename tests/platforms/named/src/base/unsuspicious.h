// Ownership and relationships of softer software; a call of sigprocmask.
