// What a tensor is when it arrives: small ones in the message, large ones in the object store.
#include <troupe/train/tensor.hpp>

#include <troupe/troupe.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/functorch/BatchedTensorImpl.h>
#include <torch/utils.h>

#include "support/catch.hpp"

using namespace troupe;
using Catch::Contains;
using troupe::detail::InArchive;
using troupe::detail::OutArchive;
using troupe::detail::Payload;

namespace {

using Tensors = std::vector<torch::Tensor>;

/// A network's parameters, as a parameter server hands them out.
struct Parameters {
  std::vector<torch::Tensor> all;
  torch::Tensor none;
};

torch::Tensor row_sums(const torch::Tensor& matrix) { return matrix.sum(1); }
double total(const Parameters& parameters) {
  double sum = 0;
  for (const auto& tensor : parameters.all) sum += tensor.sum().to(torch::kFloat64).item<double>();
  return parameters.none.defined() ? -1 : sum;
}

/// Of a worker process, which gets the tensors and sends them again.
Tensors as_they_came(const Tensors& tensors) { return tensors; }
double sum_of_imaginary_parts(const torch::Tensor& z) {
  return torch::imag(z).sum(torch::kFloat64).item<double>();
}
double sum_of_values(const torch::Tensor& real) { return real.sum(torch::kFloat64).item<double>(); }
bool needs_gradient(const torch::Tensor& tensor) {
  return tensor.requires_grad() && tensor.is_leaf() && !tensor.grad().defined();
}
torch::Tensor sparse(int size) { return torch::eye(size).to_sparse_csr(); }

/// 0 + i, of a type that is complex.
torch::Tensor imaginary_units(std::int64_t count, torch::ScalarType type) {
  return torch::complex(torch::zeros({count}), torch::ones({count})).to(type);
}

/// Any bits; of bool those that it can have.
torch::Tensor tensor_of_bits(std::vector<std::int64_t> sizes, torch::ScalarType type) {
  auto tensor = torch::empty(std::move(sizes), type);
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i)
    bytes[i] = static_cast<unsigned char>(type == torch::kBool ? i % 2 : i * 37);
  return tensor;
}

/// LibTorch compares and copies values of some types only.
torch::Tensor bits_of(const torch::Tensor& tensor) {
  const auto values = tensor.detach();
  return (values.element_size() == 1 ? values.view(torch::kByte) : values).contiguous();
}
bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const auto bits_a = bits_of(a);
  const auto bits_b = bits_of(b);
  return a.numel() == 0 ||
         std::memcmp(bits_a.const_data_ptr(), bits_b.const_data_ptr(), bits_a.nbytes()) == 0;
}

Payload encoded(const torch::Tensor& tensor) {
  Payload payload;
  OutArchive archive(payload);
  archive(tensor);
  return payload;
}
torch::Tensor decoded(const Payload& payload) {
  torch::Tensor tensor;
  InArchive archive(payload);
  archive(tensor);
  return tensor;
}

/// What anybody may send: a tensor's head and `values` bytes.
Payload bytes_of(bool requires_grad, int type, const std::vector<std::int64_t>& sizes,
                 std::size_t values) {
  Payload payload;
  OutArchive archive(payload);
  archive(true, requires_grad, static_cast<std::int8_t>(type),
          static_cast<std::uint32_t>(sizes.size()));
  for (const auto size : sizes) archive(size);
  archive.align();
  payload.bytes.append(values, '\0');
  return payload;
}

const auto kMade = Contains("LibTorch cannot make");

}  // namespace

TEST_CASE("a tensor travels with its type and sizes, small or large, alone or inside a value",
          "[train][tensor]") {
  auto cluster = init({.cpus = 2});
  const auto small = torch::arange(12, torch::kInt64).reshape({3, 4});
  CHECK(torch::equal(task<row_sums>(small).get(), small.sum(1)));
  const auto large = torch::ones({512, 1024}, torch::kFloat32).t();
  const auto sums = task<row_sums>(large).get();
  CHECK(torch::equal(sums, large.sum(1)));
  const Parameters parameters{{large, torch::ones({7}, torch::kBool), torch::full({3, 0, 2}, 1.0),
                               torch::tensor(2.5).to(torch::kBFloat16)},
                              {}};
  CHECK(task<total>(parameters).get() == 512.0 * 1024 + 7 + 2.5);
}

TEST_CASE("a large tensor is read where it lies, as long as anybody looks at it",
          "[train][tensor]") {
  auto cluster = init({.cpus = 2});
  torch::Tensor first;
  {
    const auto ref = put(torch::full({300, 300}, 3.0F));
    first = ref.get();
    CHECK(first.data_ptr() == ref.get().data_ptr());
    CHECK(reinterpret_cast<std::uintptr_t>(first.data_ptr()) % 64 == 0);
  }
  CHECK(first.sum().item<float>() == 270'000);
}

TEST_CASE("a conjugated or negated view arrives with the values that it shows", "[train][tensor]") {
  auto cluster = init({.cpus = 2});
  const std::int64_t count = GENERATE(8, 131072);
  const auto type = GENERATE(torch::kComplexHalf, torch::kComplexFloat, torch::kComplexDouble);
  const auto z = imaginary_units(count, type);
  const auto sum = static_cast<double>(count);

  CHECK(task<sum_of_imaginary_parts>(z.conj()).get() == -sum);
  CHECK(task<sum_of_imaginary_parts>(z.conj().slice(0, 0, count, 2)).get() == -sum / 2);
  CHECK(task<sum_of_values>(torch::imag(z.conj())).get() == -sum);
  const auto back = task<as_they_came>(Tensors{z.conj(), torch::imag(z.conj())}).get();
  CHECK_FALSE((back[0].is_conj() || back[1].is_neg()));
  CHECK(same_bits(back[0], z.conj().resolve_conj()));
  CHECK(same_bits(back[1], torch::imag(z.conj()).resolve_neg()));
}

TEST_CASE("a tensor of each type that is not quantized travels bit for bit", "[train][tensor]") {
  auto cluster = init({.cpus = 2});
  const std::int64_t rows = GENERATE(3, 257);
  Tensors sent;
  for (int number = 0; number < static_cast<int>(torch::ScalarType::Undefined); ++number) {
    const auto type = static_cast<torch::ScalarType>(number);
    if (c10::isQIntType(type)) continue;
    sent.push_back(tensor_of_bits({rows, 512}, type));
    sent.push_back(sent.back().t());
  }
  const auto back = task<as_they_came>(sent).get();
  REQUIRE(back.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    INFO(c10::toString(sent[i].scalar_type()));
    CHECK(same_bits(back[i], sent[i]));
  }
}

TEST_CASE("a tensor travels whatever its sizes, strides and offset are, and arrives contiguous",
          "[train][tensor]") {
  auto cluster = init({.cpus = 2});
  const std::int64_t width = GENERATE(6, 300);
  const auto square = torch::arange(width * width).reshape({width, width});
  const Tensors sent{
      torch::tensor(2.5),
      torch::empty({0}),
      torch::empty({3, 0, 2}),
      torch::empty({std::int64_t{1} << 40, 0}),
      torch::empty({std::int64_t{1} << 21, std::int64_t{1} << 41, 0}),
      square.t(),
      square.slice(0, 2, width, 3).slice(1, 1, width, 2),
      square.select(1, 4),
      square.select(0, 0).expand({width, width}),
      torch::tensor(7).expand({width, width}),
      square.reshape({1, 3, width / 3, width}).contiguous(torch::MemoryFormat::ChannelsLast),
      torch::ones(std::vector<std::int64_t>(64, 1)),
      torch::_efficientzerotensor({4})};
  const auto back = task<as_they_came>(sent).get();
  REQUIRE(back.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    INFO(i);
    CHECK(back[i].is_contiguous());
    CHECK(same_bits(back[i], sent[i]._is_zerotensor() ? sent[i].clone() : sent[i]));
  }
}

TEST_CASE("requires_grad travels with a leaf, and no graph with what was computed from it",
          "[train][tensor]") {
  auto cluster = init({.cpus = 2});
  const std::int64_t count = GENERATE(3, 40'000);
  const auto leaf = torch::ones({count}).requires_grad_();
  (leaf * 2).sum().backward();
  CHECK(task<needs_gradient>(leaf).get());
  CHECK_FALSE(task<needs_gradient>(leaf.detach()).get());
  const auto back = task<as_they_came>(Tensors{leaf, leaf * 2, leaf.detach()}).get();
  CHECK(needs_gradient(back[0]));
  CHECK_FALSE(back[1].requires_grad());
  CHECK_FALSE(back[2].requires_grad());
  CHECK(same_bits(back[1], torch::full({count}, 2.0F)));
}

TEST_CASE("a tensor that cannot travel is refused with its kind and what to send instead",
          "[train][tensor]") {
  using Case = std::pair<std::function<torch::Tensor()>, std::string>;
  const auto eye = [] { return torch::eye(4); };
  const auto [make, said] = GENERATE_COPY(values<Case>(
      {{[&] { return eye().to_sparse(); },
        "the layout Sparse cannot travel: send indices() and values()"},
       {[&] { return eye().to_sparse_csr(); },
        "the layout SparseCsr cannot travel: send crow_indices(), col_indices(), values()"},
       {[&] { return eye().to_sparse_csc(); },
        "the layout SparseCsc cannot travel: send ccol_indices(), row_indices(), values()"},
       {[&] {
          return eye().to_sparse_bsr({2, 2});
        },
        "the layout SparseBsr cannot travel: send crow_indices()"},
       {[&] {
          return eye().to_sparse_bsc({2, 2});
        },
        "the layout SparseBsc cannot travel: send ccol_indices()"},
       {[&] { return eye().to_mkldnn(); }, "the layout Mkldnn cannot travel: send to_dense()"},
       {[&] {
          return at::_nested_tensor_from_tensor_list(std::vector{eye(), eye()});
        },
        "nested cannot travel: send the std::vector of tensors that unbind() returns"},
       {[&] { return torch::quantize_per_tensor(eye(), 1., 0, torch::kQInt8); },
        "the quantized type QInt8 cannot travel: send int_repr()"},
       {[&] {
          return torch::quantize_per_channel(eye(), torch::ones({4}),
                                             torch::zeros({4}, torch::kInt64), 0, torch::kQUInt8);
        },
        "the quantized type QUInt8 cannot travel: send int_repr()"},
       {[] { return torch::empty({2}, torch::kQUInt4x2); }, "the quantized type QUInt4x2"},
       {[] { return torch::ones({2}, torch::kMeta); },
        "the device meta cannot travel: it has no values; send sizes()"},
       {[&] { return at::functorch::makeBatched(eye(), 0, 1); },
        "without memory of its own, such as one within vmap"},
       {[] { return torch::ones(std::vector<std::int64_t>(65, 1)); },
        "a tensor of 65 dimensions cannot travel: at most 64 can"}}));
  const auto tensor = make();
  CHECK_THROWS_AS(encoded(tensor), std::invalid_argument);
  CHECK_THROWS_WITH(encoded(tensor), Contains(said));
}

TEST_CASE("a task whose result is a tensor that cannot travel fails with that sentence",
          "[train][tensor]") {
  auto cluster = init({.cpus = 2});
  CHECK_THROWS_WITH(task<sparse>(4).get(), Contains("a tensor of the layout SparseCsr"));
  CHECK_THROWS_AS(put(torch::eye(4).to_sparse()), std::invalid_argument);
}

TEST_CASE("bytes that are not those of a tensor are refused", "[train][tensor]") {
  const int floats = static_cast<int>(torch::kFloat32);
  const int longs = static_cast<int>(torch::kInt64);
  const std::int64_t huge = std::int64_t{1} << 40;
  const auto refused = [](const Payload& payload, const auto& why) {
    CHECK_THROWS_AS(decoded(payload), DecodeError);
    CHECK_THROWS_WITH(decoded(payload), why);
  };
  CHECK(decoded(bytes_of(true, floats, {2}, 8)).requires_grad());
  CHECK_FALSE(decoded(encoded(torch::Tensor())).defined());
  refused(bytes_of(true, longs, {2}, 16), kMade);
  refused(bytes_of(false, floats, {0, huge, huge}, 0), kMade);
  refused(bytes_of(false, floats, {huge, huge}, 64), Contains("more bytes than there can be"));
  refused(bytes_of(false, floats, {3}, 8), Contains("ends too early"));
  refused(bytes_of(false, floats, {0, -1}, 8), Contains("negative size"));
  refused(bytes_of(false, floats, std::vector<std::int64_t>(65, 1), 8), Contains("64 dimensions"));
  for (const int type : {-1, static_cast<int>(torch::kQInt8), 46, 127})
    refused(bytes_of(false, type, {2}, 64), Contains("unknown type"));
  const auto whole = encoded(torch::ones({3}));
  for (std::size_t size = 0; size < whole.bytes.size(); ++size)
    CHECK_THROWS_AS(decoded(Payload{whole.bytes.substr(0, size), {}}), DecodeError);
}
