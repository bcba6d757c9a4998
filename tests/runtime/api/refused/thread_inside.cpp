// refused: this class of the standard library cannot travel, as a thread
#include <troupe/troupe.hpp>

#include <thread>

struct Job {
  int number = 0;
  std::thread helper;
};
int number(const Job& job) { return job.number; }

int main() { return troupe::task<number>(Job()).get(); }
