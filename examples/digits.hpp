#pragma once

#include <string>

#include <c10/core/Device.h>
#include <torch/nn/modules/container/sequential.h>
#include <troupe/train/data/loader.hpp>

namespace digits {

/// The UCI digits in three parts: pixels as float32 [rows, 64] in 0..1, labels as int64 [rows].
struct Parts {
  troupe::train::Dataset training;    // four rows of six: 1,198
  troupe::train::Dataset validation;  // one of six: what a search looks at
  troupe::train::Dataset held_out;    // one of six: what nothing looks at before the end
};

/// Reads examples/data/digits/digits.csv.gz: a row is 64 pixels 0..16 and a label. Throws
/// std::runtime_error, naming the file and the line.
Parts load(const std::string& file);

/// Of a model's guesses about the rows, computed on `device`.
double accuracy(torch::nn::Sequential& model, const troupe::train::Dataset& rows,
                c10::Device device);

}  // namespace digits
