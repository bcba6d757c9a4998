"""Files of Python as gangs."""

import tempfile
import unittest
from pathlib import Path

import troupe
from support import cluster, printed


class FileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name, "train.py")
        Path(folder.name, "beside.py").write_text("word = 'beside'\n")
        self.file.write_text("import os, sys, beside\nprint(os.environ['RANK'], sys.argv[1:], beside.word, __name__)\n"
                             "sys.exit(int(sys.argv[1]))\n")

    def run_file(self, *arguments, local_mode=True, **named):
        with printed() as text:
            value = troupe.TorchDistributor(2, local_mode=local_mode, use_gpu=False).run(str(self.file), *arguments, **named)
        self.assertIsNone(value)
        return text.getvalue()

    def test_arguments_are_its_command_line_and_modules_beside_it_are_found(self):
        text = self.run_file(0, "--lr", 0.1)
        for rank in (0, 1):
            self.assertIn(f"[{rank}] {rank} ['0', '--lr', '0.1'] beside __main__\n", text)

    def test_it_runs_in_a_cluster(self):
        with cluster("--cpus", "2"):
            self.assertIn("[1] 1 ['0'] beside __main__\n", self.run_file(0, local_mode=False))

    def test_its_exit_status_is_told_with_its_last_lines(self):
        with self.assertRaisesRegex(troupe.RankFailed, r"(?s)ended with exit code 9; its last lines:.*\['9'\] beside") as raised:
            self.run_file(9)
        self.assertEqual(raised.exception.exit_code, 9)

    def test_named_arguments_and_files_that_are_not_there_are_refused(self):
        with self.assertRaisesRegex(ValueError, r"a file has no keyword arguments \(lr\)"):
            self.run_file(0, lr=0.1)
        self.file = "/no/such/file.py"
        with self.assertRaisesRegex(FileNotFoundError, "'/no/such/file.py' cannot be read"):
            self.run_file(0)
        with self.assertRaisesRegex(TypeError, "and not a int"):
            troupe.TorchDistributor(use_gpu=False).run(3)


if __name__ == "__main__":
    unittest.main()
