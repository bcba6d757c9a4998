#include "transfer/loop_thread.hpp"

#include <csignal>

namespace troupe::transfer {

LoopThread::~LoopThread() { stop(); }

boost::asio::io_context& LoopThread::loop() {
  if (work_) return loop_;
  work_.emplace(loop_.get_executor());
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { loop_.run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return loop_;
}

void LoopThread::stop() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace troupe::transfer
