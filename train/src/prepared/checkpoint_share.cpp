#include "prepared/checkpoint_share.hpp"

#include <cstddef>
#include <utility>

#include "checkpoint/saving/rank_part.hpp"
#include "prepared/learning_rates.hpp"

namespace troupe::train {

RankShare share_of_rank(const ContextRank& here, const PreparedModels& models,
                        const PreparedOptimizers& optimizers, const CheckpointContents& contents,
                        int epoch, bool copies) {
  RankPart own(here.rank(), copies);
  for (const auto* each : contents.parts) {
    if (each != nullptr) own.add_cut(each->flats());
  }
  own.add_cut(models.cut_values());
  if (const auto* masters = models.masters()) {
    for (const auto& each : optimizers.with_masters()) own.add_cut(each->flats());
    own.write_float32(*masters);
  }
  auto& manifest = own.manifest();
  manifest.epoch = epoch;
  manifest.ranks = here.world_size();
  manifest.zero_stage = here.options.zero.stage;
  manifest.learning_rate_scale = scale_of(here.options.scale_learning_rates, here.world_size());
  if (const auto* scaler = optimizers.scaler()) manifest.loss_scale = scaler->state();
  for (const auto& model : contents.models) own.add_model(*model);
  const auto names = models.parameter_names();
  for (std::size_t i = 0; i < contents.optimizers.size(); ++i)
    own.add_optimizer(*contents.optimizers[i], contents.parts[i], names);
  return {.manifest = std::move(manifest), .files = std::move(own.files())};
}

}  // namespace troupe::train
