#include "sweep/file/search_tables.hpp"

#include <utility>

#include <troupe/tune.hpp>

#include "sweep/file/by_type.hpp"

namespace troupe::launch {
namespace {

tune::SearcherFactory tpe_of(TomlTable& table) {
  tune::TpeOptions options;
  set(options.startup_trials, table.integer("startup_trials"));
  set(options.candidates, table.integer("candidates", 1));
  set(options.multivariate, table.truth("multivariate"));
  set(options.constant_liar, table.truth("constant_liar"));
  set(options.gamma, table.number("gamma", 0));
  set(options.most_good, table.integer("most_good", 1));
  set(options.narrowing, table.number("narrowing", 0));
  return tune::tpe(options);
}

tune::SearcherFactory cmaes_of(TomlTable& table) {
  tune::CmaesOptions options;
  set(options.sigma, table.number("sigma", 0));
  set(options.population, table.integer("population"));
  set(options.restart, table.truth("restart"));
  set(options.random_choices, table.truth("random_choices"));
  return tune::cmaes(options);
}

tune::SearcherFactory gaussian_process_of(TomlTable& table) {
  tune::GaussianProcessOptions options;
  set(options.startup, table.integer("startup", 2));
  set(options.candidates, table.integer("candidates", 1));
  set(options.fitted, table.integer("fitted", 10));
  set(options.known, table.integer("known", 10));
  return tune::gaussian_process(options);
}

tune::SearcherFactory bohb_model_of(TomlTable& table) {
  tune::BohbModelOptions options;
  set(options.random, table.number("random", 0));
  set(options.good, table.number("good", 0));
  set(options.candidates, table.integer("candidates", 1));
  set(options.widening, table.number("widening", 0));
  return tune::bohb_model(options);
}

tune::SearcherFactory nsga2_of(TomlTable& table) {
  tune::Nsga2Options options;
  set(options.population, table.integer("population", 2));
  set(options.crossover, table.number("crossover", 0));
  set(options.mutation, table.number("mutation", 0));
  set(options.crossover_index, table.number("crossover_index", 0));
  set(options.mutation_index, table.number("mutation_index", 0));
  return tune::nsga2(options);
}

tune::SearcherFactory sobol_of(TomlTable& table) {
  tune::SobolOptions options;
  set(options.scramble, table.truth("scramble"));
  return tune::sobol(options);
}

tune::SearcherFactory halton_of(TomlTable& table) {
  tune::HaltonOptions options;
  set(options.scramble, table.truth("scramble"));
  return tune::halton(options);
}

/// Random search, and the grid where the space has one.
tune::SearcherFactory default_of(TomlTable&) { return {}; }

/// `batch` and `repeats`, of any searcher that says how many configurations there are.
void set_repeats(TomlTable& table, tune::SearcherFactory& searcher) {
  const auto batch = table.integer("batch", 1), repeats = table.integer("repeats", 1);
  for (const auto* key : {"batch", "repeats"}) {
    if (table.has(key) && table.text("type") == "grid")
      table.refuse(key,
                   "is of the other searchers: samples = 3 runs each point of a grid so often");
  }
  if (batch) searcher = tune::batched(std::move(searcher), static_cast<std::size_t>(*batch));
  if (repeats) searcher = tune::repeated(std::move(searcher), static_cast<std::size_t>(*repeats));
}

}  // namespace

tune::SearcherFactory searcher_of(TomlTable& file) {
  auto table = file.table("searcher");
  if (!table) return {};
  auto searcher =
      made_by_type<tune::SearcherFactory>(*table, {{"random", default_of},
                                                   {"grid", default_of},
                                                   {"sobol", sobol_of},
                                                   {"halton", halton_of},
                                                   {"tpe", tpe_of},
                                                   {"cmaes", cmaes_of},
                                                   {"gaussian_process", gaussian_process_of},
                                                   {"bohb_model", bohb_model_of},
                                                   {"nsga2", nsga2_of}});
  set_repeats(*table, searcher);
  table->finish();
  return searcher;
}

}  // namespace troupe::launch
