#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <troupe/detail/core.hpp>
#include <troupe/detail/names.hpp>
#include <troupe/detail/narrowing.hpp>
#include <troupe/detail/sendable.hpp>
#include <troupe/detail/signature.hpp>
#include <troupe/ref.hpp>

/// Both ends of a call: arguments are checked and packed at the caller's, unpacked and passed at
/// the callee's.
namespace troupe::detail {

// ---- the callee's end ---------------------------------------------------------------------------

template <class P>
decltype(auto) pass(Stored<P>& value) {
  if constexpr (std::is_same_v<std::remove_cvref_t<P>, std::string_view>) {
    return std::string_view(value);
  } else if constexpr (std::is_lvalue_reference_v<P>) {
    return static_cast<const Stored<P>&>(value);
  } else {
    return std::move(value);
  }
}

/// Throws DecodeError: the caller's program has another function of that name.
void require_arguments(std::string_view function, std::size_t expected, std::size_t got);

/// F as the runtime calls it. `Actor` is the class of the actor (void of a task), which may derive
/// from the method's. Its type is the identity of the function: naming `key` anywhere instantiates
/// a static object that registers `run` before main(), in every process of the program.
template <auto F, class Actor, class S>
struct Invoker;
template <auto F, class Actor, class R, class Self, class... P>
struct Invoker<F, Actor, Signature<R, Self, P...>> {
  static Payload run(void* self, std::span<Payload> arguments) {
    require_arguments(function_name<F>, sizeof...(P), arguments.size());
    return run_with(self, arguments, std::index_sequence_for<P...>{});
  }

  template <std::size_t... I>
  static Payload run_with(void* self, [[maybe_unused]] std::span<Payload> arguments,
                          std::index_sequence<I...>) {
    std::tuple<Stored<P>...> values{decode<Stored<P>>(arguments[I])...};
    if constexpr (std::is_void_v<R>) {
      call(self, std::get<I>(values)...);
      return Payload{};
    } else if constexpr (std::is_same_v<std::remove_cvref_t<R>, Returned<R>>) {
      return encode<Returned<R>>(call(self, std::get<I>(values)...), Owner::Caller);
    } else {
      return encode<Returned<R>>(Returned<R>(call(self, std::get<I>(values)...)), Owner::Caller);
    }
  }

  static decltype(auto) call([[maybe_unused]] void* self, Stored<P>&... values) {
    if constexpr (std::is_void_v<Actor>) {
      return F(pass<P>(values)...);
    } else if constexpr (std::is_member_function_pointer_v<std::remove_cv_t<decltype(F)>>) {
      return (static_cast<Actor*>(self)->*F)(pass<P>(values)...);
    } else {
      return F(*static_cast<Actor*>(self), pass<P>(values)...);
    }
  }

  static const FunctionKey key;
};
// Behind the class, which typeid takes only when it is complete.
template <auto F, class Actor, class R, class Self, class... P>
inline const FunctionKey Invoker<F, Actor, Signature<R, Self, P...>>::key =
    register_function(typeid(Invoker).name(), function_name<F>, &run, nullptr);

/// Likewise the constructor of an actor, by the types of its arguments as they travel.
template <class Actor, class... Values>
struct Maker {
  static std::shared_ptr<void> run(std::span<Payload> arguments) {
    require_arguments(type_name<Actor>, sizeof...(Values), arguments.size());
    return run_with(arguments, std::index_sequence_for<Values...>{});
  }

  template <std::size_t... I>
  static std::shared_ptr<void> run_with([[maybe_unused]] std::span<Payload> arguments,
                                        std::index_sequence<I...>) {
    std::tuple<Values...> values{decode<Values>(arguments[I])...};
    return std::make_shared<Actor>(std::move(std::get<I>(values))...);
  }

  static const FunctionKey key;
};
template <class Actor, class... Values>
inline const FunctionKey Maker<Actor, Values...>::key = register_function(typeid(Maker).name(),
                                                                          actor_label<Actor>,
                                                                          nullptr, &run);

// ---- the caller's end ---------------------------------------------------------------------------

/// A Ref<V> stands in for a V, unless the parameter is that Ref itself.
template <class A, class Value>
inline constexpr bool stands_in =
    is_ref<std::remove_cvref_t<A>> && !std::is_same_v<std::remove_cvref_t<A>, Value>;

template <class P, class A>
constexpr bool accepts() {
  if constexpr (stands_in<A, Stored<P>>) {
    return std::is_same_v<typename std::remove_cvref_t<A>::value_type, Stored<P>>;
  } else {
    constexpr bool is_text =
        std::is_same_v<Stored<P>, std::string> && std::is_convertible_v<A, std::string_view>;
    return std::is_convertible_v<A, Stored<P>> || is_text ||
           (std::is_convertible_v<A, P> && std::is_constructible_v<Stored<P>, A>);
  }
}

/// Throws std::invalid_argument for a number that `Value` does not hold.
template <class Value, class A>
Argument pack([[maybe_unused]] const FunctionKey& function, [[maybe_unused]] std::size_t place,
              A&& argument) {
  using Given = std::remove_cvref_t<A>;
  if constexpr (stands_in<A, Value>) {
    return object_of(argument);
  } else if constexpr (std::is_same_v<Given, Value>) {
    return encode<Value>(argument);
  } else {
    if constexpr (may_not_hold<NumberOf<Value>, NumberOf<Given>> &&
                  std::is_convertible_v<Given, NumberOf<Given>>) {
      require_held<NumberOf<Value>>(function, place, static_cast<NumberOf<Given>>(argument));
    }
    return encode<Value>(Value(std::forward<A>(argument)));
  }
}

template <class... Values, class... A>
CallSpec pack_call(const FunctionKey& function, A&&... arguments) {
  CallSpec call{function, {}};
  call.arguments.reserve(sizeof...(A));
  (call.arguments.push_back(
       pack<Values>(function, call.arguments.size(), std::forward<A>(arguments))),
   ...);
  return call;
}

/// The error below shows both types.
template <class Parameter, class Given>
constexpr bool require_accepted() {
  static_assert(
      accepts<Parameter, Given>(),
      "troupe: an argument does not convert to its parameter (a Ref must be to exactly the "
      "parameter's type)");
  return accepts<Parameter, Given>();
}

/// One sentence for each mistake that a call can have.
template <class S, class... A>
struct CheckCall;
template <class R, class Self, class... P, class... A>
struct CheckCall<Signature<R, Self, P...>, A...> {
  static constexpr bool writable =
      ((std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>) || ...);
  static constexpr bool count = sizeof...(P) == sizeof...(A);
  static constexpr bool convertible() {
    if constexpr (count) {
      return (require_accepted<P, A>() && ... && true);
    } else {
      return true;
    }
  }

  static constexpr bool good() {
    static_assert(!writable,
                  "troupe: a parameter is a non-const reference, and a call from afar cannot write "
                  "to its argument; take it by value or const&");
    static_assert(count,
                  "troupe: wrong number of arguments (default ones are not seen through a function "
                  "pointer; wrap the call in a lambda)");
    constexpr bool send = (require_sendable<Stored<P>>() && ... && true);
    constexpr bool back = require_sendable<Returned<R>>();
    if constexpr (send)
      return !writable && count && back && convertible();
    else
      return false;
  }
};

/// Packs a call of `F`, or explains at compile time why it cannot be.
template <auto F, class Actor, class R, class Self, class... P, class... A>
CallSpec make_call(Signature<R, Self, P...>, A&&... arguments) {
  if constexpr (CheckCall<Signature<R, Self, P...>, A...>::good()) {
    return pack_call<Stored<P>...>(Invoker<F, Actor, Signature<R, Self, P...>>::key,
                                   std::forward<A>(arguments)...);
  } else {
    return {};
  }
}

/// What an argument of a constructor travels as: literals and views as strings, the rest as it is.
template <class A>
struct TravelsAs {
  using type = std::decay_t<A>;
};
template <class A>
requires(std::is_convertible_v<A, std::string_view>) struct TravelsAs<A> {
  using type = std::string;
};
template <class A>
struct Resolved {
  using type = typename TravelsAs<A>::type;
};
template <class A>
requires is_ref<std::remove_cvref_t<A>>
struct Resolved<A> {
  using type = typename std::remove_cvref_t<A>::value_type;
};

template <class Actor, class... Values, class... A>
CallSpec make_constructor(Types<Values...>, A&&... arguments) {
  constexpr bool send = (require_sendable<Values>() && ... && true);
  if constexpr (send) {
    return pack_call<Values...>(Maker<Actor, Values...>::key, std::forward<A>(arguments)...);
  } else {
    return {};
  }
}

/// Refs among the arguments are resolved first, unless only a constructor that takes the refs
/// themselves fits.
template <class Actor, class... A>
CallSpec make_constructor_call(A&&... arguments) {
  using Plainly = Types<typename TravelsAs<A>::type...>;
  if constexpr (std::is_constructible_v<Actor, typename Resolved<A>::type...>) {
    return make_constructor<Actor>(Types<typename Resolved<A>::type...>{},
                                   std::forward<A>(arguments)...);
  } else if constexpr (std::is_constructible_v<Actor, typename TravelsAs<A>::type...>) {
    return make_constructor<Actor>(Plainly{}, std::forward<A>(arguments)...);
  } else {
    static_assert(
        std::is_constructible_v<Actor, typename TravelsAs<A>::type...>,
        "troupe: the actor has no constructor for these arguments, which arrive as values");
    return {};
  }
}

/// Of a task for which no options are named.
inline const RequestOptions& default_task_options() {
  static const RequestOptions options;
  return options;
}
/// Of an actor for which no options are named.
inline const RequestOptions& default_actor_options() {
  static const RequestOptions options = for_actor({});
  return options;
}

}  // namespace troupe::detail
