#!/usr/bin/env python3
"""What train_beside_torch.py prints of rows that the benchmarks and their peer have given, also of rows that only GPUs give.

usage: rows_test.py TREE
"""
import sys
from pathlib import Path

ROW_OF_GPT = {"bench": "ddp", "ranks": 1, "model": "GPT", "how": "", "steps_per_s": 20.0, "floor": 20.2, "step_ms": 50.0,
              "gpu": "NVIDIA H100 80GB HBM3", "tflops": 280.1}
# (rows of a benchmark, rows of its peer, what is printed)
CASES = [
    ([ROW_OF_GPT | {"peak_tflops": 989, "share_of_peak": 0.283}], [{"bench": "ddp", "model": "GPT", "steps_per_s": 10.0, "floor": 11.0}],
     "ddp GPT                                        20.00 steps/s, 50.000 ms each  280 TFLOP/s, 28 % of 989   99 % of 20.2 without"
     " communication  torch 10.00 steps/s, 2.00x, 100.000 ms each, 140 TFLOP/s"),
    ([ROW_OF_GPT | {"gpu": "NVIDIA Z1"}], [],
     "ddp GPT                                        20.00 steps/s, 50.000 ms each  280 TFLOP/s, peak of 'NVIDIA Z1' unknown: name it"
     " with --peak-tflops   99 % of 20.2 without communication"),
    ([{"bench": "ddp", "ranks": 2, "model": "MLP", "how": "", "steps_per_s": 8.0, "floor": 10.0, "step_ms": 125.0}], [],
     "ddp MLP                                         8.00 steps/s, 125.000 ms each   80 % of 10.0 without communication"),
    ([{"bench": "all_reduce", "ranks": 4, "bytes": 64000000, "how": "nccl", "us": us, "gb_per_s": rate, "bus_gb_per_s": 1.5 * rate}
      for us, rate in ((2000.0, 32.0), (1000.0, 64.0), (1600.0, 40.0))], [{"bench": "all_reduce", "bytes": 64000000, "us": 3200.0}],
     "all_reduce 64000000 nccl                     1600.00 us  40.00 GB/s, bus 60.00 GB/s  torch 3200.00 us, 2.00x"),
]


def main(tree):
    sys.path.insert(0, str(Path(tree) / "bench/peer"))
    import train_beside_torch as beside

    faults = 0
    for ours, theirs, expected in CASES:
        found, peers = {}, {}
        beside.add(found, ours)
        beside.add(peers, theirs)
        texts = [beside.text_of(beside.row_of(key, rows, peers)) for key, rows in found.items()]
        if texts != [expected]:
            print(f"rows_test: printed\n  {texts}\nexpected\n  {[expected]}", file=sys.stderr)
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
