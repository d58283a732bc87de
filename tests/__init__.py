"""The tests: folders mirror the code; `contracts`, `architecture`, `golden` and `faults` cross it."""
