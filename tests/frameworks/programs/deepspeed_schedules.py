"""The learning rates and betas of DeepSpeed's schedulers, as the header of which the C++ tests make theirs.

    python3 tests/frameworks/programs/deepspeed_schedules.py tests/train/deepspeed/schedule_vectors.hpp

Each case is a block `scheduler` of a configuration, with what each step of the optimizer is made with.
"""

import json
import sys
import textwrap
from pathlib import Path

import torch
from deepspeed.runtime import lr_schedules

HEADER = """#pragma once

/// Made by tests/frameworks/programs/deepspeed_schedules.py, with DeepSpeed: for each schedule what the
/// first steps of an optimizer are made with, whose own rate is `rate`, and whose betas are 0.5 and 0.25.
namespace troupe::testing {

inline constexpr const char* kScheduleVectors = R"json([
CASES
])json";

}  // namespace troupe::testing
"""
STEPS = 22
CASES = [
    ("WarmupLR", 0.1, {}),
    ("WarmupLR", 0.1, {"warmup_num_steps": 6}),
    ("WarmupLR", 0.1, {"warmup_min_lr": 0.01, "warmup_max_lr": 0.05, "warmup_num_steps": 8, "warmup_type": "linear"}),
    ("WarmupLR", 0.1, {"warmup_num_steps": 1}),
    ("WarmupDecayLR", 0.1, {"total_num_steps": 20}),
    ("WarmupDecayLR", 0.1, {"total_num_steps": 20, "warmup_max_lr": 0.3, "warmup_num_steps": 5}),
    ("WarmupDecayLR", 0.1, {"total_num_steps": 16, "warmup_min_lr": 0.001, "warmup_num_steps": 4, "warmup_type": "linear"}),
    ("WarmupDecayLR", 0.1, {"total_num_steps": 3, "warmup_num_steps": 5}),
    ("WarmupCosineLR", 0.2, {"total_num_steps": 18, "warmup_num_steps": 5}),
    ("WarmupCosineLR", 0.2, {"total_num_steps": 18, "warmup_min_ratio": 0.1, "warmup_num_steps": 4, "cos_min_ratio": 0.05, "warmup_type": "linear"}),
    ("WarmupCosineLR", 0.2, {"total_num_steps": 2, "warmup_num_steps": 6}),
    ("OneCycle", 0.1, {"cycle_min_lr": 0.01, "cycle_max_lr": 0.1, "cycle_first_step_size": 7}),
    ("OneCycle", 0.1, {"cycle_min_lr": 0.01, "cycle_max_lr": 0.1, "cycle_first_step_size": 5, "cycle_second_step_size": 8, "decay_step_size": 3, "decay_lr_rate": 0.5, "decay_mom_rate": 0.01}),
    ("OneCycle", 0.1, {"cycle_min_lr": 0.01, "cycle_max_lr": 0.1, "cycle_first_step_size": 6, "cycle_first_stair_count": 3, "cycle_second_stair_count": 2}),
    ("OneCycle", 0.1, {"cycle_min_lr": 0.02, "cycle_max_lr": 0.1, "cycle_first_step_size": 9, "cycle_second_step_size": 4, "cycle_first_stair_count": 4, "cycle_min_mom": 0.7, "cycle_max_mom": 0.95}),
    ("OneCycle", 0.1, {"cycle_min_lr": 0.01, "cycle_max_lr": 0.1, "cycle_first_step_size": 5, "cycle_momentum": False}),
    ("LRRangeTest", 0.1, {"lr_range_test_min_lr": 0.001, "lr_range_test_step_size": 4, "lr_range_test_step_rate": 2.0}),
    ("LRRangeTest", 0.1, {"lr_range_test_step_size": 5, "lr_range_test_staircase": True}),
]


def rows_of(type_name, rate, params):
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=rate, betas=(0.5, 0.25))
    scheduler = getattr(lr_schedules, type_name)(optimizer, **params)
    rows = []
    for _ in range(STEPS):
        group = optimizer.param_groups[0]
        rows.append((float(group["lr"]), *group["betas"]))
        scheduler.step()
    return rows


def header():
    cases = []
    for type_name, rate, params in CASES:
        lines = [json.dumps({"scheduler": {"type": type_name, "params": params}})[1:-1], f'"rate": {rate}']
        for name, values in zip(("lr", "beta1", "beta2"), zip(*rows_of(type_name, rate, params))):
            lines.append(f'"{name}": {json.dumps(values)}')
        cases.append("  {" + ",\n   ".join("\n     ".join(textwrap.wrap(line, 94)) for line in lines) + "}")
    return HEADER.replace("CASES", ",\n".join(cases))


Path(sys.argv[1]).write_text(header())  # DeepSpeed prints what it likes
