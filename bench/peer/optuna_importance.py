#!/usr/bin/env python3
"""What importance_bench measures, by Optuna's evaluators: a JSON line for each figure, with importance_bench's names.

usage: importance_bench --trials | optuna_importance.py

Each line of the input is a function with its fields and its trials. Optuna's fANOVA weighs a range that is drawn by its
logarithms by the numbers themselves. So each such function is judged twice: with the logarithm as the field, in which all of
the range is equally likely, as the paper's definition and Troupe have it; and, as NAME/FIELD/fanova_not_log, as Optuna does it
on a field with log=True.
"""
import json
import math
import sys
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator


def distribution_of(field, by_logarithm):
    if "values" in field:
        return CategoricalDistribution(field["values"])
    if field["log"] and by_logarithm:
        return FloatDistribution(math.log(field["low"]), math.log(field["high"]))
    return FloatDistribution(field["low"], field["high"], log=field["log"])


def study_of(function, by_logarithm):
    distributions = {field["name"]: distribution_of(field, by_logarithm) for field in function["fields"]}
    logs = {field["name"] for field in function["fields"] if field.get("log") and by_logarithm}
    study = optuna.create_study()
    for config, value in function["trials"]:
        params = {name: math.log(each) if name in logs else each for name, each in config.items()}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=value))
    return study, bool(logs)


def say_all(function, what, evaluator, study, normalize):
    parts = optuna.importance.get_param_importances(study, evaluator=evaluator, normalize=normalize)
    for name, part in parts.items():
        print(json.dumps({"name": f"{function['function']}/{name}/{what}", "value": part, "unit": "part"}), flush=True)


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")  # evaluators that are called experimental
    for line in sys.stdin:
        function = json.loads(line)
        study, has_logs = study_of(function, by_logarithm=True)
        as_drawn, _ = study_of(function, by_logarithm=False)
        say_all(function, "fanova", FanovaImportanceEvaluator(seed=0), study, normalize=False)
        if has_logs:
            say_all(function, "fanova_not_log", FanovaImportanceEvaluator(seed=0), as_drawn, normalize=False)
        say_all(function, "ped_anova", PedAnovaImportanceEvaluator(), as_drawn, normalize=True)


if __name__ == "__main__":
    main()
