#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace troupe::store {

/// One thread for work that blocks, one piece after the other, with its results brought home to a
/// loop. The thread begins with the first piece. Belongs to the loop.
class WorkThread {
 public:
  explicit WorkThread(boost::asio::io_context& loop) : loop_(loop) {}
  /// Waits for the piece that runs; those after it are dropped, and nobody is told of their
  /// results.
  ~WorkThread();

  /// `work()` on the lane's thread, then `done(result)` on the loop.
  template <class Work, class Done>
  void run(Work work, Done done) {
    start([this, alive = std::weak_ptr(alive_), work = std::move(work),
           done = std::move(done)]() mutable {
      auto result = work();
      boost::asio::post(loop_,
                        [alive, done = std::move(done), result = std::move(result)]() mutable {
                          if (!alive.expired()) done(std::move(result));
                        });
    });
  }

 private:
  void start(std::function<void()> piece);

  boost::asio::io_context& loop_;
  std::unique_ptr<boost::asio::thread_pool> thread_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace troupe::store
