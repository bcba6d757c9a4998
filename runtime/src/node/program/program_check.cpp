#include "node/program/program_check.hpp"

#include <array>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "node/program/elf.hpp"
#include "node/spawn/spawn.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {
namespace {

constexpr std::size_t kLongestListing = std::size_t{1} << 20;

/// One run of the loader: reads what it prints until it ends, the time is over or it has printed
/// too much.
class Listing : public std::enable_shared_from_this<Listing> {
 public:
  Listing(asio::io_context& loop, std::function<void(std::string)> done)
      : output_(loop), timer_(loop), done_(std::move(done)) {}

  void start(Reaper& reaper, pid_t child, os::UniqueFd output, std::chrono::milliseconds timeout) {
    child_ = child;
    output_.assign(output.release());
    reaper.watch(child, Reaper::Group::Killed,
                 [self = shared_from_this()](int) { self->child_ = 0; });
    timer_.expires_after(timeout);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error) self->finish();
    });
    read();
  }

 private:
  void read() {
    output_.async_read_some(
        asio::buffer(buffer_),
        [self = shared_from_this()](boost::system::error_code error, std::size_t got) {
          self->text_.append(self->buffer_.data(), got);
          if (error || self->text_.size() > kLongestListing) return self->finish();
          self->read();
        });
  }

  void finish() {
    if (!done_) return;
    if (child_ > 0) kill_group(child_);
    timer_.cancel();
    boost::system::error_code ignored;
    output_.close(ignored);
    auto done = std::move(done_);
    done_ = nullptr;
    done(missing_in(text_));
  }

  asio::posix::stream_descriptor output_;
  asio::steady_timer timer_;
  std::function<void(std::string)> done_;
  pid_t child_ = 0;
  std::array<char, 4096> buffer_{};
  std::string text_;
};

std::string loader_of(const std::string& path) {
  os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const auto needs = read_elf(file.get());
  return std::holds_alternative<ElfNeeds>(needs) ? std::get<ElfNeeds>(needs).loader : std::string();
}

}  // namespace

void find_missing_libraries(asio::io_context& loop, Reaper& reaper, const std::string& path,
                            std::chrono::milliseconds timeout,
                            std::function<void(std::string)> done) {
  const auto loader = loader_of(path);
  int ends[2];
  if (loader.empty() || ::pipe2(ends, O_CLOEXEC) != 0) {
    asio::post(loop, [done = std::move(done)] { done({}); });
    return;
  }
  os::UniqueFd read_end(ends[0]), write_end(ends[1]);
  Spawn run;
  run.path = loader;
  run.arguments = {loader, path};
  run.environment = environment_with({"LD_TRACE_LOADED_OBJECTS=1"}, {});
  run.output = write_end.get();
  const auto spawned = spawn(run);
  if (std::holds_alternative<SpawnFailed>(spawned)) {
    asio::post(loop, [done = std::move(done)] { done({}); });
    return;
  }
  std::make_shared<Listing>(loop, std::move(done))
      ->start(reaper, std::get<pid_t>(spawned), std::move(read_end), timeout);
}

std::string missing_in(const std::string& listing) {
  std::vector<std::string> missing;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("not found") == std::string::npos) continue;
    const auto start = line.find_first_not_of(" \t");
    const auto arrow = line.find(" => not found");
    missing.push_back(line.substr(start, arrow == std::string::npos ? arrow : arrow - start));
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace troupe::node
