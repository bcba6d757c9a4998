#pragma once

#include <stdexcept>
#include <string_view>

#include "config/name.hpp"
#include "wire/message.capnp.h"

/// Names as they arrive at the head. Each throws std::invalid_argument for one that is none.
namespace troupe::head {

inline void check_name(std::string_view field, capnp::Text::Reader text) {
  config::check_name(field, std::string_view(text.begin(), text.size()));
}

inline void check_actor_name(capnp::Text::Reader name) {
  config::check_actor_name("the actor's name", std::string_view(name.begin(), name.size()));
}

inline void check_names(capnp::List<wire::Amount>::Reader resources,
                        capnp::List<wire::Label>::Reader labels) {
  for (auto amount : resources) check_name("the resource", amount.getName());
  for (auto label : labels) {
    check_name("the label", label.getKey());
    if (label.getValue().size() > 0) check_name("the label's value", label.getValue());
  }
}

/// Of a node that joins: a label that only the head gives is none for it.
inline void check_given(capnp::List<wire::Label>::Reader labels) {
  for (auto label : labels) {
    const auto why = config::why_not_given(label.getKey().cStr());
    if (!why.empty()) throw std::invalid_argument("a node cannot offer " + why);
  }
}

}  // namespace troupe::head
