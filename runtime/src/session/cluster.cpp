#include <troupe/cluster.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "config/name.hpp"
#include "node/program/program.hpp"
#include "node/spawn/child.hpp"
#include "node/spawn/zygote.hpp"
#include "os/open_files.hpp"
#include "session/driver.hpp"
#include "session/embedded.hpp"
#include "session/misspelt.hpp"
#include "session/worker.hpp"
#include "transport/find_token.hpp"
#include "transport/socket/dial.hpp"

namespace troupe {
namespace {

/// A process that a node or a private cluster has started says so in its environment; it never
/// leaves here.
void become_what_it_was_started_as() {
  const char* boot = std::getenv(node::kBootVariable);
  if (!boot) return;
  const std::string text = boot;
  unsetenv(node::kBootVariable);
  const auto colon = text.find(':');
  const int fd = colon == std::string::npos ? -1 : std::atoi(text.c_str() + colon + 1);
  const auto kind = text.substr(0, colon);
  if (kind == "zygote") runtime::run_worker(node::serve_zygote(fd));
  if (kind == "worker") {
    node::line_buffer_output();
    runtime::run_worker(fd);
  }
  if (kind == "embedded") runtime::serve_embedded(fd);
  raise({.kind = Failure::Kind::Refused,
         .message = fmt::format("{}='{}' is not a boot instruction", node::kBootVariable, text)});
}

/// `--name value` or `--name=value`; the last one counts.
std::optional<std::string> argument(int argc, char** argv, std::string_view name) {
  std::optional<std::string> found;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text == "--") break;
    if (text == name && i + 1 == argc) {
      raise({.kind = Failure::Kind::Refused, .message = fmt::format("{} needs a value", name)});
    }
    if (text == name) found = argv[i + 1];
    if (text.starts_with(name) && text.size() > name.size() && text[name.size()] == '=')
      found = text.substr(name.size() + 1);
  }
  if (found && found->empty()) {
    raise({.kind = Failure::Kind::Refused,
           .message = fmt::format("{} was given an empty value", name)});
  }
  return found;
}

bool has_argument(int argc, char** argv, std::string_view name) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    if (argv[i] == name) return true;
  }
  return false;
}

/// As this process was started, whatever main has done to argv since.
std::vector<std::string> command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string text; std::getline(in, text, '\0');) arguments.push_back(text);
  return arguments;
}

void check_names(const InitOptions& options) {
  if (!options.name.empty()) config::require_name("InitOptions::name", options.name);
  for (const auto& [name, amount] : options.resources)
    config::require_name("the name in InitOptions::resources", name);
}

void check_weight(double weight) {
  if (std::isfinite(weight) && weight > 0) return;
  throw std::invalid_argument(
      fmt::format("InitOptions::weight is {}, and a job's part of the cluster beside others' is a "
                  "finite number above 0: give 1 for an equal part, 2 for twice as much",
                  weight));
}

}  // namespace

struct Cluster::Impl {
  std::unique_ptr<runtime::Embedded> embedded;  // outlives the driver's session
  std::unique_ptr<runtime::Driver> driver;
  transport::Endpoint head;
  pid_t owner = ::getpid();

  /// A copy of this process that user code has forked ends nothing: its sockets are the owner's.
  ~Impl() {
    if (::getpid() == owner) {
      // An error that is on its way to the user is not held up.
      if (driver && std::uncaught_exceptions() == 0) driver->finish_detached();
      return;
    }
    static_cast<void>(driver.release());
    static_cast<void>(embedded.release());
  }
};

Cluster::Cluster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;
Cluster::~Cluster() = default;

std::string Cluster::address() const { return transport::name_of(here().head); }
std::string Cluster::status_json() const {
  if (::getpid() != here().owner) {
    raise({.kind = Failure::Kind::Refused,
           .message = "this Cluster is that of the process which forked this one: it is "
                      "asked there"});
  }
  return here().driver->status_json(std::chrono::seconds(5));
}

const Cluster::Impl& Cluster::here() const {
  if (!impl_)
    throw std::logic_error("this Cluster was moved from: ask the one that it was moved to");
  return *impl_;
}

Cluster init(int argc, char** argv, InitOptions options) {
  become_what_it_was_started_as();
  if (runtime::Process::maybe())
    throw std::logic_error(
        "troupe::init was called before in this process, and its Cluster is still there");
  check_names(options);
  check_weight(options.weight);
  for (const auto& line : runtime::misspelt_arguments(argc, argv))
    std::fprintf(stderr, "troupe: %s\n", line.c_str());
  if (auto address = argument(argc, argv, runtime::kAddress)) options.address = *address;
  if (auto file = argument(argc, argv, runtime::kTokenFile)) options.token_file = *file;
  if (const char* address = std::getenv("TROUPE_ADDRESS");
      address && *address && options.address.empty())
    options.address = address;

  auto impl = std::make_unique<Cluster::Impl>();
  runtime::DriverOptions driver;
  driver.program = node::describe_program(0, nullptr);
  driver.program.arguments = command_line();
  if (options.hash_program) driver.program.sha256 = node::ProgramImage().sha256();
  driver.name = options.name.empty()
                    ? driver.program.path.substr(driver.program.path.rfind('/') + 1)
                    : options.name;
  driver.weight = options.weight;
  driver.worker_output =
      options.worker_output && !has_argument(argc, argv, runtime::kNoWorkerOutput);
  driver.worker_names = options.worker_names;
  if (options.address.empty()) {
    impl->embedded = std::make_unique<runtime::Embedded>(options, driver.program.arguments);
    driver.is_private = true;
    driver.head = impl->embedded->head();
    driver.token = impl->embedded->token();
  } else {
    driver.head = transport::parse_endpoint(options.address);
    auto found = transport::find_token(driver.head, options.token_file);
    driver.token = found.secret;
    driver.token_from = std::move(found.from);
  }
  impl->head = driver.head;
  // Each actor that is called takes one or two. A private cluster, which was forked before, has and
  // hands on what this program was started with.
  os::raise_open_files_limit();
  impl->driver = std::make_unique<runtime::Driver>(driver);
  return Cluster(std::move(impl));
}

Cluster init(InitOptions options) { return init(0, nullptr, std::move(options)); }

}  // namespace troupe
