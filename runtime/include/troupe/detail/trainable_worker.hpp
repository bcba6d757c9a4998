#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include <troupe/detail/local_member.hpp>
#include <troupe/detail/signature.hpp>
#include <troupe/detail/trial_session.hpp>
#include <troupe/gang_context.hpp>

/// A trainable is `R f(Context&, const Config&)`, where Context is constructible from a Member&: what train::run and
/// tune::run make of it.
namespace troupe::detail {

template <class S>
struct TrainableTypes {
  static constexpr bool known = false;
};
template <class R, class C, class Config>
requires(!std::is_const_v<C> &&
         std::is_constructible_v<C, Member&>) struct TrainableTypes<Signature<R, void, C&, Config>> {
  static constexpr bool known = !std::is_lvalue_reference_v<Config> || std::is_const_v<std::remove_reference_t<Config>>;
  using ContextType = C;
  using ConfigType = std::remove_cvref_t<Config>;
  using ResultType = Returned<R>;
};

template <auto F>
constexpr auto trainable_types() {
  using Found = TrainableTypes<decltype(task_signature<F>())>;
  static_assert(
      Found::known,
      "troupe: a trainable is a function `R f(Context&, const Config&)` with train::Context or tune::Context");
  return Found{};
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
void run_trainable(Member& member, const trainable_config<F>& config, ResultSlot<trainable_result<F>>& result) {
  trainable_context<F> context(member);
  if constexpr (std::is_void_v<trainable_result<F>>) {
    F(context, config);
    result.emplace();
  } else {
    result.emplace(F(context, config));
  }
}

/// The actor that is one rank of a run. Its methods are called by the driver's TrialRun only.
template <auto F>
class TrainableWorker {
 public:
  using Config = trainable_config<F>;
  using Result = trainable_result<F>;

  TrainableWorker(Config config, RunInfo info)
      : work_(std::make_shared<Work>(Work{std::move(config), {}})), session_(context(), std::move(info)) {}

  void start() {
    session_.start([work = work_](Member& member) { run_trainable<F>(member, work->config, work->result); });
  }
  TrialEvent next(std::optional<Verdict> verdict) { return session_.next(verdict); }
  void finish() { session_.finish(); }

  /// Of rank 0, once it has finished with a value.
  decltype(auto) result() const {
    if (!work_->result) throw std::logic_error("the function was stopped before it returned a value");
    if constexpr (!std::is_void_v<Result>) return static_cast<const Result&>(*work_->result);
  }

 private:
  struct Work {
    Config config;
    ResultSlot<Result> result;
  };

  /// Of the gang that this actor is being made in: known on this thread only.
  static GangContext& context() {
    auto* gang = this_gang();
    if (gang == nullptr) throw std::logic_error("a trainable runs as rank of a gang");
    return *gang;
  }

  std::shared_ptr<Work> work_;
  TrialSession session_;
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
  result.finished = {.kind = TrialEvent::Kind::Finished, .index = member.reports(), .elapsed_s = member.elapsed_s()};
  result.finished.stopped = member.stopped();
  result.finished.returned = result.value.has_value();
  return result;
}

}  // namespace troupe::detail
