#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

/// A model, as ReductionQueue sees it: buckets of gradients, numbered alike on all ranks.
class Reducible {
 public:
  virtual ~Reducible() = default;
  Reducible(const Reducible&) = delete;
  Reducible& operator=(const Reducible&) = delete;

  virtual std::string name() const = 0;  ///< for errors
  virtual std::size_t buckets() const = 0;
  /// Whether it has gradients that were accumulated without an average: then it takes part in the
  /// next backward that averages, even if that does not come to it.
  virtual bool owes_average() const = 0;
  /// Whether a rank that has no gradients of this model adds zeros, which is an error otherwise.
  virtual bool zero_where_unused() const = 0;

  /// Averages a bucket over the ranks, or begins to. A collective, on a thread of the queue or on
  /// that of close() and abandon().
  virtual void reduce(std::size_t bucket) = 0;
  /// Waits until what reduce() has begun is done. On the thread of close() or abandon().
  virtual void complete_reductions() {}
  /// Ends what reduce() has begun: a communicator has failed, and this backward is lost.
  virtual void give_up_reductions() noexcept {}
  /// The backward in which this model took part has all its gradients: fills the buckets that are
  /// not full. May throw.
  virtual void fill() = 0;
  /// As fill(), of a model that took no part here, but on another rank.
  virtual void fill_with_zeros() = 0;
  /// All buckets are averages on all ranks. A collective over `control`.
  virtual void finish(Communicator& control) = 0;
  /// This backward is over, well or not.
  virtual void reset() = 0;

 protected:
  Reducible() = default;
};

/// The reductions of all models of a context, one after the other and in one order on all ranks,
/// although their threads of autograd fill the buckets of several models in orders of their own.
/// Lives in one rank's process, one per context.
///
/// A backward is open from the first gradient of a model until close() or abandon(). Meanwhile the
/// ranks agree in rounds: each tells which models have begun on it, whether its backward has ended,
/// and whether an exception left it. All then reduce what models have begun anywhere and were not
/// agreed on before: the model that was prepared last comes first, since backward of a chain of
/// models comes to it first; its buckets follow in their order. The backward is over once all ranks
/// had ended in a round and what was agreed on is reduced.
///
/// What must hold:
/// 1. All ranks make the same calls of the communicators in the same order: what follows a round
///    depends on its result alone, which is the same everywhere.
/// 2. Nobody waits for ever: to take part in a round, or to reduce a bucket, a rank waits for its
///    own autograd only, which before it has ended waits in await_room() alone, and there only
///    while the queue does not wait for it; then every bucket counts as full. So what autograd
///    waits for otherwise, as for a collective of the program's own, must need no bucket that comes
///    later.
/// 3. One thread at a time is inside the communicators: the queue's own until the backward has
///    ended, then its caller's.
/// 4. A backward that an exception left on one rank fails on all: that rank goes through what the
///    others do, and the last round tells them. None of them is in another backward than the others
///    afterwards.
///
/// A backward that an exception leaves before any gradient has come has not begun, and nobody is
/// told of it.
class ReductionQueue {
 public:
  /// `control`: over main memory, for the rounds; used by nobody else while a backward is open.
  /// Outlives the queue.
  explicit ReductionQueue(Communicator& control);
  ~ReductionQueue();
  ReductionQueue(const ReductionQueue&) = delete;
  ReductionQueue& operator=(const ReductionQueue&) = delete;

  /// -> the model's ordinal, which all ranks give it: they add alike. The model lives as long as
  /// backwards run. Throws std::logic_error while one does.
  std::size_t add(Reducible& model);
  /// Throws std::logic_error while a backward runs.
  void refuse_while_open();
  /// The model is no more. All ranks remove alike, while no backward runs.
  void remove(std::size_t model);

  /// How a backward has ended on this rank.
  enum class End { Returned, ByException };
  /// Called once for each backward, when it has ended on this rank, and before what the ranks then
  /// do; on the thread of close() or abandon(). What it throws fails the backward.
  void set_at_end(std::function<void(End)> at_end) { at_end_ = std::move(at_end); }

  /// A model's first gradient has come. -> whether it is the first model of this backward, whose
  /// caller sees to it that close() or abandon() is called.
  bool begin(std::size_t model);
  /// The first `buckets` buckets of a model are full.
  void on_full(std::size_t model, std::size_t buckets);
  /// Waits while more than `most` of the model's full buckets are not reduced, unless what the
  /// queue would do next waits for this rank's autograd. For gradients that take memory until they
  /// are reduced; not where a rank needs others in its backward, as with ZeRO's stage 3.
  void await_room(std::size_t model, std::size_t most);
  /// The backward has ended on this rank. Returns once all its models are averages. Throws what
  /// Reducible::fill threw, the errors of the communicators, GangBroken naming ranks that an
  /// exception left, std::logic_error naming a model that took part on some ranks only. But for
  /// those of the communicators, the next backward works after them, on all ranks.
  void close();
  /// An exception has left the backward on this rank. Returns once the other ranks can know.
  void abandon() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Model {
    Reducible* reducible;  // nullptr: removed
    bool begun = false;
    bool agreed = false;
    std::size_t full = 0;
    std::size_t reduced = 0;
  };
  struct Step {
    std::size_t model;
    std::size_t bucket;
  };

  void check_closed() const;
  bool begin_if_it_owes(std::size_t model);
  void run_thread();
  void run_until_ended(Lock& lock);
  void run_to_the_end(Lock& lock);
  void complete_reductions(Lock& lock);
  bool is_ready() const;
  void advance(Lock& lock);
  void take_step(Lock& lock);
  void take_round(Lock& lock);
  std::vector<std::int32_t> row() const;
  std::vector<int> ranks_that_began(std::size_t model) const;
  void judge(std::exception_ptr own_failure);
  void tell_failure(const std::vector<int>& failed, const std::exception_ptr& own);
  void check_models() const;
  void finish_models();
  void close_with(End end, std::exception_ptr own_failure);
  void reset();

  Communicator& control_;
  std::function<void(End)> at_end_;
  std::mutex mutex_;  // guards what follows: shared by autograd's threads and the queue's own
  std::condition_variable changed_;
  std::vector<Model> models_;
  bool open_ = false;
  bool awake_ = false;    // the thread has something to do in this backward
  bool running_ = false;  // the thread may be inside the communicators
  bool busy_ = false;     // a thread is inside them
  bool ended_ = false;
  bool failed_ = false;
  bool ended_everywhere_ = false;
  bool stopping_ = false;
  std::deque<Step> agreed_;         // still to be reduced
  std::vector<std::int32_t> rows_;  // of the last round, by rank
  std::exception_ptr error_;        // of a communicator
  std::thread thread_;
};

}  // namespace troupe::train
