# src/sim/cuda
