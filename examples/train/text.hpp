#pragma once

#include <cstdint>
#include <string>

#include <troupe/train/data/loader.hpp>

/// Text as tokens, one for each of its bytes.
namespace text {

struct Text {
  at::Tensor tokens;       ///< uint8 [characters]: places in `characters`
  std::string characters;  ///< the different ones of the text, in the order of their bytes
  std::string name;        ///< for errors
};

/// Throws std::runtime_error, naming the file, where it cannot be read or has nothing in it.
Text read(const std::string& file);
/// Numbers in words, in an order without a pattern, one in each line.
Text made_up();

/// Rows of `context` characters in a row; the target of each is the character that follows it.
struct Parts {
  troupe::train::Dataset training;    ///< at each place in the first nine tenths of the text
  troupe::train::Dataset validation;  ///< spread over the last tenth, without overlap
};

/// Both parts have whole batches alone, so that a step has the same rows on any number of ranks
/// that divides the batch. They are views of the text. Throws std::runtime_error for a text that is
/// too short for one batch.
Parts parts(const Text& text, std::int64_t context, std::int64_t batch);

}  // namespace text
