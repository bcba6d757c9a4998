#include "idx.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>
#include <zlib.h>

namespace idx {
namespace {

/// Reads a file that is compressed, or not.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file)
      : name_(file.string()), file_(gzopen(file.c_str(), "rb")) {
    if (!file_) throw std::runtime_error(name_ + ": " + std::strerror(errno));
  }

  void read(void* bytes, std::size_t count) {
    if (gzfread(bytes, 1, count, file_.get()) != count)
      throw std::runtime_error(name_ + " ends too early, or is damaged");
  }
  std::array<std::uint8_t, 4> four_bytes() {
    std::array<std::uint8_t, 4> bytes{};
    read(bytes.data(), bytes.size());
    return bytes;
  }
  const std::string& name() const { return name_; }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
};

/// An IDX file: two zeros, the type of its values (8: uint8), how many sizes it has, these sizes
/// as big-endian numbers, and the values.
at::Tensor read_file(const std::filesystem::path& file, std::uint8_t dimensions) {
  Reader reader(file);
  if (reader.four_bytes() != std::array<std::uint8_t, 4>{0, 0, 8, dimensions}) {
    throw std::runtime_error(reader.name() + " is no IDX file of bytes in " +
                             std::to_string(dimensions) + " dimensions");
  }
  std::vector<std::int64_t> sizes;
  for (int n = 0; n < dimensions; ++n) {
    std::int64_t size = 0;
    for (const auto byte : reader.four_bytes()) size = size * 256 + byte;
    sizes.push_back(size);
  }
  auto values = torch::empty(sizes, torch::kByte);
  reader.read(values.data_ptr(), values.nbytes());
  return values;
}

std::filesystem::path find(const std::filesystem::path& folder, const std::string& name) {
  const auto compressed = folder / (name + ".gz");
  return std::filesystem::exists(compressed) ? compressed : folder / name;
}

}  // namespace

troupe::train::Dataset read(const std::filesystem::path& folder, const std::string& name) {
  const auto images = read_file(find(folder, name + "-images-idx3-ubyte"), 3);
  const auto labels = read_file(find(folder, name + "-labels-idx1-ubyte"), 1);
  const auto rows = labels.size(0);
  if (rows == 0 || images.size(0) != rows || images.numel() != rows * kPixels ||
      labels.max().item<std::int64_t>() >= kClasses) {
    throw std::runtime_error(folder.string() + ": the images of " + name +
                             " are not of 28 x 28 pixels with a label 0..9 each");
  }
  return {images.view({rows, kPixels}), labels.to(torch::kLong)};
}

troupe::train::Dataset synthetic(std::int64_t rows, std::uint64_t seed) {
  torch::manual_seed(0);
  const auto patterns =
      torch::rand({kClasses, 7, 7})  // of 7 x 7 squares, which layers that pool see
          .repeat_interleave(4, 1)
          .repeat_interleave(4, 2)
          .flatten(1);
  torch::manual_seed(seed);
  const auto labels = torch::randint(kClasses, {rows}, torch::kLong);
  const auto noise = torch::randn({rows, kPixels});
  const auto images = patterns.index_select(0, labels) + noise;
  return {(images * 255).clamp(0, 255).to(torch::kByte), labels};
}

}  // namespace idx
