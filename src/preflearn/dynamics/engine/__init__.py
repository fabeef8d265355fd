"""Algorithm 1: smoothing in linear time, the updates of EP and reverse-KL, the way to
their fixed point."""
