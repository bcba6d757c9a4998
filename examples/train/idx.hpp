#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <troupe/train/data/loader.hpp>

/// Images with labels, in the format of MNIST.
namespace idx {

constexpr std::int64_t kPixels = 28 * 28;
constexpr std::int64_t kClasses = 10;

/// Reads <name>-images-idx3-ubyte and <name>-labels-idx1-ubyte, where `name` is "train" or "t10k";
/// also with .gz behind it. -> data: uint8 [rows, kPixels]; target: int64 [rows]. Throws
/// std::runtime_error, naming the file.
troupe::train::Dataset read(const std::filesystem::path& folder, const std::string& name);

/// A data set of the same form: each class is a pattern, each image that of its class with noise.
/// Those of one seed are the same, and the patterns are the same for all seeds.
troupe::train::Dataset synthetic(std::int64_t rows, std::uint64_t seed);

}  // namespace idx
