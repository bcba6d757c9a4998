#include "zero/optimizer/optimizer_kind.hpp"

#include <typeinfo>
#include <utility>

#include <ATen/ops/zeros_like.h>
#include <c10/util/Type.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <troupe/train/prepared_optimizer.hpp>

namespace troupe::train {
namespace {

namespace optim = torch::optim;

ElementState read_state(const optim::SGDParamState& state) {
  return {.steps = 0, .tensors = {state.momentum_buffer()}};
}
void write_state(optim::SGDParamState& to, const ElementState& from) {
  to.momentum_buffer(from.tensors[0]);
}

void complete_state(ElementState&, const optim::SGDOptions&) {}

/// Of Adam and of AdamW, which have the same fields in unrelated types.
template <class State>
ElementState read_state(const State& state) {
  return {.steps = state.step(),
          .tensors = {state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq()}};
}
template <class State>
void write_state(State& to, const ElementState& from) {
  to.step(from.steps);
  to.exp_avg(from.tensors[0]);
  to.exp_avg_sq(from.tensors[1]);
  to.max_exp_avg_sq(from.tensors[2]);
}

template <class Options>
void complete_state(ElementState& state, const Options& options) {
  const auto& squares = state.tensors[1];
  auto& most = state.tensors[2];
  if (options.amsgrad() && squares.defined() && !most.defined()) most = at::zeros_like(squares);
}

template <class Optimizer, class Options, class State>
class Kind final : public OptimizerKind {
 public:
  Kind(const char* name, std::vector<std::string> tensors)
      : name_(name), tensors_(std::move(tensors)) {}

  std::string name() const override { return name_; }
  std::vector<std::string> tensor_names() const override { return tensors_; }
  ElementState read(const optim::OptimizerParamState& state) const override {
    return read_state(static_cast<const State&>(state));
  }
  std::unique_ptr<optim::OptimizerParamState> make(const ElementState& state) const override {
    auto made = std::make_unique<State>();
    write_state(*made, state);
    return made;
  }
  void complete(ElementState& state, const optim::OptimizerOptions& options) const override {
    complete_state(state, static_cast<const Options&>(options));
  }
  std::unique_ptr<optim::Optimizer> without_state(const optim::Optimizer& like) const override {
    return std::make_unique<Optimizer>(like.param_groups(),
                                       static_cast<const Options&>(like.defaults()));
  }

 private:
  const char* name_;
  std::vector<std::string> tensors_;
};

/// Of the optimizer, or of what was prepared.
const std::type_info& plain_type_of(const optim::Optimizer& optimizer) {
  const auto* prepared = dynamic_cast<const detail::AnyPreparedOptimizer*>(&optimizer);
  return prepared != nullptr ? prepared->plain_type() : typeid(optimizer);
}

}  // namespace

const OptimizerKind* OptimizerKind::of(const optim::Optimizer& optimizer) {
  static const std::vector<std::string> moments{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  static const Kind<optim::Adam, optim::AdamOptions, optim::AdamParamState> adam("Adam", moments);
  static const Kind<optim::AdamW, optim::AdamWOptions, optim::AdamWParamState> adamw("AdamW",
                                                                                     moments);
  static const Kind<optim::SGD, optim::SGDOptions, optim::SGDParamState> sgd("SGD",
                                                                             {"momentum_buffer"});
  const auto& type = plain_type_of(optimizer);
  if (type == typeid(optim::Adam)) return &adam;
  if (type == typeid(optim::AdamW)) return &adamw;
  if (type == typeid(optim::SGD)) return &sgd;
  return nullptr;
}

std::string OptimizerKind::name_of(const optim::Optimizer& optimizer) {
  const auto* kind = of(optimizer);
  return kind != nullptr ? kind->name() : c10::demangle(plain_type_of(optimizer).name());
}

std::string OptimizerKind::known() { return "Adam, AdamW and SGD"; }

}  // namespace troupe::train
