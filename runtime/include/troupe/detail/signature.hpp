#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

/// What a function, a method or a lambda takes and gives.
namespace troupe::detail {

/// `Self` is the class whose method it is, const where the method is; void of a function.
template <class R, class S, class... P>
struct Signature {
  using Result = R;
  using Self = S;
  using Parameters = std::tuple<P...>;
};

template <class F>
struct SignatureOf {
  static constexpr bool known = false;
};

template <class R, class... P>
struct SignatureOf<R (*)(P...)> {
  static constexpr bool known = true;
  using type = Signature<R, void, P...>;
};
template <class R, class... P>
struct SignatureOf<R (*)(P...) noexcept> : SignatureOf<R (*)(P...)> {};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...)> {
  static constexpr bool known = true;
  using type = Signature<R, C, P...>;
};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...) const> {
  static constexpr bool known = true;
  using type = Signature<R, const C, P...>;
};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...)&> : SignatureOf<R (C::*)(P...)> {};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...) noexcept> : SignatureOf<R (C::*)(P...)> {};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...)& noexcept> : SignatureOf<R (C::*)(P...)> {};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...) const&> : SignatureOf<R (C::*)(P...) const> {};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...) const noexcept> : SignatureOf<R (C::*)(P...) const> {};
template <class R, class C, class... P>
struct SignatureOf<R (C::*)(P...) const& noexcept> : SignatureOf<R (C::*)(P...) const> {};

/// Of a lambda: its call operator's, without the lambda.
template <class S>
struct AsFunction;
template <class R, class C, class... P>
struct AsFunction<Signature<R, C, P...>> {
  using type = Signature<R, void, P...>;
};

/// The first parameter of a function taken as the actor it is called on.
template <class S>
struct AsMethod {
  static constexpr bool known = false;
};
template <class R, class C, class... P>
struct AsMethod<Signature<R, void, C&, P...>> {
  static constexpr bool known = true;
  using type = Signature<R, C, P...>;
};

template <class F>
concept Callable = requires {
  &F::operator();
};

/// Signature of F as a task: a function, a static member function or a lambda without captures.
template <auto F>
constexpr auto task_signature() {
  using Type = std::remove_cv_t<decltype(F)>;
  if constexpr (Callable<Type>) {
    return typename AsFunction<typename SignatureOf<decltype(&Type::operator())>::type>::type{};
  } else {
    static_assert(SignatureOf<Type>::known,
                  "troupe: this is not a function; an overload is chosen by troupe::pick<R(A)>(f)");
    using S = typename SignatureOf<Type>::type;
    static_assert(std::is_void_v<typename S::Self>,
                  "troupe: a method needs its object; spawn an actor and call<> it");
    return S{};
  }
}

/// Signature of M as a method: a member function, or a function or lambda that takes the actor
/// first.
template <auto M>
constexpr auto method_signature() {
  using Type = std::remove_cv_t<decltype(M)>;
  if constexpr (std::is_member_function_pointer_v<Type>) {
    return typename SignatureOf<Type>::type{};
  } else {
    using Free = AsMethod<decltype(task_signature<M>())>;
    static_assert(
        Free::known,
        "troupe: this function takes no actor: its first parameter must be a reference to one");
    return typename Free::type{};
  }
}

template <class P>
struct StoredType {
  using type = std::remove_cvref_t<P>;
};
template <class P>
requires std::is_same_v<std::remove_cvref_t<P>, std::string_view>
struct StoredType<P> {
  using type = std::string;
};

/// What an argument is kept as between its arrival and the call.
template <class P>
using Stored = typename StoredType<P>::type;

/// What a call gives to its caller: R as a value.
template <class R>
using Returned = std::conditional_t<std::is_same_v<std::remove_cvref_t<R>, std::string_view>,
                                    std::string, std::remove_cvref_t<R>>;

}  // namespace troupe::detail
