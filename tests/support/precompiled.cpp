// Owns the precompiled header of the tests. A program and not a library, for a program's flags are
// those of the tests.
int main() {}
