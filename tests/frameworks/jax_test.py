"""JAX on CPUs."""

from support import FrameworkTest, launched


class DistributedTest(FrameworkTest):
    def test_two_processes_find_each_other(self):
        self.assertEqual(self.results(launched(2, "jax_sum.py")), ["0 2 3", "1 2 3"])
