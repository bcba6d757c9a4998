// Runs tasks of which some end their processes, with a file as the witness of what ran: each task
// appends its number as it begins. Then says what the promise of a task was kept for, and exits
// with 1 where it was not.
//
//   test_witness_driver tasks COUNT KILLERS RETRIES SEED FILE [soon]
//   test_witness_driver actors COUNT            each of them ends its process in one of 64 calls
//   test_witness_driver first_start FILE        the first worker process that starts ends before troupe::init
//   test_witness_driver cancel FILE             a task is cancelled while it waits for its argument
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <troupe/troupe.hpp>

#include "guard.hpp"

using namespace std::chrono_literals;

namespace {

enum class Way { Plain, LargeResult, DiesAtOnce, DiesSoon };

void append(const std::string& file, int number) {
  const int out = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const auto line = std::to_string(number) + "\n";
  if (out < 0 || ::write(out, line.data(), line.size()) < 0) std::abort();
  ::close(out);
}

/// Somebody else's signal, at a moment that has nothing to do with tasks.
void kill_soon() {
  const auto parent = ::getpid();
  if (::fork() != 0) return;
  ::usleep(static_cast<useconds_t>(parent % 7) * 100);
  ::kill(parent, SIGKILL);
  ::_exit(0);
}

std::string work(const std::string& file, int number, int way) {
  append(file, number);
  if (way == static_cast<int>(Way::DiesAtOnce)) ::raise(SIGKILL);
  if (way == static_cast<int>(Way::DiesSoon)) kill_soon();
  // Through a socket, and in the object store.
  const std::size_t large = number % 2 == 0 ? 20'000 : 150'000;
  return std::string(way == static_cast<int>(Way::LargeResult) ? large : 8, 'x');
}

/// Neither more runs than tries, nor a failure of what had tries left.
struct Verdict {
  int failed = 0;
  int innocent = 0;        // failed, and end no process
  int innocent_large = 0;  // of those: whose result is large
  int ran_too_often = 0;
  int failed_too_early = 0;
  int never_ran = 0;
};

Verdict judge(const std::vector<troupe::Ref<std::string>>& refs, const std::vector<int>& ways,
              int retries, const std::string& file) {
  std::vector<bool> ok;
  std::vector<std::string> how(refs.size());
  Verdict verdict;
  for (const auto& ref : refs) {
    try {
      ref.get(troupe::test::kGuard);
      ok.push_back(true);
    } catch (const troupe::TimedOut&) {
      throw;
    } catch (const troupe::Error& error) {
      ++verdict.failed;
      if (ways[ok.size()] < static_cast<int>(Way::DiesAtOnce)) ++verdict.innocent;
      if (ways[ok.size()] == static_cast<int>(Way::LargeResult)) ++verdict.innocent_large;
      how[ok.size()] = error.what();
      ok.push_back(false);
    }
  }
  std::vector<int> ran(refs.size(), 0);
  std::ifstream in(file);
  for (std::size_t number = 0; in >> number;) ++ran[number];
  for (std::size_t i = 0; i < refs.size(); ++i) {
    if (ran[i] > 1 + retries) ++verdict.ran_too_often;
    if (!ok[i] && ran[i] < 1 + retries) {
      ++verdict.failed_too_early;
      std::cout << "task " << i << " ran " << ran[i] << " times and failed: " << how[i] << '\n';
    }
    if (ok[i] && ran[i] == 0) ++verdict.never_ran;
  }
  return verdict;
}

/// Of a task that a signal from elsewhere meets on the way into its function, nobody can say that
/// it had not begun: with such killers, as many may have failed without a line in the file as there
/// were signals. Each of those also meets one other task, where it comes amid that.
int tasks(int count, int killers, int retries, unsigned seed, const std::string& file, bool soon) {
  std::mt19937 random(seed);
  std::vector<int> ways(static_cast<std::size_t>(count), static_cast<int>(Way::Plain));
  for (auto& way : ways) {
    if (random() % 20 == 0) way = static_cast<int>(Way::LargeResult);
  }
  for (int i = 0; i < killers; ++i) {
    ways[random() % ways.size()] =
        static_cast<int>(soon && i % 2 == 0 ? Way::DiesSoon : Way::DiesAtOnce);
  }
  std::vector<troupe::Ref<std::string>> refs;
  for (int i = 0; i < count; ++i) {
    refs.push_back(
        troupe::with({.retries = retries}).task<work>(file, i, ways[static_cast<std::size_t>(i)]));
  }
  const auto verdict = judge(refs, ways, retries, file);
  std::cout << "seed " << seed << ": failed " << verdict.failed << ", ran too often "
            << verdict.ran_too_often << ", innocent of it " << verdict.innocent
            << ", with a large result " << verdict.innocent_large << ", failed with tries left "
            << verdict.failed_too_early << ", succeeded without a run " << verdict.never_ran
            << std::endl;
  const int forgiven = soon ? killers / 2 : 0;
  // Over TCP a large result may be lost with a connection that the death of its process resets.
  const int small = std::max(verdict.innocent - verdict.innocent_large - forgiven, 0);
  const int large = std::max(verdict.innocent_large - killers, 0);
  return verdict.ran_too_often + verdict.never_ran + small + large == 0 &&
                 verdict.failed_too_early <= forgiven
             ? 0
             : 1;
}

struct Mortal {
  int work(int number, int last) {
    if (number == last) ::raise(SIGKILL);
    return number;
  }
};

/// The calls that an actor has finished are answered, and the one in which it ends and those behind
/// it are not.
int actors(int count) {
  constexpr int kCalls = 64;
  int wrong = 0;
  for (int each = 0; each < count; ++each) {
    const int last = each * 7 % kCalls;
    const auto actor = troupe::spawn<Mortal>();
    std::vector<troupe::Ref<int>> refs;
    for (int i = 0; i < kCalls; ++i) refs.push_back(actor.call<&Mortal::work>(i, last));
    for (int i = 0; i < kCalls; ++i) {
      bool is_answered = true;
      try {
        refs[static_cast<std::size_t>(i)].get(troupe::test::kGuard);
      } catch (const troupe::ProcessDied&) {
        is_answered = false;
      }
      if (is_answered == (i < last)) continue;
      ++wrong;
      std::cout << "call " << i << " of an actor that ended in call " << last << ": "
                << (is_answered ? "answered" : "not answered") << '\n';
    }
  }
  std::cout << count << " actors, wrong: " << wrong << std::endl;
  return wrong == 0 ? 0 : 1;
}

int twice(int x) { return 2 * x; }

int first_start() {
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < 1000; ++i) refs.push_back(troupe::with({.retries = 0}).task<twice>(i));
  for (int i = 0; i < 1000; ++i) {
    if (refs[static_cast<std::size_t>(i)].get(troupe::test::kGuard) != 2 * i) return 1;
  }
  std::cout << "1000 tasks" << std::endl;
  return 0;
}

int waits(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return milliseconds;
}
std::string runs(int, const std::string& file) {
  append(file, 1);
  return file;
}

int cancel(const std::string& file) {
  const auto slow = troupe::task<waits>(300);
  const auto after = troupe::task<runs>(slow, file);
  after.cancel();
  try {
    after.get(troupe::test::kGuard);
    std::cout << "it ran" << std::endl;
    return 1;
  } catch (const troupe::Cancelled& error) {
    std::cout << error.what() << std::endl;
  }
  slow.get(troupe::test::kGuard);
  troupe::task<waits>(50).get(troupe::test::kGuard);
  return std::ifstream(file).good() ? 1 : 0;
}

/// Threads before troupe::init: each worker process is then executed anew, and runs this main().
void fail_the_first_start(const std::string& file) {
  static std::thread thread([] { std::this_thread::sleep_for(1h); });
  thread.detach();
  const char* boot = std::getenv("TROUPE_BOOT");
  if (!boot || std::string(boot).find("worker:") != 0) return;
  if (::close(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) == 0)
    ::raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.at(0) == "first_start") fail_the_first_start(words.at(1));
    auto cluster = troupe::init(argc, argv);
    if (words.at(0) == "first_start") return first_start();
    if (words.at(0) == "actors") return actors(std::stoi(words.at(1)));
    if (words.at(0) == "cancel") return cancel(words.at(1));
    return tasks(std::stoi(words.at(1)), std::stoi(words.at(2)), std::stoi(words.at(3)),
                 static_cast<unsigned>(std::stoul(words.at(4))), words.at(5),
                 words.size() > 6 && words[6] == "soon");
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << '\n';
    return 1;
  }
}
