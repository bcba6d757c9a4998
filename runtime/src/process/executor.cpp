#include "process/executor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include <troupe/detail/failure.hpp>
#include "process/doorbell.hpp"

namespace troupe::process {
namespace {
thread_local bool runs_user_code = false;
}

bool Executor::is_this_thread() { return runs_user_code; }

void Executor::push(Work work) {
  auto* node = new Node{std::move(work), pushed_.load(std::memory_order_relaxed)};
  while (!pushed_.compare_exchange_weak(node->next, node, std::memory_order_release, std::memory_order_relaxed)) {
  }
  doorbell().ring();
}

std::vector<Work> Executor::take() {
  std::vector<Work> works;
  for (auto* node = pushed_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
    works.push_back(std::move(node->work));
    delete std::exchange(node, node->next);
  }
  std::reverse(works.begin(), works.end());
  return works;
}

void Executor::run() {
  runs_user_code = true;
  for (;;) {
    doorbell().wait([this] { return pushed_.load(std::memory_order_acquire) != nullptr; }, std::nullopt);
    for (auto& work : take()) handle(std::move(work));
  }
}

void Executor::handle(Work work) {
  if (work.kind == Work::Kind::Method && !actor_ && !construct_failure_) {
    before_constructor_.push_back(std::move(work));
    return;
  }
  answer(work, perform(work));
  if (work.kind == Work::Kind::Constructor) {
    for (auto& method : std::exchange(before_constructor_, {})) answer(method, perform(method));
  }
}

Outcome Executor::perform(Work& work) {
  if (work.cancelled->load(std::memory_order_acquire)) {
    return Failure{.kind = Failure::Kind::Cancelled,
                   .message = fmt::format("{} was cancelled before it started", work.function->key.label)};
  }
  try {
    switch (work.kind) {
      case Work::Kind::Task:
        return work.function->invoke(nullptr, work.arguments);
      case Work::Kind::Constructor:
        actor_ = work.function->construct(work.arguments);
        return detail::Payload{};
      case Work::Kind::Method:
        if (construct_failure_) return *construct_failure_;
        return work.function->invoke(actor_.get(), work.arguments);
    }
  } catch (...) {
    auto failure = describe(work);
    if (work.kind == Work::Kind::Constructor) construct_failure_ = failure;
    return failure;
  }
  return Failure{.message = "a call of an unknown kind"};
}

Failure Executor::describe(const Work& work) const {
  return detail::current_failure(fmt::format("{}, {}", work.function->key.label, place_));
}

void Executor::answer(Work& work, Outcome outcome) {
  boost::asio::post(
      loop_, [done = std::move(work.done), outcome = std::move(outcome)]() mutable { done(std::move(outcome)); });
}

}  // namespace troupe::process
