#!/usr/bin/env python3
"""What searchers_bench measures, with Optuna's samplers: a JSON line for each figure, with searchers_bench's names.

usage: optuna_searchers.py SEEDS PATTERN,...
"""
import fnmatch
import json
import math
import statistics
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import optuna

REGRETS_AT = (25, 50, 100, 200)
FRONTS_AT = (200, 500, 1000)

# The algorithms of bench/tune/algorithms.cpp: how a sampler is made, and the trials after which it is timed.
SAMPLERS = {
    "random": (lambda seed: optuna.samplers.RandomSampler(seed=seed), 1000),
    "nsga2": (lambda seed: optuna.samplers.NSGAIISampler(seed=seed), 1000),
    "sobol": (lambda seed: optuna.samplers.QMCSampler(qmc_type="sobol", scramble=True, seed=seed), 1000),
    "halton": (lambda seed: optuna.samplers.QMCSampler(qmc_type="halton", scramble=True, seed=seed), 1000),
    "tpe": (lambda seed: optuna.samplers.TPESampler(multivariate=False, seed=seed), 1000),
    "tpe_multivariate": (lambda seed: optuna.samplers.TPESampler(multivariate=True, seed=seed), 1000),
    "cmaes": (lambda seed: optuna.samplers.CmaEsSampler(seed=seed), 1000),
    "gaussian_process": (lambda seed: optuna.samplers.GPSampler(seed=seed), 200),
}


def branin(x):
    bend = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return bend * bend + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


def hartmann_6(x):
    alpha = (1.0, 1.2, 3.0, 3.2)
    a = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
    p = ((0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886), (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
         (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650), (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381))
    return -sum(height * math.exp(-sum(w * (each - at) ** 2 for w, each, at in zip(widths, x, middle)))
                for height, widths, middle in zip(alpha, a, p))


def sphere(x):
    return sum(each * each for each in x)


def rastrigin(x):
    return 10 * len(x) + sum(each * each - 10 * math.cos(2 * math.pi * each) for each in x)


def rosenbrock(x):
    return sum(100 * (after - each * each) ** 2 + (1 - each) ** 2 for each, after in zip(x, x[1:]))


FUNCTIONS = {
    "branin": (branin, [(-5, 10), (0, 15)], 0.39788735772973816),
    "hartmann6": (hartmann_6, [(0, 1)] * 6, -3.3223680114155152),
    "sphere5": (sphere, [(-5, 5)] * 5, 0),
    "rastrigin5": (rastrigin, [(-5.12, 5.12)] * 5, 0),
    "rosenbrock2": (rosenbrock, [(-5, 10)] * 2, 0),
}


def zdt(convex):
    def values(x):
        g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
        part = x[0] / g
        return x[0], g * (1 - (math.sqrt(part) if convex else part * part))
    return values


def constr(x):
    a, b = 0.1 + 0.9 * x[0], 5 * x[1]
    return (a, (1 + b) / a), ((6 - b - 9 * a) / 6, 1 - 9 * a + b)


def tnk(x):
    a, b = math.pi * x[0], math.pi * x[1]
    wave = 0.1 * math.cos(16 * math.atan2(a, b))
    return (a, b), (1 + wave - a * a - b * b, ((a - 0.5) ** 2 + (b - 0.5) ** 2 - 0.5) / 0.5)


def free(values):
    return lambda x: (values(x), ())


# The values and constraints (kept to where at most 0), the number of fields, the reference, and the hypervolume of the best front
# below it: those of bench/tune/searchers_bench.cpp.
CONSTR_BEST = 19 * (2 / 3 - 7 / 18) - 7 * math.log(12 / 7) + 10 / 3 - math.log(1.5) + 0.9
FRONTS = {
    "zdt1": (free(zdt(True)), 5, (1.1, 1.1), 0.21 + 2 / 3),
    "zdt2": (free(zdt(False)), 5, (1.1, 1.1), 0.21 + 1 / 3),
    "constr": (constr, 2, (1.1, 10), CONSTR_BEST),
    "tnk": (tnk, 2, (1.2, 1.2), 0.655),
}
FIND_FRONTS = ("random", "nsga2")


def hypervolume(points, reference):
    area, lowest = 0, reference[1]
    for first, second in sorted(points):
        if first < reference[0] and second < lowest:
            area += (reference[0] - first) * (lowest - second)
            lowest = second
    return area


def values_of(sampler, function, ranges, trials):
    """The value of each trial, and the seconds of each suggestion with the end of its trial."""
    study = optuna.create_study(sampler=sampler)
    values, seconds = [], []
    for _ in range(trials):
        start = time.perf_counter()
        trial = study.ask()
        x = [trial.suggest_float(f"x{i}", low, high) for i, (low, high) in enumerate(ranges)]
        suggested = time.perf_counter() - start
        values.append(function(x))
        ends = time.perf_counter()
        study.tell(trial, values[-1])
        seconds.append(suggested + time.perf_counter() - ends)
    return values, seconds


def say(name, value, unit):
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def quieten():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")  # samplers that are called experimental


def search(algorithm, name, seed):
    function, ranges, _ = FUNCTIONS[name]
    return values_of(SAMPLERS[algorithm][0](seed), function, ranges, REGRETS_AT[-1])[0]


def search_front(algorithm, name, seed):
    """The values of each trial; None of one that does not keep to the constraints."""
    problem, fields, _, _ = FRONTS[name]
    sampler = SAMPLERS[algorithm][0](seed)
    if name in ("constr", "tnk") and algorithm == "nsga2":
        sampler = optuna.samplers.NSGAIISampler(seed=seed, constraints_func=lambda trial: trial.user_attrs["constraints"])
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    found = []
    for _ in range(FRONTS_AT[-1]):
        trial = study.ask()
        values, constraints = problem([trial.suggest_float(f"x{i}", 0, 1) for i in range(fields)])
        trial.set_user_attr("constraints", constraints)
        study.tell(trial, values)
        found.append(values if all(each <= 0 for each in constraints) else None)
    return found


def error_of_median(ordered):
    """Half of the distance between the values that stand sqrt(n)/2 places below and above the median."""
    n = len(ordered)
    below, above = max(0, math.floor((n - math.sqrt(n)) / 2)), min(n - 1, math.ceil((n + math.sqrt(n)) / 2))
    return (ordered[above] - ordered[below]) / 2


def measure_fronts(algorithm, seeds, pool):
    for name, (_, _, reference, best) in FRONTS.items():
        print(f"== Optuna: {algorithm} on {name}", file=sys.stderr)
        searches = list(pool.map(search_front, [algorithm] * seeds, [name] * seeds, range(seeds)))
        for at in FRONTS_AT:
            lacking = statistics.median(
                best - hypervolume([each for each in values[:at] if each], reference) for values in searches)
            say(f"{name}/{algorithm}@{at}", lacking, "hypervolume")


def measure(algorithm, seeds, pool):
    for name, (_, _, optimum) in FUNCTIONS.items():
        print(f"== Optuna: {algorithm} on {name}", file=sys.stderr)
        searches = list(pool.map(search, [algorithm] * seeds, [name] * seeds, range(seeds)))
        for at in REGRETS_AT:
            regrets = sorted(min(values[:at]) - optimum for values in searches)
            say(f"{name}/{algorithm}@{at}", statistics.median(regrets), "regret")
            say(f"{name}/{algorithm}@{at}/error", error_of_median(regrets), "regret")
    make, timed_after = SAMPLERS[algorithm]
    function, ranges, _ = FUNCTIONS["hartmann6"]
    seconds = values_of(make(0), function, ranges, timed_after + 51)[1]  # alone, the pool has nothing to do
    say(f"suggestion/{algorithm}@{timed_after}", 1e3 * statistics.median(seconds[timed_after:]), "ms")


def main():
    quieten()
    seeds, patterns = int(sys.argv[1]), sys.argv[2].split(",")
    with ProcessPoolExecutor(initializer=quieten) as pool:
        for algorithm in SAMPLERS:
            if not any(fnmatch.fnmatch(algorithm, pattern) for pattern in patterns):
                continue
            try:
                measure(algorithm, seeds, pool)
                if algorithm in FIND_FRONTS:
                    measure_fronts(algorithm, seeds, pool)
            except ImportError as missing:
                print(f"skipped: Optuna's {algorithm}: {missing}", file=sys.stderr)


if __name__ == "__main__":
    main()
