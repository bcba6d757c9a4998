#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <troupe/train/safetensors.hpp>

#include "config/name.hpp"
#include "files/errors.hpp"
#include "files/pending_file.hpp"
#include "parallel/torch_error.hpp"
#include "safetensors/source.hpp"
#include "safetensors/values.hpp"

namespace troupe::train::safetensors {

Contents load(const std::filesystem::path& path) {
  const Source source(path);
  Contents contents{.tensors = {}, .metadata = source.metadata()};
  for (const auto& [name, place] : source.tensors()) {
    translated(
        fmt::format("cannot load '{}' of {}", config::printable(name), in_words(source.path())),
        [&, &its = name, &at = place] { contents.tensors.emplace(its, read_tensor(at)); });
  }
  return contents;
}

void save(const std::map<std::string, at::Tensor>& tensors, const std::filesystem::path& file,
          const Metadata& metadata) {
  std::map<std::string, Entry> entries;
  for (const auto& [name, tensor] : tensors) entries.emplace(name, entry_of(name, tensor));
  const auto placed = place(entries);
  const auto head = print_header(placed, metadata);
  PendingFile pending(file);
  pending.write(head.data(), head.size());
  translated(fmt::format("cannot write {}", in_words(file)), [&] {
    for (const auto& [name, entry] : placed) {
      const auto values = values_in_order(tensors.at(name));
      pending.write(values.const_data_ptr(), values.nbytes());
    }
  });
  pending.commit();
}

}  // namespace troupe::train::safetensors
