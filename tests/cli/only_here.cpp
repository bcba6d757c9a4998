// A library that a test hides from one machine of its cluster.
int test_only_here() { return 42; }
