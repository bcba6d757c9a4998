#pragma once

/// What libraries say in a program that is linked with them: OpenMP, and two that only note what
/// they are told, with the functions of OpenBLAS and MKL.
namespace troupe::test {

/// That a parallel region of this thread would have at most.
int most_threads();
/// That a parallel region has.
int team_size();
/// 0: none was said.
int told_open_blas();
int told_mkl();

}  // namespace troupe::test
