#include "sweep/search_tables.hpp"

#include <optional>
#include <stdexcept>

#include <troupe/tune.hpp>

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

/// None: there is no searcher of that name. Throws std::invalid_argument for a value that cannot be.
std::optional<tune::SearcherFactory> searcher_named(const std::string& name, TomlTable& table) {
  if (name == "tpe") return tpe_of(table);
  if (name == "cmaes") return cmaes_of(table);
  if (name == "gaussian_process") return gaussian_process_of(table);
  if (name == "bohb_model") return bohb_model_of(table);
  if (name == "sobol") return sobol_of(table);
  if (name == "halton") return halton_of(table);
  if (name == "nsga2") return nsga2_of(table);
  if (name == "random" || name == "grid") return tune::SearcherFactory();
  return std::nullopt;
}

}  // namespace

tune::SearcherFactory searcher_of(TomlTable& file) {
  auto table = file.table("searcher");
  if (!table) return {};
  std::optional<tune::SearcherFactory> searcher;
  try {
    searcher = searcher_named(table->text("type").value_or(""), *table);
  } catch (const std::invalid_argument& refused) {
    table->refuse_named(refused.what(), "type");
  }
  if (!searcher) {
    table->refuse("type",
                  "is one of random, grid, sobol, halton, tpe, cmaes, gaussian_process, "
                  "bohb_model and nsga2");
  }
  table->finish();
  return *std::move(searcher);
}

}  // namespace troupe::launch
