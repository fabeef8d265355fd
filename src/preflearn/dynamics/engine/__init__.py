"""Algorithm 1: smoothing in linear time, and the updates of EP and reverse-KL."""
