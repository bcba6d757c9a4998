#include "sweep/file/search_tables.hpp"

#include <algorithm>

#include <troupe/tune.hpp>

#include "sweep/file/by_type.hpp"

namespace troupe::launch {
namespace {

tune::SchedulerFactory asha_of(TomlTable& table) {
  tune::AshaOptions options;
  set(options.max_t, table.integer("max_t", 1));
  set(options.eta, table.integer("eta", 2));
  set(options.grace, table.integer("grace", 1));
  set(options.brackets, table.integer("brackets", 1));
  set(options.promote, table.truth("promote"));
  return tune::asha(options);
}

tune::SchedulerFactory hyperband_of(TomlTable& table) {
  tune::HyperBandOptions options;
  set(options.max_t, table.integer("max_t", 1));
  set(options.eta, table.integer("eta", 2));
  return tune::hyperband(options);
}

tune::SchedulerFactory median_of(TomlTable& table) {
  tune::MedianStoppingOptions options;
  set(options.grace, table.integer("grace", 1));
  set(options.min_samples, table.integer("min_samples", 1));
  set(options.interval, table.integer("interval", 1));
  return tune::median_stopping(options);
}

template <class Options>
void read_population(TomlTable& table, const tune::SearchSpace& space, Options& options) {
  set(options.interval, table.integer("interval", 1));
  set(options.burn_in, table.integer("burn_in", 0));
  set(options.max_t, table.integer("max_t", 1));
  set(options.quantile, table.number("quantile", 0));
  set(options.resample, table.number("resample", 0));
  set(options.synchronous, table.truth("synchronous"));
  const auto named = table.texts("mutate");
  for (const auto& dimension : space) {
    const bool is_named = named && std::ranges::find(*named, dimension.name) != named->end();
    if (is_named || (!named && dimension.domain.kind() != tune::Domain::Kind::Constant))
      options.mutate.push_back(dimension);
  }
  if (named && options.mutate.size() != named->size())
    table.refuse("mutate", "names a field that the space has not");
}

}  // namespace

tune::SchedulerFactory scheduler_of(TomlTable& file, const tune::SearchSpace& space) {
  auto table = file.table("scheduler");
  if (!table) return tune::fifo();
  const auto fifo_of = [](TomlTable&) { return tune::fifo(); };
  const auto pbt_of = [&space](TomlTable& keys) {
    tune::PbtOptions options;
    read_population(keys, space, options);
    return tune::pbt(options);
  };
  const auto pb2_of = [&space](TomlTable& keys) {
    tune::Pb2Options options;
    read_population(keys, space, options);
    return tune::pb2(options);
  };
  auto made = made_by_type<tune::SchedulerFactory>(*table, {{"asha", asha_of},
                                                            {"hyperband", hyperband_of},
                                                            {"median_stopping", median_of},
                                                            {"pbt", pbt_of},
                                                            {"pb2", pb2_of},
                                                            {"fifo", fifo_of}});
  table->finish();
  return made;
}

}  // namespace troupe::launch
