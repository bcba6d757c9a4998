#include "node/spawn/zygote_client.hpp"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace troupe::node {

ZygoteClient::ZygoteClient(asio::io_context& loop, os::UniqueFd control)
    : control_(loop, control.release()) {}

void ZygoteClient::start(std::function<void()> on_ready, std::function<void()> on_closed) {
  on_ready_ = std::move(on_ready);
  on_closed_ = std::move(on_closed);
  wait_to_read();
}

void ZygoteClient::fork(const ZygotePacket& packet, os::UniqueFd link, OnAnswer on_answer) {
  auto bytes = encode(packet);
  if (bytes.size() > kZygotePacketBytes) {
    const ZygotePacket failed{
        ZygotePacket::Kind::Failed, 0, packet.process, {"its environment is too long"}};
    return on_answer(&failed, std::move(link));
  }
  waiting_.emplace(packet.process, Waiting{std::move(link), std::move(on_answer)});
  outbox_.push_back({packet.process, std::move(bytes)});
  if (!writing_) write();
}

void ZygoteClient::finish() {
  outbox_.clear();
  if (control_.is_open()) ::shutdown(control_.native_handle(), SHUT_WR);
}

void ZygoteClient::close() {
  on_ready_ = on_closed_ = nullptr;
  waiting_.clear();
  outbox_.clear();
  boost::system::error_code ignored;
  control_.close(ignored);
}

void ZygoteClient::drain() {
  const auto self = shared_from_this();
  while (control_.is_open()) {
    const auto received = receive_packet(control_.native_handle(), MSG_DONTWAIT);
    if (!received.packet) return lost();
    on_packet(*received.packet);
  }
}

void ZygoteClient::wait_to_read() {
  control_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](boost::system::error_code error) {
                        if (!error) self->read();
                      });
}

void ZygoteClient::read() {
  while (control_.is_open()) {
    const auto received = receive_packet(control_.native_handle(), MSG_DONTWAIT);
    if (received.error == EAGAIN) return wait_to_read();
    if (!received.packet) return lost();
    on_packet(*received.packet);
  }
}

void ZygoteClient::on_packet(const ZygotePacket& packet) {
  if (packet.kind == ZygotePacket::Kind::Ready) {
    if (!std::exchange(ready_, true) && on_ready_) on_ready_();
    return;
  }
  auto found = waiting_.extract(packet.process);
  if (!found.empty()) found.mapped().on_answer(&packet, std::move(found.mapped().link));
}

void ZygoteClient::write() {
  writing_ = false;
  for (; !outbox_.empty(); outbox_.pop_front()) {
    const auto& next = outbox_.front();
    const auto waiting = waiting_.find(next.process);
    if (waiting == waiting_.end()) continue;
    const int error =
        send_packet(control_.native_handle(), next.bytes, waiting->second.link.get(), MSG_DONTWAIT);
    if (error == EAGAIN) break;
    if (error != 0) return;  // its end is gone: what is to be read says so
  }
  if (outbox_.empty()) return;
  writing_ = true;
  control_.async_wait(asio::posix::stream_descriptor::wait_write,
                      [self = shared_from_this()](boost::system::error_code error) {
                        if (!error) self->write();
                      });
}

void ZygoteClient::lost() {
  auto waiting = std::exchange(waiting_, {});
  auto on_closed = std::move(on_closed_);
  close();
  for (auto& [process, one] : waiting) one.on_answer(nullptr, std::move(one.link));
  if (on_closed) on_closed();
}

}  // namespace troupe::node
