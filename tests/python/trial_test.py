"""What a trial says and is told, in this process and in a real sweep."""

import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import troupe
from support import PROGRAM, printed, variables

TRIAL = """
import math, os, troupe
config = troupe.trial_config()
folder = os.path.join(troupe.checkpoint_dir(), "1")
os.makedirs(folder)
troupe.report(loss=config["x"], is_trial=troupe.is_trial())
troupe.report({"loss": math.nan if config["x"] > 1.5 else config["x"] / 2}, checkpoint=folder)
"""

SWEEP = """
command = ["{python}", "{program}"]
metric = "loss"
[space]
x = {{ grid = [1.0, 2.0] }}
"""


class Number:
    """As a tensor of one element has it."""

    def __float__(self):
        return 0.25


def reported(*arguments, **more):
    with printed() as text:
        troupe.report(*arguments, **more)
    line = text.getvalue()
    if line:
        head, _, line = line.partition("troupe: ")
        assert head == "" and line.endswith("\n")
    return json.loads(line) if line else None


class ReportTest(unittest.TestCase):
    def test_a_report_is_a_line_of_its_metrics(self):
        self.assertEqual(reported({"loss": 0.5}, step=3, done=True), {"loss": 0.5, "step": 3, "done": True})
        self.assertEqual(reported(loss=Number(), checkpoint=Path("a")), {"loss": 0.25, "checkpoint": "a"})
        self.assertTrue(math.isnan(reported(loss=math.nan)["loss"]))
        self.assertEqual(reported(loss=-math.inf), {"loss": -math.inf})

    def test_only_rank_0_reports(self):
        with variables(RANK="1"):
            self.assertIsNone(reported(loss=1))
        with variables(RANK="0"):
            self.assertEqual(reported(loss=1), {"loss": 1})

    def test_what_is_no_metric_is_refused_on_every_rank(self):
        for rank in "0", "1":
            with variables(RANK=rank):
                with self.assertRaisesRegex(ValueError, "nothing to report"):
                    troupe.report()
                with self.assertRaisesRegex(ValueError, "cannot be named checkpoint"):
                    troupe.report({"checkpoint": 1})
                with self.assertRaisesRegex(TypeError, r"the metric 'loss' is \[1, 2\], a list, and not a number"):
                    troupe.report(loss=[1, 2])

    def test_outside_of_a_sweep_there_is_no_trial(self):
        with variables(TROUPE_TRIAL=None, TROUPE_TRIAL_CONFIG=None, TROUPE_CHECKPOINT_DIR=None, TROUPE_RESTORE_FROM=None):
            self.assertEqual((troupe.is_trial(), troupe.trial_config()), (False, {}))
            self.assertEqual((troupe.checkpoint_dir(), troupe.restore_from()), (None, None))


class SweepTest(unittest.TestCase):
    def test_a_sweep_has_what_its_trials_report(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "trial.py").write_text(TRIAL)
            Path(folder, "sweep.toml").write_text(SWEEP.format(python=sys.executable, program=f"{folder}/trial.py"))
            with variables(TROUPE_ADDRESS=None, TROUPE_TOKEN=None):
                done = subprocess.run([PROGRAM, "tune", "run", f"{folder}/sweep.toml"], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            run, = (path.parent for path in Path(folder).rglob("summary.json"))
            lines = [json.loads(line) for line in (run / "reports.jsonl").read_text().splitlines()]
            told = {(line["trial"], line["t"]): (line["metrics"], line.get("checkpoint")) for line in lines}
            self.assertEqual(told, {
                (0, 1): ({"loss": 1.0, "is_trial": 1.0}, None),
                (0, 2): ({"loss": 0.5}, "./trials/0/1"),
                (1, 1): ({"loss": 2.0, "is_trial": 1.0}, None),
                (1, 2): ({"loss": "nan"}, "./trials/1/1"),
            })


if __name__ == "__main__":
    unittest.main()
