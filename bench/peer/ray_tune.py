#!/usr/bin/env python3
"""What tune_bench measures, on Ray Tune: a JSON line for each figure, with tune_bench's names.

A takeover is timed by its own function: from the report of the losing trial, after which it is replaced, to the first report
of what goes on from the donor's checkpoint. Trials reuse their actors, which is Ray's fastest way.
"""
import json
import os
import statistics
import tempfile
import time

os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
import ray
from ray import tune
from ray.tune.schedulers import PopulationBasedTraining

FOLDER = tempfile.mkdtemp(prefix="ray-tune-")
LOG = os.path.join(FOLDER, "reports")


def counts(config):
    step, donor = 0, ""
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder, open(os.path.join(folder, "step"), encoding="ascii") as file:
            step, donor = json.load(file)
    trial = tune.get_context().get_trial_id()
    first = True
    while step < 60:
        step += 1
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "step"), "w", encoding="ascii") as file:
                json.dump([step, trial], file)
            with open(LOG, "a", encoding="ascii") as log:
                log.write(json.dumps([trial, time.time(), step, first and donor not in ("", trial)]) + "\n")
            first = False
            tune.report({"score": config["rate"] * step, "training_iteration": step},
                        checkpoint=tune.Checkpoint.from_directory(folder))
            time.sleep(0.002)


def trivial(config):
    tune.report({"score": config["x"]})


REPORTS = 1000  # of each of four trials


def reports(config):
    for _ in range(REPORTS):
        tune.report({"score": config["x"]})


def sleeps(config):
    time.sleep(1)
    tune.report({"score": config["x"]})


def fit(function, space, tune_config, name):
    started = time.monotonic()
    tune.Tuner(function, param_space=space, tune_config=tune_config,
               run_config=tune.RunConfig(verbose=0, storage_path=FOLDER, name=name)).fit()
    return time.monotonic() - started


def takeovers():
    """-> the seconds of each."""
    before, seconds = {}, []
    with open(LOG, encoding="ascii") as log:
        for line in log:
            trial, now, _, taken_over = json.loads(line)
            if taken_over and trial in before:
                seconds.append(now - before[trial])
            before[trial] = now
    return seconds


def print_figure(name, value, unit):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def many(function, trials, name):
    """-> the seconds of so many trials that differ in nothing."""
    return fit(function, {"x": tune.grid_search(list(range(trials)))}, tune.TuneConfig(reuse_actors=True), name)


def main():
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    scheduler = PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=2, metric="score", mode="max",
                                        hyperparam_mutations={"rate": tune.uniform(0.1, 1.0)})
    fit(counts, {"rate": tune.uniform(0.1, 1.0)},
        tune.TuneConfig(num_samples=2, scheduler=scheduler, reuse_actors=True), "pbt")
    seconds = takeovers()
    if seconds:
        print_figure("takeover_ms", 1e3 * statistics.median(seconds), "ms")
    print_figure("trials_50_s", many(trivial, 50, "trials"), "s")
    print_figure("trials_1000_s", many(trivial, 1000, "trials_1000"), "s")
    print_figure("reports_per_s", 4 * REPORTS / many(reports, 4, "many_reports"), "/s")
    ray.shutdown()
    ray.init(num_cpus=16, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    print_figure("one_second_trials_64_s", many(sleeps, 64, "sleeps"), "s")
    print_figure("one_second_trials_1000_s", many(sleeps, 1000, "sleeps_1000"), "s")


if __name__ == "__main__":
    main()
