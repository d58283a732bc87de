"""The tests: folders mirror the code; `contracts` (seams between stages), `faults`, `architecture`, `golden` do not."""
