#include "transport/outbox.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "transport/frame.hpp"

namespace troupe::transport {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{128} << 10;
constexpr std::size_t kLargeBytes = std::size_t{32} << 10;
constexpr std::size_t kSmallWords = 128;   // a larger message is copied once
constexpr std::size_t kAroundValue = 512;  // bytes of a message with a value beside that

/// Zeroed memory for a small message. Each thread keeps one: most messages are written, and copied to
/// where they leave from, one at a time.
class SmallSegment {
 public:
  SmallSegment() : words_(has_spare_ended ? nullptr : std::move(spare_.words)) {
    if (!words_) words_ = std::make_unique<std::uint64_t[]>(kSmallWords);
  }
  /// Zeroed again by then.
  ~SmallSegment() {
    if (!has_spare_ended) spare_.words = std::move(words_);
  }
  SmallSegment(const SmallSegment&) = delete;
  SmallSegment& operator=(const SmallSegment&) = delete;

  kj::ArrayPtr<capnp::word> all() const {
    return {reinterpret_cast<capnp::word*>(words_.get()), kSmallWords};
  }

 private:
  struct Spare {
    std::unique_ptr<std::uint64_t[]> words;
    ~Spare() { has_spare_ended = true; }  // a message may outlive it
  };
  static inline thread_local bool has_spare_ended = false;
  static thread_local Spare spare_;

  std::unique_ptr<std::uint64_t[]> words_;
};

thread_local SmallSegment::Spare SmallSegment::spare_;

/// Its own destructor zeroes what it has used of the segment, before the segment's.
class SmallMessage final : private SmallSegment, public capnp::MallocMessageBuilder {
 public:
  SmallMessage() : MallocMessageBuilder(all()) {}
};

std::unique_ptr<capnp::MallocMessageBuilder> message_of(std::size_t bytes) {
  const auto words = (kAroundValue + bytes) / sizeof(capnp::word);
  if (words <= kSmallWords) return std::make_unique<SmallMessage>();
  return std::make_unique<capnp::MallocMessageBuilder>(static_cast<kj::uint>(words));
}

}  // namespace

Outgoing::Outgoing(std::size_t bytes)
    : message_(message_of(bytes)), root_(message_->initRoot<wire::Message>()) {}

std::span<const char> Outgoing::body() {
  if (message_->getSegmentsForOutput().size() > 1) {
    auto whole = std::make_unique<capnp::MallocMessageBuilder>(
        static_cast<kj::uint>(message_->sizeInWords()));
    whole->setRoot(root_.asReader());
    root_ = whole->getRoot<wire::Message>();
    message_ = std::move(whole);
  }
  const auto bytes = message_->getSegmentsForOutput()[0].asChars();
  return {bytes.begin(), bytes.size()};
}

namespace {

void append_header(std::size_t body_bytes, std::vector<char>& out) {
  out.insert(out.end(), kMagic.begin(), kMagic.end());
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(body_bytes >> shift));
}

}  // namespace

void Outgoing::append_to(std::vector<char>& out) {
  const auto bytes = body();
  append_header(bytes.size(), out);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::vector<char>& Outbox::batch() {
  if (pieces_.empty() || pieces_.back().large || !pieces_.back().descriptors.empty() ||
      pieces_.back().batch.size() >= kBatchBytes) {
    pieces_.push_back({.batch = std::exchange(spare_, {}), .large = nullptr, .descriptors = {}});
  }
  return pieces_.back().batch;
}

void Outbox::push(Outgoing& message) {
  auto& out = batch();
  bytes_ += kHeaderBytes + message.body().size();
  message.append_to(out);
}

void Outbox::push(Outgoing&& message) {
  const auto size = message.body().size();
  if (size < kLargeBytes) return push(message);
  push(std::make_shared<Outgoing>(std::move(message)));
}

void Outbox::push(std::shared_ptr<Outgoing> message) {
  const auto size = message->body().size();
  append_header(size, batch());
  pieces_.push_back({.batch = {}, .large = std::move(message), .descriptors = {}});
  bytes_ += kHeaderBytes + size;
}

void Outbox::push(std::span<const char> frame) {
  auto& out = batch();
  out.insert(out.end(), frame.begin(), frame.end());
  bytes_ += frame.size();
}

void Outbox::push(Outgoing&& message, std::vector<os::UniqueFd> descriptors) {
  pieces_.push_back({.batch = {}, .large = nullptr, .descriptors = std::move(descriptors)});
  message.append_to(pieces_.back().batch);
  bytes_ += pieces_.back().batch.size();
}

std::span<const os::UniqueFd> Outbox::descriptors() const {
  if (pieces_.empty()) return {};
  return pieces_.front().descriptors;
}

std::size_t Outbox::gather(std::span<iovec> pieces) const {
  std::size_t count = 0;
  for (; count < std::min(pieces.size(), pieces_.size()); ++count) {
    const auto i = count;
    if (i != 0 && !pieces_[i].descriptors.empty()) break;  // they go with the first byte of a write
    const auto bytes = pieces_[i].bytes().subspan(i == 0 ? sent_ : 0);
    pieces[i] = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  }
  return count;
}

void Outbox::drop(std::size_t bytes) {
  bytes_ -= bytes;
  sent_ += bytes;
  if (bytes != 0 && !pieces_.empty()) pieces_.front().descriptors.clear();
  while (!pieces_.empty() && sent_ >= pieces_.front().bytes().size()) {
    sent_ -= pieces_.front().bytes().size();
    if (pieces_.front().batch.capacity() <= 2 * kBatchBytes) {
      spare_ = std::move(pieces_.front().batch);
      spare_.clear();
    }
    pieces_.pop_front();
  }
}

void Outbox::clear() {
  pieces_.clear();
  sent_ = bytes_ = 0;
}

}  // namespace troupe::transport
