// The driver of the cases that need several hosts: puts one large value, and has tasks on other
// hosts read it. Prints "figure NAME SECONDS" for each case, then "done".
//
//   bench_across_hosts --address HOST:PORT BYTES HOSTS        nodes carry the label host=0, host=1, ...
//   bench_across_hosts --plain-receive PORT BYTES             the link's own limit: one TCP connection and two buffers
//   bench_across_hosts --plain-send HOST PORT BYTES
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/troupe.hpp>

namespace {

using Bytes = troupe::Array<char>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
void print(const std::string& name, double value) {
  std::cout << "figure " << name << ' ' << value << std::endl;
}

/// The value is here when it is called: its first and its last byte.
int ends_of(const Bytes& bytes) { return bytes[0] + bytes[bytes.size() - 1]; }
int nothing(int x) { return x; }

troupe::Ref<Bytes> new_value(std::size_t size, char fill) {
  troupe::NewArray<char> value(size);
  std::memset(value.values().data(), fill, size);
  return troupe::put(std::move(value));
}

template <auto F, class A>
auto on_host(int host, const A& argument) {
  const auto label = std::to_string(host);
  return troupe::with({.labels = {{"host", label}}}).task<F>(argument);
}

/// Seconds until tasks on hosts 1 to `receivers` have the value.
double spread(std::size_t size, char fill, int receivers) {
  // A worker process is there.
  for (int host = 1; host <= receivers; ++host) on_host<nothing>(host, 1).get();
  const auto value = new_value(size, fill);
  const auto start = Clock::now();
  std::vector<troupe::Ref<int>> ends;
  for (int host = 1; host <= receivers; ++host) ends.push_back(on_host<ends_of>(host, value));
  for (auto& both : ends) {
    if (both.get() != 2 * fill) throw std::runtime_error("another value arrived");
  }
  return seconds_since(start);
}

void small_tasks() {
  constexpr int kTasks = 20'000;
  for (int i = 0; i < 100; ++i) on_host<nothing>(1, i).get();
  const auto start = Clock::now();
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < kTasks; ++i) refs.push_back(on_host<nothing>(1, i));
  for (auto& ref : refs) ref.get();
  print("remote_tasks_async", kTasks / seconds_since(start));
  const auto one = Clock::now();
  for (int i = 0; i < 2'000; ++i) on_host<nothing>(1, i).get();
  print("remote_task_sync", 2'000 / seconds_since(one));
}

struct Counter {
  int add(int x) { return n += x; }
  int n = 0;
};

void small_calls() {
  constexpr int kCalls = 50'000;
  auto counter = troupe::with({.labels = {{"host", "1"}}}).spawn<Counter>();
  counter.call<&Counter::add>(1).get();
  const auto start = Clock::now();
  std::vector<troupe::Ref<int>> refs;
  for (int i = 0; i < kCalls; ++i) refs.push_back(counter.call<&Counter::add>(1));
  for (auto& ref : refs) ref.get();
  print("remote_calls_async", kCalls / seconds_since(start));
}

int drive(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const auto size = static_cast<std::size_t>(std::atoll(argv[3]));
  const int hosts = std::atoi(argv[4]);
  spread(size, 1, hosts - 1);  // pages and connections are warm
  print("transfer", spread(size, 2, 1));
  if (hosts > 2) print("broadcast", spread(size, 3, hosts - 1));
  small_calls();
  small_tasks();
  std::cout << "done" << std::endl;
  return 0;
}

// ---- the link -----------------------------------------------------------------------------------

constexpr std::size_t kPiece = std::size_t{1} << 20;

int plain_receive(int port, std::size_t size) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(listener, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(listener, 1) != 0)
    return 1;
  std::cout << "listening" << std::endl;
  const int from = ::accept(listener, nullptr, nullptr);
  std::vector<char> buffer(kPiece);
  for (std::size_t got = 0; got < size;) {
    const auto count = ::recv(from, buffer.data(), buffer.size(), 0);
    if (count <= 0) return 1;
    got += static_cast<std::size_t>(count);
  }
  return ::send(from, "!", 1, 0) == 1 ? 0 : 1;
}

int plain_send(const char* host, int port, std::size_t size) {
  const int to = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &there.sin_addr);
  if (::connect(to, reinterpret_cast<sockaddr*>(&there), sizeof there) != 0) return 1;
  const std::vector<char> buffer(kPiece, 'x');
  const auto start = Clock::now();
  for (std::size_t sent = 0; sent < size;) {
    const auto count =
        ::send(to, buffer.data(), std::min(buffer.size(), size - sent), MSG_NOSIGNAL);
    if (count <= 0) return 1;
    sent += static_cast<std::size_t>(count);
  }
  char answer = 0;
  if (::recv(to, &answer, 1, 0) != 1) return 1;
  print("link", seconds_since(start));
  std::cout << "done" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--plain-receive")
    return plain_receive(std::atoi(argv[2]), static_cast<std::size_t>(std::atoll(argv[3])));
  if (mode == "--plain-send") {
    return plain_send(argv[2], std::atoi(argv[3]), static_cast<std::size_t>(std::atoll(argv[4])));
  }
  return drive(argc, argv);
}
