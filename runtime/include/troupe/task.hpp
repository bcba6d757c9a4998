#pragma once

#include <type_traits>
#include <utility>

#include <troupe/detail/call.hpp>
#include <troupe/ref.hpp>

namespace troupe {

namespace detail {
template <auto F>
using TaskSignature = decltype(task_signature<F>());
template <auto F>
using TaskRef = Ref<Returned<typename TaskSignature<F>::Result>>;

template <auto F, class... A>
TaskRef<F> start_task(const RequestOptions& options, A&&... arguments) {
  return ref_to<typename TaskRef<F>::value_type>(
      submit_task(make_call<F, void>(TaskSignature<F>{}, std::forward<A>(arguments)...), options));
}
}  // namespace detail

/// Runs F somewhere in the cluster and returns at once. F is a function, a static member function
/// or a lambda without captures, named as a template argument. An argument is a value that converts
/// to its parameter, or a Ref to exactly that type, whose value replaces it before the call is
/// sent; a parameter that is a Ref receives the ref. Arguments and result travel by value: plain
/// aggregates, standard types, types with a cereal serialize().
///
/// A task whose process dies runs again, 3 times by default (Options::retries); one that throws
/// does not.
template <auto F, class... A>
detail::TaskRef<F> task(A&&... arguments) {
  return detail::start_task<F>(detail::default_task_options(), std::forward<A>(arguments)...);
}

/// For task(f, ...), which users of std::async write: the compiler says what to write instead.
template <class F, class... A>
detail::Mistaken task(F&&, A&&...) {
  static_assert(!std::is_same_v<F, F>,
                "troupe: the function is a template argument: troupe::task<f>(arguments...); a "
                "lambda with captures cannot travel, give what it captures as arguments");
  return {};
}

}  // namespace troupe
