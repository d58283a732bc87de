"""The tests: folders mirror the code; `contracts` (seams between stages), `architecture` and `golden` cross it."""
