"""The histograms' bucket bounds, published so that dashboards and recording rules can rely on them.

A percentile read from a histogram is as exact as the bucket it falls in is narrow: with
neighbours 15 % apart it is at most 15 % off, wherever between 10 ms and 58 s it lies.
"""

from __future__ import annotations

# Seconds. 1, 2 and 5 ms, then ratio 1.15 from 10 ms to 60 s, three digits, then 2, 5 and 10 min.
LATENCY: tuple[float, ...] = (
    *(0.001, 0.002, 0.005),
    *(0.01, 0.0115, 0.0132, 0.0152, 0.0175, 0.0201, 0.0231, 0.0266, 0.0306, 0.0352, 0.0405),
    *(0.0465, 0.0535, 0.0615, 0.0708, 0.0814, 0.0936, 0.108, 0.124, 0.142, 0.164, 0.188),
    *(0.216, 0.249, 0.286, 0.329, 0.379, 0.435, 0.501, 0.576, 0.662, 0.761, 0.876),
    *(1.01, 1.16, 1.33, 1.53, 1.76, 2.03, 2.33, 2.68, 3.08, 3.54, 4.07),
    *(4.68, 5.39, 6.2, 7.13, 8.19, 9.42, 10.8, 12.5, 14.3, 16.5, 19.0),
    *(21.8, 25.1, 28.8, 33.1, 38.1, 43.8, 50.4, 58.0),
    *(120.0, 300.0, 600.0),
)

# Seconds. The gateway's own time is mostly below the first bound of `LATENCY`.
OVERHEAD: tuple[float, ...] = (
    *(0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005),
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
)

# Label of a prompt's length, and the least number of tokens of each but the first.
PROMPT_LABELS = ("<512", "512-2k", "2k-8k", "8k-32k", ">32k")
PROMPT_BOUNDS = (512, 2048, 8192, 32769)
