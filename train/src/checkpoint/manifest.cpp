#include "checkpoint/manifest.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/name.hpp"
#include "json/document.hpp"
#include "store/memory/checksum.hpp"

namespace troupe::train {
namespace {

using nlohmann::json;
using safetensors::FormatError;

constexpr int kFormat = 2;
constexpr auto* kChecksum = "checksum";

std::string in_hexadecimal(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::uint64_t from_hexadecimal(const std::string& digits) {
  std::size_t read = 0;
  const auto number = std::stoull(digits, &read, 16);
  if (read != digits.size()) throw FormatError("a checksum is no number");
  return number;
}

std::string checksum_of(const std::string& text) {
  return in_hexadecimal(store::checksum(std::as_bytes(std::span(text))));
}

json to_json(const SavedTensor& tensor) {
  json pieces = json::array();
  for (const auto& [file, key, first, count] : tensor.pieces)
    pieces.push_back({{"file", file}, {"key", key}, {"first", first}, {"count", count}});
  json made{{"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"pieces", pieces}};
  if (!tensor.strides.empty()) made["strides"] = tensor.strides;
  return made;
}

json to_json(const std::map<std::string, SavedTensor>& tensors) {
  json made = json::object();
  for (const auto& [name, tensor] : tensors) made[name] = to_json(tensor);
  return made;
}

json to_json(const SavedModel& model) {
  return {{"tensors", to_json(model.tensors)}, {"shared", model.shared}};
}

json to_json(const SavedOptimizer& optimizer) {
  json groups = json::array();
  for (const auto& states : optimizer.groups) {
    json group = json::array();
    for (const auto& state : states) {
      group.push_back({{"parameter", state.parameter},
                       {"shape", state.shape},
                       {"steps", state.steps},
                       {"tensors", to_json(state.tensors)}});
    }
    groups.push_back(std::move(group));
  }
  return {{"type", optimizer.type}, {"file", optimizer.file}, {"groups", std::move(groups)}};
}

json to_json(const SavedFile& file) {
  json checksums = json::object();
  for (const auto& [key, checksum] : file.checksums) checksums[key] = in_hexadecimal(checksum);
  return {{"bytes", file.bytes}, {"xxh3", std::move(checksums)}};
}

json to_json(const LossScaleState& state) {
  return {{"scale", state.scale},
          {"steps", state.steps},
          {"last_overflow", state.last_overflow},
          {"patience", state.patience}};
}

template <class Each>
json list_of(const std::vector<Each>& values) {
  json made = json::array();
  for (const auto& each : values) made.push_back(to_json(each));
  return made;
}

safetensors::DType dtype_named(const std::string& name) {
  using safetensors::DType;
  for (auto at = DType::Bool; at <= DType::U64;
       at = static_cast<DType>(static_cast<std::uint8_t>(at) + 1)) {
    if (name_of(at) == name) return at;
  }
  throw FormatError(fmt::format("the type '{}' is not known", config::printable(name)));
}

/// A name beside the manifest, and no way elsewhere.
std::string file_name_in(const json& value) {
  auto name = value.get<std::string>();
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw FormatError(fmt::format("'{}' is no name of a file", config::printable(name)));
  return name;
}

SavedTensor tensor_in(const json& value) {
  SavedTensor tensor{.type = dtype_named(value.at("dtype").get<std::string>()),
                     .shape = value.at("shape").get<std::vector<std::int64_t>>()};
  if (value.contains("strides"))
    tensor.strides = value.at("strides").get<std::vector<std::int64_t>>();
  for (const auto& piece : value.at("pieces")) {
    tensor.pieces.push_back({.file = file_name_in(piece.at("file")),
                             .key = piece.at("key").get<std::string>(),
                             .first = piece.at("first").get<std::int64_t>(),
                             .count = piece.at("count").get<std::int64_t>()});
  }
  return tensor;
}

std::map<std::string, SavedTensor> tensors_in(const json& value) {
  std::map<std::string, SavedTensor> tensors;
  for (const auto& [name, tensor] : value.items()) tensors.emplace(name, tensor_in(tensor));
  return tensors;
}

SavedOptimizer optimizer_in(const json& value) {
  SavedOptimizer optimizer{.type = value.at("type").get<std::string>(),
                           .file = file_name_in(value.at("file"))};
  for (const auto& group : value.at("groups")) {
    auto& states = optimizer.groups.emplace_back();
    for (const auto& state : group) {
      states.push_back({.parameter = state.at("parameter").get<std::string>(),
                        .shape = state.at("shape").get<std::vector<std::int64_t>>(),
                        .steps = state.at("steps").get<std::int64_t>(),
                        .tensors = tensors_in(state.at("tensors"))});
    }
  }
  return optimizer;
}

SavedFile file_in(const json& value) {
  SavedFile file{.bytes = value.at("bytes").get<std::uint64_t>()};
  for (const auto& [key, checksum] : value.at("xxh3").items())
    file.checksums.emplace(key, from_hexadecimal(checksum.get<std::string>()));
  return file;
}

LossScaleState loss_scale_in(const json& value) {
  const LossScaleState state{.scale = value.at("scale").get<double>(),
                             .steps = value.at("steps").get<std::int64_t>(),
                             .last_overflow = value.at("last_overflow").get<std::int64_t>(),
                             .patience = value.at("patience").get<int>()};
  if (!(state.scale > 0) || state.patience < 1) throw FormatError("the loss scale cannot be");
  return state;
}

Manifest manifest_in(const json& document) {
  Manifest manifest{.epoch = document.at("epoch").get<int>(),
                    .ranks = document.at("ranks").get<int>(),
                    .zero_stage = document.at("zero_stage").get<int>()};
  manifest.learning_rate_scale = document.value("learning_rate_scale", 1.0);
  if (!(manifest.learning_rate_scale > 0)) throw FormatError("the learning rate scale cannot be");
  if (document.contains("loss_scale"))
    manifest.loss_scale = loss_scale_in(document.at("loss_scale"));
  for (const auto& model : document.at("models")) {
    manifest.models.push_back(
        {.tensors = tensors_in(model.at("tensors")),
         .shared = model.at("shared").get<std::map<std::string, std::string>>()});
  }
  for (const auto& optimizer : document.at("optimizers"))
    manifest.optimizers.push_back(optimizer_in(optimizer));
  for (const auto& [name, file] : document.at("files").items())
    manifest.files.emplace(file_name_in(name), file_in(file));
  return manifest;
}

json document_in(const std::string& text) {
  try {
    return parse_document(text, "the manifest", Comments::Refused);
  } catch (const std::invalid_argument& error) {
    throw FormatError(error.what());
  }
}

void add_pieces(std::map<std::string, SavedTensor>& into,
                const std::map<std::string, SavedTensor>& part) {
  for (const auto& [name, tensor] : part) {
    const auto [known, is_new] = into.emplace(name, tensor);
    if (is_new) continue;
    auto& pieces = known->second.pieces;
    pieces.insert(pieces.end(), tensor.pieces.begin(), tensor.pieces.end());
  }
}

/// Of a tensor without gaps: sorted by their strides, each dimension begins where the ones before
/// it end.
bool are_without_gaps(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (shape.size() != strides.size()) return false;
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) dimensions.emplace_back(strides[i], shape[i]);
  }
  std::ranges::sort(dimensions);
  std::int64_t expected = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

/// `may_have_holes`: elements that no rank had.
void check_tensor(const Manifest& manifest, const std::string& what, const SavedTensor& tensor,
                  bool may_have_holes) {
  const auto fail = [&](std::string_view why) {
    throw FormatError(fmt::format("{}: {}", config::printable(what), why));
  };
  const auto bytes = safetensors::bytes_of(tensor.type, tensor.shape);
  if (!bytes) fail("there can be no tensor of this shape");
  if (!tensor.strides.empty() && !are_without_gaps(tensor.shape, tensor.strides))
    fail("its strides do not go with its shape");
  const auto elements = static_cast<std::int64_t>(*bytes / size_of(tensor.type));
  auto pieces = tensor.pieces;
  std::ranges::sort(pieces, {}, &SavedPiece::first);
  std::int64_t reached = 0;
  for (const auto& [file, key, first, count] : pieces) {
    const auto found = manifest.files.find(file);
    if (found == manifest.files.end() || !found->second.checksums.contains(key))
      fail("a piece of it is in no file");
    if (first < reached) fail("two ranks have written the same elements");
    if (first > reached && !may_have_holes) break;
    if (count < 0 || count > elements - first) fail("a piece goes beyond its end");
    reached = first + count;
  }
  if (reached != elements && !may_have_holes)
    fail(fmt::format("no rank has written the elements from {} on", reached));
}

}  // namespace

void merge(Manifest& into, const Manifest& part) {
  for (std::size_t i = 0; i < part.models.size(); ++i)
    add_pieces(into.models.at(i).tensors, part.models[i].tensors);
  for (std::size_t i = 0; i < part.optimizers.size(); ++i) {
    auto& groups = into.optimizers.at(i).groups;
    for (std::size_t g = 0; g < part.optimizers[i].groups.size(); ++g) {
      const auto& states = part.optimizers[i].groups[g];
      for (std::size_t p = 0; p < states.size(); ++p) {
        auto& state = groups.at(g).at(p);
        state.steps = std::max(state.steps, states[p].steps);
        add_pieces(state.tensors, states[p].tensors);
      }
    }
  }
  into.files.insert(part.files.begin(), part.files.end());
}

std::string print_manifest(const Manifest& manifest) {
  json files = json::object();
  for (const auto& [name, file] : manifest.files) files[name] = to_json(file);
  json document{{"format", kFormat},
                {"epoch", manifest.epoch},
                {"ranks", manifest.ranks},
                {"zero_stage", manifest.zero_stage},
                {"models", list_of(manifest.models)},
                {"optimizers", list_of(manifest.optimizers)},
                {"files", std::move(files)}};
  if (manifest.learning_rate_scale != 1)
    document["learning_rate_scale"] = manifest.learning_rate_scale;
  if (manifest.loss_scale) document["loss_scale"] = to_json(*manifest.loss_scale);
  document[kChecksum] = checksum_of(document.dump());
  return document.dump(2) + "\n";
}

Manifest parse_manifest(const std::string& text) {
  auto document = document_in(text);
  const auto format = document.find("format");
  if (format != document.end() && format->is_number_integer() && *format != kFormat) {
    throw FormatError(fmt::format("it is of format {}; this program reads format {}",
                                  format->get<std::int64_t>(), kFormat));
  }
  const auto checksum = document.find(kChecksum);
  if (checksum == document.end()) throw FormatError("it is no manifest of a checkpoint");
  const auto said = *checksum;
  document.erase(checksum);
  if (said != checksum_of(document.dump()))
    throw FormatError("it was altered after it was written: its checksum is another one");
  try {
    return manifest_in(document);
  } catch (const json::exception& error) {
    throw FormatError(fmt::format("it is no manifest of a checkpoint: {}", error.what()));
  } catch (const std::logic_error&) {  // of std::stoull
    throw FormatError("a checksum is no number");
  }
}

void check_complete(const Manifest& manifest) {
  for (std::size_t i = 0; i < manifest.models.size(); ++i) {
    const auto& [tensors, shared] = manifest.models[i];
    for (const auto& [name, tensor] : tensors)
      check_tensor(manifest, fmt::format("'{}' of model {}", name, i), tensor, false);
    for (const auto& [name, other] : shared) {
      if (!tensors.contains(other))
        throw FormatError(fmt::format("'{}' of model {} is said to be '{}', which is not there",
                                      config::printable(name), i, config::printable(other)));
    }
  }
  for (std::size_t i = 0; i < manifest.optimizers.size(); ++i) {
    const auto& optimizer = manifest.optimizers[i];
    if (!manifest.files.contains(optimizer.file))
      throw FormatError(fmt::format("the file of optimizer {} is not there", i));
    for (const auto& group : optimizer.groups) {
      for (const auto& state : group) {
        for (const auto& [name, tensor] : state.tensors)
          check_tensor(manifest,
                       fmt::format("{} of '{}' in optimizer {}", name, state.parameter, i), tensor,
                       true);
      }
    }
  }
}

}  // namespace troupe::train
