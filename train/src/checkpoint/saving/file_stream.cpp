#include "checkpoint/saving/file_stream.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <troupe/errors.hpp>

namespace troupe::train {
namespace {

constexpr std::size_t kMostInMessage = std::size_t{16} << 20;

enum class Kind : std::int64_t { Begin, Bytes, End, Manifest, Error };

void send_to_first(Communicator& communicator, Kind kind, const void* bytes, std::size_t count) {
  const std::array head{static_cast<std::int64_t>(kind), static_cast<std::int64_t>(count)};
  communicator.send(std::span<const std::int64_t>(head), 0);
  if (count != 0) communicator.send(bytes, count, DataType::UInt8, 0);
}

void send_to_first(Communicator& communicator, Kind kind, const std::string& text = {}) {
  send_to_first(communicator, kind, text.data(), text.size());
}

std::pair<Kind, std::string> receive_one(Communicator& communicator, int from) {
  std::array<std::int64_t, 2> head{};
  communicator.recv(std::span<std::int64_t>(head), from);
  std::string bytes(static_cast<std::size_t>(head[1]), '\0');
  if (!bytes.empty()) communicator.recv(bytes.data(), bytes.size(), DataType::UInt8, from);
  return {static_cast<Kind>(head[0]), std::move(bytes)};
}

class SinkToFirst final : public FileSink {
 public:
  explicit SinkToFirst(Communicator& communicator) : communicator_(communicator) {}
  void begin(const std::string& name) override { send_to_first(communicator_, Kind::Begin, name); }
  void write(const void* bytes, std::size_t count) override {
    const auto* next = static_cast<const std::byte*>(bytes);
    for (std::size_t sent = 0; sent < count; sent += kMostInMessage) {
      send_to_first(communicator_, Kind::Bytes, next + sent,
                    std::min(kMostInMessage, count - sent));
    }
  }
  void end() override { send_to_first(communicator_, Kind::End); }

 private:
  Communicator& communicator_;
};

void put(FileSink& sink, Kind kind, const std::string& bytes) {
  if (kind == Kind::Begin) sink.begin(bytes);
  if (kind == Kind::Bytes) sink.write(bytes.data(), bytes.size());
  if (kind == Kind::End) sink.end();
}

}  // namespace

std::unique_ptr<FileSink> sink_to_first(Communicator& communicator) {
  return std::make_unique<SinkToFirst>(communicator);
}

void send_outcome(Communicator& communicator, const RankOutcome& outcome) {
  if (outcome.error.empty())
    send_to_first(communicator, Kind::Manifest, outcome.manifest);
  else
    send_to_first(communicator, Kind::Error, outcome.error);
}

RankOutcome receive(Communicator& communicator, int from, FileSink& sink) {
  std::string error;
  for (;;) {
    auto [kind, bytes] = receive_one(communicator, from);
    if (kind == Kind::Error) return {.manifest = {}, .error = std::move(bytes)};
    if (kind == Kind::Manifest)
      return {.manifest = error.empty() ? std::move(bytes) : "", .error = std::move(error)};
    if (!error.empty()) continue;
    try {
      put(sink, kind, bytes);
    } catch (const Error& failed) {
      error = failed.what();
    }
  }
}

}  // namespace troupe::train
