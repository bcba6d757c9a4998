#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <troupe/detail/names.hpp>
#include <troupe/detail/signature.hpp>
#include <troupe/detail/trainable/local_member.hpp>
#include <troupe/detail/trainable/surroundings.hpp>
#include <troupe/detail/trainable/trial_session.hpp>
#include <troupe/gang_context.hpp>

/// A trainable is `R f(Context&, const Config&)`, where Context is constructible from a Member&:
/// what train::run and tune::run make of it.
namespace troupe::detail {

template <class S>
struct TrainableTypes {
  static constexpr bool known = false;
};
template <class R, class C, class Config>
requires(
    !std::is_const_v<C> &&
    std::is_constructible_v<C, Member&>) struct TrainableTypes<Signature<R, void, C&, Config>> {
  static constexpr bool known =
      !std::is_lvalue_reference_v<Config> || std::is_const_v<std::remove_reference_t<Config>>;
  using ContextType = C;
  using ConfigType = std::remove_cvref_t<Config>;
  using ResultType = Returned<R>;
};

/// In place of the types of a function that the compiler has refused, so that it says no more.
struct NoTrainable {
  using ContextType = NoTrainable;
  using ConfigType = NoTrainable;
  using ResultType = void;
};

template <auto F>
constexpr auto trainable_types() {
  using Found = TrainableTypes<decltype(task_signature<F>())>;
  static_assert(Found::known,
                "troupe: a trainable is a function `R f(Context&, const Config&)` with "
                "train::Context or tune::Context");
  return std::conditional_t<Found::known, Found, NoTrainable>{};
}

template <auto F>
using trainable_context = typename decltype(trainable_types<F>())::ContextType;
template <auto F>
using trainable_config = typename decltype(trainable_types<F>())::ConfigType;
template <auto F>
using trainable_result = typename decltype(trainable_types<F>())::ResultType;

/// The result of a function that may return nothing.
template <class R>
using ResultSlot = std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>>;

template <auto F>
void run_trainable(Member& member, const trainable_config<F>& config,
                   ResultSlot<trainable_result<F>>& result) {
  trainable_context<F> context(member);
  try {
    if constexpr (std::is_void_v<trainable_result<F>>) {
      F(context, config);
      result.emplace();
    } else {
      result.emplace(F(context, config));
      // The value may depend on the context, and outlives it.
      if constexpr (requires { complete_value(context, *result); })
        complete_value(context, *result);
    }
  } catch (...) {
    // A context may know more of an error than who threw it.
    if constexpr (requires { add_advice(context); }) add_advice(context);
    throw;
  }
}

/// The actor that is one rank of a run, or of several runs that follow one another in the processes
/// of one gang. The methods from start() to result() are called by the driver's TrialRun only.
template <auto F>
class TrainableWorker {
 public:
  using Config = trainable_config<F>;
  using Result = trainable_result<F>;

  /// Printed lines, status and errors of the constructor name the user's function.
  static constexpr std::string_view troupe_label = function_name<F>;

  TrainableWorker(Config config, RunInfo info)
      : gang_(context()), work_(std::make_shared<Work>(Work{std::move(config), {}})) {
    session_.emplace(gang_, std::move(info), run_);
  }

  void start() {
    session_->start(function_name<F>, [work = work_](Member& member) {
      run_trainable<F>(member, work->config, work->result);
    });
  }
  TrialEvent next(std::optional<Verdict> verdict) { return session_->next(verdict); }
  void finish() { session_->finish(); }

  /// Of rank 0, once it has finished with a value.
  decltype(auto) result() const {
    if (!work_->result)
      throw std::logic_error("the function was stopped before it returned a value");
    if constexpr (!std::is_void_v<Result>) return static_cast<const Result&>(*work_->result);
  }

  /// Makes this worker as it was when it was constructed, with these, for another run in the same
  /// process. The last run has ended on every rank: TrialRun::result() has waited for that. The
  /// session of the last run is destroyed first, and waits for a function that has not ended as
  /// ~TrialSession says. All ranks are renewed the same number of times: the number of the run
  /// stands before every key of the rendezvous that a later run than the first uses through
  /// Member::gang(), so that run meets no communicator, verdict or key of an earlier one.
  /// this_gang() has the keys of the first run, in every run.
  void renew(Config config, RunInfo info) {
    session_.reset();
    work_ = std::make_shared<Work>(Work{std::move(config), {}});
    session_.emplace(gang_, std::move(info), ++run_);
  }

  std::uint32_t node() const { return gang_.node(); }  ///< GangContext::node()
  /// What this rank sees of a file `marker` and of a directory or file `checkpoint`. Never throws.
  Surroundings look(const std::string& marker, const std::string& checkpoint) const {
    return detail::look(gang_, marker, checkpoint);
  }

 private:
  struct Work {
    Config config;
    ResultSlot<Result> result;
  };

  /// Of the gang that this actor is being made in: known on this thread only.
  static GangContext& context() {
    GangContext* gang = this_gang();
    if (gang == nullptr) throw std::logic_error("a trainable runs as rank of a gang");
    return *gang;
  }

  GangContext& gang_;
  std::uint32_t run_ = 1;
  std::shared_ptr<Work> work_;
  std::optional<TrialSession> session_;  // of this run; there is always one
};

template <class R>
struct LocalResult {
  TrialEvent finished;
  ResultSlot<R> value;  ///< empty: stopped before it returned
};

/// Runs F here and now, as a gang of one, on the calling thread. Exceptions of F pass through.
template <auto F>
LocalResult<trainable_result<F>> run_locally(const trainable_config<F>& config, RunInfo info,
                                             LocalMember::Judge judge) {
  LocalMember member(std::move(info), std::move(judge));
  LocalResult<trainable_result<F>> result;
  try {
    run_trainable<F>(member, config, result.value);
  } catch (const Stopped&) {
    // The function went on after Stop; it is over all the same.
  }
  result.finished = {.kind = TrialEvent::Kind::Finished,
                     .index = member.reports(),
                     .elapsed_s = member.elapsed_s()};
  result.finished.stopped = member.stopped();
  result.finished.returned = result.value.has_value();
  result.finished.effective_batch = member.effective_batch();
  result.finished.progress = member.take_progress();
  return result;
}

}  // namespace troupe::detail
