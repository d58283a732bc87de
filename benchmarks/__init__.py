"""One file per claim; raw samples are kept under results/."""
