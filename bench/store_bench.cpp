// What the object store costs on this machine, beside what memory itself costs in the same run: one
// row a case, or with --json one line {"name", "value", "unit"} a case. The node is a process of
// its own, as it is in a cluster.
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>

#include <fmt/format.h>

#include "arguments.hpp"
#include "core/harness.hpp"
#include "store/client/client.hpp"
#include "store/service/service.hpp"
#include "transport/socket/socket.hpp"

namespace {

using namespace troupe;
using bench::Clock, bench::Report, bench::seconds_since;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLarge = 100 * kMiB;
constexpr std::array<std::pair<const char*, std::uint64_t>, 3> kSizes{
    {{"128KiB", kMiB / 8}, {"1MiB", kMiB}, {"100MiB", kLarge}}};

/// Repeated until the time is over, after three times to warm up. -> how often in a second.
double rate(const Report& report, const std::function<void()>& operation) {
  for (int i = 0; i < 3; ++i) operation();
  const auto start = Clock::now();
  int count = 0;
  while (count == 0 || seconds_since(start) < report.options().seconds) {
    operation();
    ++count;
  }
  return count / seconds_since(start);
}

double gigabytes(double per_second, std::uint64_t bytes) {
  return per_second * static_cast<double>(bytes) / 1e9;
}

transport::ConnectionPtr connect(boost::asio::io_context& loop, int socket) {
  boost::system::error_code error;
  auto adopted = transport::adopt(loop, AF_UNIX, transport::OwnedFd(socket), error);
  if (error) throw boost::system::system_error(error);
  return transport::Connection::make(std::move(adopted));
}

/// A node with nothing but a store, and a socket for each of its processes. Arenas are fetched by
/// their number.
class NodeProcess {
 public:
  explicit NodeProcess(int processes) {
    int told[2];
    if (::pipe2(told, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::vector<int> theirs;
    for (int i = 0; i < processes; ++i) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::runtime_error("no socket");
      sockets_.push_back(ends[0]);
      theirs.push_back(ends[1]);
    }
    pid_ = ::fork();
    if (pid_ == 0) serve(theirs, told[1]);
    for (const int socket : theirs) ::close(socket);
    int fd = -1;
    if (::read(told[0], &fd, sizeof(fd)) != sizeof(fd))
      throw std::runtime_error("the node has ended");
    arena_ = ::open(fmt::format("/proc/{}/fd/{}", pid_, fd).c_str(), O_RDWR | O_CLOEXEC);
  }
  ~NodeProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(arena_);
  }
  int arena() const { return arena_; }
  int socket(std::size_t process) const { return sockets_.at(process); }

 private:
  [[noreturn]] static void serve(const std::vector<int>& sockets, int tell) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    boost::asio::io_context loop;
    store::ServiceOptions options;
    options.spill_bytes = 0;
    store::Service service(loop, options);
    std::vector<transport::ConnectionPtr> links;
    int fd = -1;
    for (const int socket : sockets) {
      const store::ProcessId number{links.size() + 1};
      auto* link = links.emplace_back(connect(loop, socket)).get();
      const auto arena = service.attach(
          number, store::JobId{1},
          [link](transport::Outgoing&& message) { link->send(std::move(message)); },
          [](const std::string&) { ::_exit(1); });
      fd = std::get<int>(arena);
      link->start([&service,
                   number](wire::Message::Reader message) { service.on_message(number, message); },
                  [](const std::string&) {});
    }
    if (::write(tell, &fd, sizeof(fd)) != sizeof(fd)) ::_exit(1);
    loop.run();
    ::_exit(0);
  }

  pid_t pid_ = 0;
  int arena_ = -1;
  std::vector<int> sockets_;
};

/// One process's way to the store.
class ProcessSide {
 public:
  ProcessSide(const NodeProcess& node, std::size_t number, store::ClientOptions options)
      : link_(connect(loop_, node.socket(number - 1))) {
    auto mapping = store::Mapping::map(node.arena());
    client_ = std::make_unique<store::Client>(
        loop_, store::ProcessId(number), std::move(std::get<store::Mapping>(mapping)),
        [this](transport::Outgoing&& message) { link_->send(std::move(message)); }, options);
    link_->start([this](wire::Message::Reader message) { client_->on_message(message); },
                 [this](const std::string& why) { client_->closed(why); });
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ProcessSide() {
    loop_.stop();
    thread_.join();
  }

  store::Writable create(std::uint64_t bytes) {
    auto made = client_->create(bytes, store::ProcessId{1});
    if (const auto* refusal = std::get_if<store::Refusal>(&made))
      throw std::runtime_error(refusal->message);
    return std::move(std::get<store::Writable>(made));
  }
  store::ObjectId put(const std::vector<std::byte>& value) {
    auto writable = create(value.size());
    std::memcpy(writable.bytes().data(), value.data(), value.size());
    return std::move(writable).seal();
  }
  store::ViewPtr view(store::ObjectId object) {
    auto view = client_->view(object);
    if (const auto* refusal = std::get_if<store::Refusal>(&view))
      throw std::runtime_error(refusal->message);
    return std::get<store::ViewPtr>(view);
  }
  store::Client& client() { return *client_; }

 private:
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  transport::ConnectionPtr link_;
  std::unique_ptr<store::Client> client_;
  std::thread thread_;
};

void measure_put(const Report& report, ProcessSide& writer) {
  const std::vector<std::byte> value(kLarge, std::byte{1});
  std::vector<std::byte> warm(kLarge, std::byte{2});
  const auto copy = rate(report, [&] { std::memcpy(warm.data(), value.data(), kLarge); });
  report.print("memcpy_100MiB", gigabytes(copy, kLarge), "GB/s");

  // Several at once, so that each put takes pages that nobody has written to yet.
  constexpr int kFresh = 4;
  std::vector<store::ObjectId> objects;
  const auto start = Clock::now();
  for (int i = 0; i < kFresh; ++i) objects.push_back(writer.put(value));
  report.print("put_100MiB_fresh", gigabytes(kFresh / seconds_since(start), kLarge), "GB/s");
  for (const auto object : objects) writer.client().free(object);

  const auto put = rate(report, [&] { writer.client().free(writer.put(value)); });
  report.print("put_100MiB", gigabytes(put, kLarge), "GB/s");
  report.print("put_100MiB_to_memcpy", put / copy, "ratio");
  for (const auto& [size, bytes] : kSizes) {
    report.print(
        fmt::format("create_{}_in_place", size),
        rate(report, [&] { writer.client().free(std::move(writer.create(bytes)).seal()); }), "1/s");
  }
}

void measure_get(const Report& report, ProcessSide& writer, ProcessSide& reader,
                 ProcessSide& forgetful) {
  for (const auto& [size, bytes] : kSizes) {
    const auto object = writer.put(std::vector<std::byte>(bytes, std::byte{3}));
    report.print(fmt::format("get_{}", size), rate(report, [&] { reader.view(object); }), "1/s");
    report.print(fmt::format("get_{}_by_the_node", size),
                 rate(report, [&] { forgetful.view(object); }), "1/s");
    writer.client().free(object);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options;
  bench::Arguments arguments("What the object store costs on this machine.");
  arguments.option("--seconds", options.seconds, "of each case");
  arguments.flag("--json", options.json, "a JSON line for each case");
  arguments.parse(argc, argv);
  const Report report(options);

  const NodeProcess node(3);
  ProcessSide writer(node, 1, {}), reader(node, 2, {}), forgetful(node, 3, {.idle_views = 0});
  measure_put(report, writer);
  measure_get(report, writer, reader, forgetful);
}
