#include "node/program/program_fetch.hpp"

#include <algorithm>
#include <memory>

#include <fcntl.h>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "node/failures.hpp"
#include "node/program/program.hpp"
#include "transport/patience.hpp"
#include "transport/silence_timer.hpp"

namespace troupe::node {
namespace {

constexpr std::uint64_t kChunksInFlight = 4;

using Result = std::variant<CachedProgram, Failure>;

/// The file of the running process, where that is the program with this digest.
std::optional<CachedProgram> own_program(const Digest& digest, std::uint64_t size) {
  try {
    const auto self = describe_program(0, nullptr);
    if (self.size != size || !why_changed(self).empty()) return std::nullopt;
    os::UniqueFd file(::open(self.path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    const auto own = digest_of(file.get());
    const auto* known = std::get_if<Digest>(&own);
    if (known == nullptr || *known != digest) return std::nullopt;
    return CachedProgram{std::move(file), self.path};
  } catch (const Error&) {
    return std::nullopt;  // then it is fetched
  }
}

/// [connecting] --welcome--> [asking for the digest] --lacking--> [receiving] --all there--> [over]
/// Any of them goes to [over] by a failure or by silence.
class Fetch : public std::enable_shared_from_this<Fetch> {
 public:
  Fetch(asio::io_context& loop, std::shared_ptr<ProgramCache> cache, ProgramFetch what,
        std::function<void(Result)> done)
      : loop_(loop),
        cache_(std::move(cache)),
        what_(std::move(what)),
        done_(std::move(done)),
        silence_(loop.get_executor()) {}

  void start() {
    if (auto here = program_that_is_here()) {
      return asio::post(loop_, [self = shared_from_this(), found = std::move(*here)]() mutable {
        self->finish(std::move(found));
      });
    }
    expect_within_silence();
    // A driver that hashes a large program for another node is busy for about a second for each GB
    // of it.
    transport::connect_patiently(
        loop_, what_.driver, what_.client,
        {.again = [self = shared_from_this()](auto&&) { return self->done_ != nullptr; }},
        [self = shared_from_this()](transport::ConnectionPtr connection, transport::Accepted) {
          self->on_open(connection);
        },
        [self = shared_from_this()](transport::Denied denied) {
          self->fail(
              fmt::format("cannot fetch the program from its driver at {}: {}; the driver must be "
                          "reachable from this node (see the option host)",
                          self->driver(), denied.why));
        });
  }

 private:
  /// Of a driver that has announced its digest, and may be gone: from the cache, or the program that
  /// runs here, which is Troupe's own on each node.
  std::optional<CachedProgram> program_that_is_here() {
    if (!what_.digest) return std::nullopt;
    if (auto cached = cache_->find(*what_.digest)) return cached;
    return own_program(*what_.digest, what_.size);
  }

  std::string driver() const { return fmt::format("{}:{}", what_.driver.host, what_.driver.port); }

  void on_open(transport::ConnectionPtr connection) {
    if (!done_) return connection->close();
    connection_ = std::move(connection);
    connection_->hand_over(
        {.frame_bytes = 2 * kProgramChunkBytes},
        [self = shared_from_this()](wire::Message::Reader message) {
          if (message.which() == wire::Message::PROGRAM_CHUNK)
            self->on_chunk(message.getProgramChunk());
        },
        [self = shared_from_this()](const std::string& why) {
          self->fail(fmt::format("the driver at {} left while its program was fetched: {}",
                                 self->driver(), why));
        });
    request(kDigestOnly);
  }

  void request(std::uint64_t offset) {
    transport::Outgoing message;
    auto request = message.root().initProgramRequest();
    request.setJob(what_.job.value());
    request.setOffset(offset);
    connection_->send(message);
  }

  void on_chunk(wire::ProgramChunk::Reader chunk) {
    if (!done_) return;
    expect_within_silence();
    if (chunk.getFailure().size() > 0)
      return fail("the driver cannot send its program: " + std::string(chunk.getFailure()));
    try {
      chunk.getOffset() == kDigestOnly ? on_digest(chunk.getSha256()) : on_data(chunk);
    } catch (const Error& error) {
      fail(error.failure().message);
    }
  }

  void on_digest(capnp::Data::Reader bytes) {
    if (entry_ || bytes.size() != sizeof(Digest))
      return fail("the driver's answer has no SHA-256 of its program");
    std::copy(bytes.begin(), bytes.end(), digest_.begin());
    if (what_.digest && *what_.digest != digest_)
      return fail("the driver's program is not the one that it announced");
    if (auto cached = cache_->find(digest_)) return finish(std::move(*cached));
    entry_.emplace(cache_->begin());
    if (what_.size == 0) return fail("the driver's program is an empty file");
    while (requested_ < std::min(what_.size, kChunksInFlight * kProgramChunkBytes)) request_next();
  }

  void request_next() {
    request(requested_);
    requested_ += kProgramChunkBytes;
  }

  void on_data(wire::ProgramChunk::Reader chunk) {
    const auto data = chunk.getData();
    const auto expected = std::min<std::uint64_t>(kProgramChunkBytes, what_.size - received_);
    if (!entry_ || chunk.getOffset() != received_ || data.size() != expected) {
      return fail(fmt::format("the driver sent {} bytes of its program from {}, not {} from {}",
                              data.size(), chunk.getOffset(), expected, received_));
    }
    if (auto why = entry_->append(data.begin(), data.size()); !why.empty()) {
      return fail("cannot store the program in the cache of this node: " + why);
    }
    received_ += data.size();
    if (received_ == what_.size) return finish(cache_->commit(std::move(*entry_), digest_));
    if (requested_ < what_.size) request_next();
  }

  void expect_within_silence() {
    silence_.start(what_.silence, [self = shared_from_this()] {
      self->fail(
          fmt::format("the driver at {} is silent while its program is fetched", self->driver()));
    });
  }

  void fail(std::string why) { finish(failure_of(Failure::Kind::Program, std::move(why))); }

  void finish(Result result) {
    if (!done_) return;
    auto done = std::move(done_);
    done_ = nullptr;
    silence_.cancel();
    entry_.reset();
    if (connection_) connection_->close();
    connection_.reset();
    done(std::move(result));
  }

  asio::io_context& loop_;
  std::shared_ptr<ProgramCache> cache_;
  ProgramFetch what_;
  std::function<void(Result)> done_;
  transport::SilenceTimer silence_;
  transport::ConnectionPtr connection_;
  Digest digest_{};
  std::optional<ProgramCache::Entry> entry_;
  std::uint64_t requested_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace

void fetch_program(asio::io_context& loop, std::shared_ptr<ProgramCache> cache, ProgramFetch what,
                   std::function<void(Result)> done) {
  if (what.digest) {
    if (auto cached = cache->find(*what.digest)) {
      auto found = std::make_shared<CachedProgram>(std::move(*cached));
      asio::post(loop, [found, done = std::move(done)] { done(std::move(*found)); });
      return;
    }
  }
  std::make_shared<Fetch>(loop, std::move(cache), std::move(what), std::move(done))->start();
}

}  // namespace troupe::node
