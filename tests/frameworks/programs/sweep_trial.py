"""A trial of a sweep in plain Python: a loss that falls faster the nearer lr is to 0.1, with a checkpoint of every step."""

import json
import os
import sys
import time

import troupe

lr = float(sys.argv[1].removeprefix("--lr="))
steps = int(sys.argv[2])
assert troupe.is_trial() and troupe.trial_config()["lr"] == lr

step = 0
progress = 0.0
if troupe.restore_from():
    with open(os.path.join(troupe.restore_from(), "state.json")) as file:
        state = json.load(file)
    step, progress = state["step"], state["progress"]
while step < steps:
    step += 1
    progress += 1 / (1 + 50 * abs(lr - 0.1))
    folder = os.path.join(troupe.checkpoint_dir(), f"step-{step}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "state.json"), "w") as file:
        json.dump({"step": step, "progress": progress}, file)
    troupe.report(loss=1 / (1 + progress), step=step, checkpoint=f"step-{step}")
    time.sleep(0.05)
