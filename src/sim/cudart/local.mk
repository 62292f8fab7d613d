# src/sim/cudart
