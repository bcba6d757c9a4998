#include "store/service/work_thread.hpp"

#include <utility>

#include <csignal>

namespace troupe::store {
namespace {

/// Signals of the process are for the thread of the loop.
std::unique_ptr<boost::asio::thread_pool> make_thread() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto thread = std::make_unique<boost::asio::thread_pool>(1);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

WorkThread::~WorkThread() {
  if (!thread_) return;
  thread_->stop();
  thread_->join();
}

void WorkThread::start(std::function<void()> piece) {
  if (!thread_) thread_ = make_thread();
  boost::asio::post(*thread_, std::move(piece));
}

}  // namespace troupe::store
