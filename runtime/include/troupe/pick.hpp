#pragma once

namespace troupe {

template <class Signature>
struct Pick;
template <class R, class... P>
struct Pick<R(P...)> {
  constexpr auto operator()(R (*function)(P...)) const { return function; }
  template <class C>
  constexpr auto operator()(R (C::*method)(P...)) const {
    return method;
  }
};
template <class R, class... P>
struct Pick<R(P...) const> {
  template <class C>
  constexpr auto operator()(R (C::*method)(P...) const) const {
    return method;
  }
};

/// Chooses one of several overloads by its signature:
/// `actor.call<troupe::pick<int(int)>(&Service::handle)>(4)`; a const method by `pick<int(int)
/// const>`.
template <class Signature>
inline constexpr Pick<Signature> pick{};

}  // namespace troupe
