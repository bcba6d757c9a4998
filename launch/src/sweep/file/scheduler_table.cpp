#include "sweep/file/search_tables.hpp"

#include <algorithm>
#include <stdexcept>

#include <troupe/tune.hpp>

#include "words/nearest.hpp"

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

/// Empty: there is no scheduler of that name. Throws std::invalid_argument for a value that cannot
/// be.
tune::SchedulerFactory scheduler_named(const std::string& name, TomlTable& table,
                                       const tune::SearchSpace& space) {
  if (name == "fifo") return tune::fifo();
  if (name == "asha") return asha_of(table);
  if (name == "hyperband") return hyperband_of(table);
  if (name == "median_stopping") return median_of(table);
  if (name == "pbt") {
    tune::PbtOptions options;
    read_population(table, space, options);
    return tune::pbt(options);
  }
  if (name == "pb2") {
    tune::Pb2Options options;
    read_population(table, space, options);
    return tune::pb2(options);
  }
  return {};
}

}  // namespace

tune::SchedulerFactory scheduler_of(TomlTable& file, const tune::SearchSpace& space) {
  auto table = file.table("scheduler");
  if (!table) return tune::fifo();
  tune::SchedulerFactory made;
  const auto type = table->text("type").value_or("");
  try {
    made = scheduler_named(type, *table, space);
  } catch (const std::invalid_argument& refused) {
    table->refuse_named(refused.what(), "type");
  }
  if (!made) {
    const auto near =
        nearest_in_words(type, {"asha", "hyperband", "median_stopping", "pbt", "pb2", "fifo"});
    table->refuse("type", "is one of asha, hyperband, median_stopping, pbt, pb2 and fifo" + near);
  }
  table->finish();
  return made;
}

}  // namespace troupe::launch
