// The device that stands in for a GPU, beside the CPU, whose values and errors LibTorch defines.
#include "support/other_device.hpp"

#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "zero/gathering/lent_memory.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// In a process of its own: LibTorch's backward makes threads, and other tests of this executable
/// fork.
std::string in_a_process(const std::function<void()>& test) {
  return failures(ForkedGang::on_one_node(1).run([&](GangContext&) { test(); }));
}

/// "": it has thrown none.
template <class Error = std::exception>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_as_here(const torch::Tensor& there, const torch::Tensor& here,
                    const std::string& what) {
  expect(there.device() == other_device(), what + ": on the device");
  expect(torch::equal(there.cpu(), here), what);
}

/// Layers for which LibTorch chooses the same operators on both devices.
struct WordsImpl : torch::nn::Module {
  explicit WordsImpl(torch::ScalarType type) {
    torch::manual_seed(3);
    words = register_module("words", torch::nn::Embedding(20, 12));
    attention = register_module("attention", torch::nn::MultiheadAttention(12, 3));
    convolution = register_module("convolution",
                                  torch::nn::Conv1d(torch::nn::Conv1dOptions(12, 8, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    last = register_module("last", torch::nn::Linear(8, 5));
    to(type);
  }
  torch::Tensor forward(const torch::Tensor& text) {
    auto x = words->forward(text);  // [row, place, width]
    const auto places = x.transpose(0, 1);
    x = x + std::get<0>(attention->forward(places, places, places)).transpose(0, 1);
    x = norm->forward(convolution->forward(x.transpose(1, 2)));  // [row, 8, place]
    return last->forward(torch::tanh(x).mean(2));
  }
  torch::nn::Embedding words = nullptr;
  torch::nn::MultiheadAttention attention = nullptr;
  torch::nn::Conv1d convolution = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::nn::Linear last = nullptr;
};
TORCH_MODULE(Words);

/// Some steps on both devices, with the same values.
template <class Optimizer, class Options>
void train_words(Words& net, const Options& options, torch::Device device) {
  net->to(device);
  Optimizer optimizer(net->parameters(), options);
  for (std::uint64_t step = 0; step < 4; ++step) {
    torch::manual_seed(10 + step);
    const auto text = torch::randint(20, {6, 7}, torch::kInt64).to(device);
    const auto kinds = torch::randint(5, {6}, torch::kInt64).to(device);
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(text), kinds).backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
  }
}

template <class Optimizer, class Options>
void expect_same_training(const Options& options, torch::ScalarType type) {
  Words here(type), there(type);
  train_words<Optimizer>(here, options, torch::kCPU);
  train_words<Optimizer>(there, options, other_device());
  const auto expected = here->named_parameters();
  for (const auto& parameter : there->named_parameters()) {
    expect(parameter->grad().device() == other_device(), parameter.key() + ": its gradient");
    expect_as_here(*parameter, expected[parameter.key()], parameter.key());
  }
  expect_as_here(there->norm->running_mean, here->norm->running_mean, "running mean");
  expect(
      expected.size() == 11 && !torch::equal(expected["words.weight"], Words(type)->words->weight),
      "the steps change values");
}

/// An owner that takes the memory when an operator uses it.
struct Owner final : train::MemoryOwner {
  explicit Owner(train::LentMemory& memory) : lent(memory) {}
  void before_use() override {
    ++uses;
    if (lent.is_there()) return;
    lent.prepare();
    lent.take();
  }
  void after_use() noexcept override {}
  train::LentMemory& lent;
  int uses = 0;
};

}  // namespace

TEST_CASE("a net trained on the other device has the values of one trained on the CPU",
          "[train][placement][other]") {
  CHECK(in_a_process([] {
          expect_same_training<torch::optim::Adam>(
              torch::optim::AdamOptions(0.01).weight_decay(0.1), torch::kFloat64);
          expect_same_training<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9),
                                                  torch::kFloat32);
        }) == "");
}

TEST_CASE("parameters of the other device may be of 16 bits", "[train][placement][other]") {
  CHECK(in_a_process([] {
          expect_same_training<torch::optim::SGD>(torch::optim::SGDOptions(0.1), torch::kBFloat16);
        }) == "");
}

TEST_CASE("layers of other operators on the other device have the CPU's values to 1e-12",
          "[train][placement][other]") {
  CHECK(in_a_process([] {
          torch::nn::LSTM memory(torch::nn::LSTMOptions(12, 12).num_layers(2));
          torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({12}));
          memory->to(torch::kFloat64);
          norm->to(torch::kFloat64);
          const auto x = torch::randn({5, 3, 12}, torch::kFloat64);
          const auto gradients = [&](torch::Device device) {
            std::vector<torch::Tensor> made;
            const std::vector<torch::nn::Module*> modules{memory.get(), norm.get()};
            for (auto* module : modules) module->to(device);
            norm->forward(std::get<0>(memory->forward(x.to(device)))).pow(3).sum().backward();
            for (auto* module : modules) {
              for (auto& parameter : module->parameters()) {
                made.push_back(parameter.grad().cpu().clone());
                parameter.mutable_grad().reset();
              }
            }
            return made;
          };
          const auto expected = gradients(torch::kCPU);
          const auto found = gradients(other_device());
          for (std::size_t i = 0; i < expected.size(); ++i)
            expect(torch::allclose(found[i], expected[i], 1e-12, 1e-12), std::to_string(i));
          expect(expected.size() == 10, "of both layers");
        }) == "");
}

TEST_CASE("tensors of both devices in one operator are an error", "[train][placement][other]") {
  CHECK(in_a_process([] {
          const auto here = torch::ones({3, 3});
          const auto there = here.to(other_device());
          auto scalar = torch::tensor(1.0F);
          const std::string both[] = {
              error_of([&] { (void)(there + here); }),
              error_of([&] { (void)(here + there); }),
              error_of([&] { (void)here.clone().add_(there); }),
              error_of([&] { (void)there.clone().add_(here); }),
              error_of([&] { (void)torch::mm(there, here); }),
              error_of([&] {
                (void)torch::cat({there, here});
              }),
              error_of([&] { (void)torch::dot(there[0], here[0]); }),
              error_of([&] { torch::add_out(scalar, there[0][0], there[0][0]); })};
          for (std::size_t i = 0; i < std::size(both); ++i)
            expect(contains(both[i], "xpected all tensors to be on"),
                   [&] { return fmt::format("{}: {}", i, both[i]); });
          expect(contains(both[6], "dot"), "the error names the operator: " + both[6]);
          expect_as_here(there + torch::tensor(2.0F), here + 2, "a scalar of the CPU");
          expect_as_here(there.index({torch::tensor({2, 0})}), here.index({torch::tensor({2, 0})}),
                         "indices of the CPU");
          expect(torch::equal(torch::zeros({3, 3}).copy_(there), here), "a copy to the CPU");
        }) == "");
}

TEST_CASE("the other device's memory is counted and freed", "[train][placement][other]") {
  CHECK(in_a_process([] {
          expect(other_bytes() == 0 && other_peak_bytes() == 0, "none at first");
          auto values = torch::zeros({256}, other_device());
          expect(other_bytes() == 1024, "256 floats");
          const auto view = values.view({16, 16}).t()[3];
          expect(other_bytes() == 1024, "a view has none");
          values = values.to(torch::kFloat64);
          expect(other_bytes() == 3072, "what a view looks at is there");
          expect(other_peak_bytes() == 3072, "most");
          values = torch::Tensor();
          forget_other_peak();
          expect(other_bytes() == 1024 && other_peak_bytes() == 1024, "a tensor has gone");
          const auto twice = view + view;
          expect(other_bytes() == 1024 + 64 && other_peak_bytes() == other_bytes(), "a result");
          expect(torch::zeros({0}, other_device()).numel() == 0, "an empty one");
        }) == "");
}

TEST_CASE("an allocation beyond the other device's limit is LibTorch's error of no memory",
          "[train][placement][other]") {
  CHECK(
      in_a_process([] {
        limit_other_memory(1024);
        const auto values = torch::ones({128}, other_device());
        const auto error = error_of<c10::OutOfMemoryError>([&] {
          (void)torch::cat({values, values});
        });
        expect(contains(error, "Tried to allocate 1024 bytes beside 512, of 1024."), error);
        expect(other_bytes() == 512, "the failed one is not counted");
        const auto rest = values * 2;
        expect(other_bytes() == 1024, "the limit itself is not beyond it");
        limit_other_memory(kNoLimit);
        expect_as_here(torch::cat({values, rest}), torch::cat({values.cpu(), rest.cpu()}), "later");
      }) == "");
}

TEST_CASE("a view on the other device is one of the same memory", "[train][placement][other]") {
  CHECK(in_a_process([] {
          const auto values = torch::arange(12.0, other_device());
          const auto bytes = other_bytes();
          const auto windows = values.unfold(0, 4, 4);
          const auto complex = torch::view_as_complex(values.view({6, 2}));
          const auto parts = values.split(5);
          const auto bits = values.view(torch::kInt32);
          const auto same = values.detach();
          expect(other_bytes() == bytes && windows.is_alias_of(values), "no memory of their own");
          windows[1].zero_();
          complex[0].fill_(3.0);
          parts[2].add_(1);
          bits[11].zero_();
          expect_as_here(
              same,
              torch::tensor({3., 0., 2., 3., 0., 0., 0., 0., 8., 9., 11., 0.}).to(torch::kFloat),
              "values");
          expect_as_here(complex.conj().resolve_conj(), complex.cpu().conj().resolve_conj(),
                         "conj");
          expect_as_here(torch::imag(complex.conj()) + 0, torch::imag(complex.cpu().conj()) + 0,
                         "neg");
        }) == "");
}

TEST_CASE("operators change tensors of the other device in place, also their size",
          "[train][placement][other]") {
  CHECK(in_a_process([] {
          const auto x = torch::arange(4.0, other_device());
          auto out = torch::empty({0}, other_device());
          const auto* const storage = out.storage().unsafeGetStorageImpl();
          torch::add_out(out, x, x);
          expect_as_here(out, x.cpu() * 2, "out= is given its size");
          expect(out.storage().unsafeGetStorageImpl() == storage, "in its own storage");
          out = torch::empty({0}, out.options().dtype(torch::kInt64));
          torch::nonzero_out(out, x);
          expect_as_here(out, torch::nonzero(x.cpu()), "out= of a size that the values say");
          expect_as_here(x.clone().resize_({6}).slice(0, 0, 4), x.cpu(), "resize_");
          expect_as_here(torch::empty({0}, other_device()).set_(x), x.cpu(), "set_");
          auto list = std::vector<torch::Tensor>{x.clone(), x.clone()};
          torch::_foreach_mul_(list, 3);
          expect_as_here(list[1], x.cpu() * 3, "a list");
          expect_as_here(x.clone().index_put_({x > 1}, torch::tensor(7.0F)),
                         x.cpu().index_put_({x.cpu() > 1}, torch::tensor(7.0F)), "indices");
          expect_as_here(x.clone().unsqueeze_(0).t_(), x.cpu().unsqueeze(1), "the shape");
        }) == "");
}

TEST_CASE("the other device draws the CPU generator's values", "[train][placement][other]") {
  CHECK(in_a_process([] {
          torch::manual_seed(7);
          const auto expected = torch::randn({40});
          torch::manual_seed(7);
          expect_as_here(torch::randn({40}, other_device()), expected, "randn");
          const auto kept = torch::dropout(torch::ones({100}, other_device()), 0.5, true);
          expect(kept.sum().item<float>() > 0 && (kept == 0).any().item<bool>(), "dropout");
          std::stringstream file;
          torch::save(kept.slice(0, 10, 20), file);
          torch::Tensor read;
          torch::load(read, file, torch::Device(torch::kCPU));
          expect(torch::equal(read, kept.cpu().slice(0, 10, 20)), "a file");
        }) == "");
}

TEST_CASE("memory of the other device that is lent is brought by its owner",
          "[train][placement][other]") {
  CHECK(
      in_a_process([] {
        const auto flat = torch::arange(6, torch::dtype(torch::kFloat64).device(other_device()));
        train::LentMemory lent(flat);
        auto owner = std::make_shared<Owner>(lent);
        lent.set_owner(owner);
        const auto view = lent.view(2, torch::empty({2, 2}, torch::kFloat64));
        const auto turned = view.t();
        expect_as_here(turned + 0, torch::tensor({{2., 4.}, {3., 5.}}, torch::kFloat64), "values");
        lent.give_back();
        expect(other_bytes() == 0 && !lent.is_there(), "given back");
        const int before = owner->uses;
        const auto filled = turned.fill_(4);
        expect(lent.is_there() && owner->uses > before, "an operator brings it");
        expect(other_bytes() == 6 * 8, "on the device");
        expect(filled.is_same(turned) && view.sum().item<double>() == 16, "in place");
        const auto windows = view.unfold(1, 1, 1);
        lent.give_back();
        windows.fill_(4);
        expect(lent.is_there() && view.sum().item<double>() == 16,
               "a view that a kernel of the CPU made brings it");
        auto weight = view.detach().requires_grad_();
        torch::mm(weight, weight).sum().backward();
        expect_as_here(weight.grad(), torch::full({2, 2}, 16., torch::kFloat64), "gradient");
      }) == "");
}
