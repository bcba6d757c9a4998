// Actors on two hosts whose connections are cut, over and over, while they hold refs of one another
// and calls are under way. Exits with 1 where a value was lost, or a call ran not once or out of
// order.
//
//   test_reconnect_driver refs
//   test_reconnect_driver calls COUNT SEED FOLDER     a file for each pair of actors is the witness of what ran
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <troupe/troupe.hpp>

#include "guard.hpp"

using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = troupe::test::kGuard;

void check(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

void append(const std::string& file, int number) {
  const int out = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const auto line = std::to_string(number) + "\n";
  if (out < 0 || ::write(out, line.data(), line.size()) < 0) std::abort();
  ::close(out);
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "re"),
                                                             &::pclose);
  check(pipe != nullptr, command + " cannot be run");
  std::string output;
  std::array<char, 4096> piece{};
  while (const auto got = std::fread(piece.data(), 1, piece.size(), pipe.get()))
    output.append(piece.data(), got);
  return output;
}

/// Lives on the first host. Resets the connections between a process there and the second host.
struct Cutter {
  int cut(int pid) {
    std::istringstream lines(output_of("ss -tnpH state established dst 10.77.0.2"));
    int cuts = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("pid=" + std::to_string(pid) + ",") == std::string::npos) continue;
      std::istringstream words(line);
      std::string received, sent, local, peer;
      words >> received >> sent >> local >> peer;
      if (!output_of("ss -KH -t src " + local + " dst " + peer).empty()) ++cuts;
    }
    return cuts;
  }
};

struct Callee {
  int pid() { return ::getpid(); }
  std::string note(const std::string& file, int number, const std::string& argument, int bytes) {
    append(file, number);
    return std::string(static_cast<std::size_t>(bytes), argument.empty() ? 'x' : argument.front());
  }
  troupe::Ref<std::string> make(int bytes) {
    return troupe::put(std::string(static_cast<std::size_t>(bytes), 'v'));
  }
  std::string slow(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return "done";
  }
};

int size_from(std::mt19937& random) {
  constexpr std::array sizes{0, 10, 10, 10, 100, 100, 1000, 60'000, 150'000};
  return sizes[random() % sizes.size()];
}

struct Caller {
  std::vector<troupe::Ref<std::string>> held;
  troupe::Ref<std::string> under_way;

  int pid() { return ::getpid(); }
  void hold(troupe::Ref<std::string> ref) { held.push_back(std::move(ref)); }
  void start(troupe::Actor<Callee> callee, int milliseconds) {
    under_way = callee.call<&Callee::slow>(milliseconds);
  }
  std::string finish() { return under_way.get(kPatience); }
  std::size_t read(int which) {
    return held.at(static_cast<std::size_t>(which)).get(kPatience).size();
  }
  void drop() { held.clear(); }
  void call_often(troupe::Actor<Callee> callee, const std::string& file, int count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<troupe::Ref<std::string>, int>> replies;
    for (int i = 0; i < count; ++i) {
      const auto bytes = size_from(random);
      const std::string argument(static_cast<std::size_t>(size_from(random)), 'a');
      replies.emplace_back(callee.call<&Callee::note>(file, i, argument, bytes), bytes);
      if (random() % 4 == 0) check_reply(replies[random() % replies.size()]);
    }
    for (const auto& reply : replies) check_reply(reply);
  }

 private:
  static void check_reply(const std::pair<troupe::Ref<std::string>, int>& reply) {
    check(reply.first.get(kPatience).size() == static_cast<std::size_t>(reply.second),
          "a reply has another size");
  }
};

template <class Actor>
troupe::Actor<Actor> spawn_at(const std::string& host) {
  return troupe::with({.cpus = 0.1, .labels = {{"host", host}}}).spawn<Actor>();
}

void cut(const troupe::Actor<Cutter>& cutter, int pid) {
  check(cutter.call<&Cutter::cut>(pid).get(kPatience) > 0, "there was no connection to be cut");
}

/// In the stores of all nodes, as they have last told the head.
int stored_objects(const troupe::Cluster& cluster) {
  const auto status = cluster.status_json();
  const std::string name = "\"objects\":";
  int objects = 0;
  for (auto at = status.find(name); at != std::string::npos; at = status.find(name, at + 1)) {
    objects += std::stoi(status.substr(at + name.size()));
  }
  return objects;
}

bool comes_to(const troupe::Cluster& cluster, bool stored) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while ((stored_objects(cluster) != 0) != stored) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(50ms);
  }
  return true;
}

void refs(const troupe::Cluster& cluster) {
  const auto owner = spawn_at<Callee>("near");
  const auto holder = spawn_at<Caller>("far");
  const auto cutter = spawn_at<Cutter>("near");
  const std::vector<int> sizes{10, 1000, 2000, 3'000'000};
  for (const int bytes : sizes) {
    const auto ref = owner.call<&Callee::make>(bytes).get(kPatience);
    holder.call<&Caller::hold>(ref).get(kPatience);
  }
  const int pid = owner.call<&Callee::pid>().get(kPatience);
  holder.call<&Caller::start>(owner, 1500).get(kPatience);
  cut(cutter, pid);
  check(holder.call<&Caller::finish>().get(kPatience) == "done",
        "the call under way has another value");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == 2) cut(cutter, pid);
    const auto bytes = holder.call<&Caller::read>(static_cast<int>(i)).get(kPatience);
    check(bytes == static_cast<std::size_t>(sizes[i]), "a value has another size");
  }
  check(comes_to(cluster, true), "no node has told of the large value");
  cut(cutter, pid);
  holder.call<&Caller::drop>().get(kPatience);
  check(comes_to(cluster, false), "the large value was not freed once nobody held it");
  std::cout << "all " << sizes.size() << " values were read" << std::endl;
}

void check_witness(const std::string& file, int count) {
  std::ifstream in(file);
  int expected = 0;
  for (int number = 0; in >> number; ++expected) {
    check(number == expected, "call " + std::to_string(number) + " ran where " +
                                  std::to_string(expected) + " was next");
  }
  check(expected == count,
        std::to_string(expected) + " of " + std::to_string(count) + " calls ran");
}

/// Two processes that call one another across hosts while their connections are cut; in rounds, as
/// a fast machine is done with one before much is cut.
void calls(int count, unsigned seed, const std::string& folder) {
  constexpr int wanted_cuts = 5, most_rounds = 20;
  const auto cutter = spawn_at<Cutter>("near");
  const auto near_caller = spawn_at<Caller>("near");
  const auto far_caller = spawn_at<Caller>("far");
  const auto far_callee = spawn_at<Callee>("far");
  const auto near_callee = spawn_at<Callee>("near");
  const std::vector pids{near_caller.call<&Caller::pid>().get(kPatience),
                         near_callee.call<&Callee::pid>().get(kPatience)};
  std::mt19937 random(seed);
  int cuts = 0, rounds = 0;
  for (; cuts < wanted_cuts && rounds < most_rounds; ++rounds) {
    const auto name = std::to_string(rounds);
    const std::vector files{folder + "/from-near-" + name, folder + "/from-far-" + name};
    std::vector running{
        near_caller.call<&Caller::call_often>(far_callee, files[0], count, seed + 2 * rounds),
        far_caller.call<&Caller::call_often>(near_callee, files[1], count, seed + 2 * rounds + 1)};
    while (troupe::wait(running, running.size(), std::chrono::milliseconds(random() % 150))
               .ready.size() < running.size()) {
      cuts += cutter.call<&Cutter::cut>(pids[random() % pids.size()]).get(kPatience);
    }
    for (const auto& one : running) one.get(kPatience);
    for (const auto& file : files) check_witness(file, count);
  }
  std::cout << "seed " << seed << ": " << rounds << " rounds of " << 2 * count << " calls, " << cuts
            << " cuts" << std::endl;
  check(cuts >= wanted_cuts, "the calls were over before connections were cut often");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    auto cluster = troupe::init(argc, argv);
    if (words.at(0) == "refs") {
      refs(cluster);
    } else {
      calls(std::stoi(words.at(1)), static_cast<unsigned>(std::stoul(words.at(2))), words.at(3));
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "driver: " << error.what() << '\n';
    return 1;
  }
}
