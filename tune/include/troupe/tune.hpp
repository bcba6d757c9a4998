#pragma once

/// Troupe's hyperparameter search: many gangs in parallel, judged by what they report.
#include <troupe/tune/context.hpp>
#include <troupe/tune/load.hpp>
#include <troupe/tune/mlflow.hpp>
#include <troupe/tune/options.hpp>
#include <troupe/tune/replay.hpp>
#include <troupe/tune/results.hpp>
#include <troupe/tune/run.hpp>
#include <troupe/tune/schedulers/asha.hpp>
#include <troupe/tune/schedulers/hyperband.hpp>
#include <troupe/tune/schedulers/median_stopping.hpp>
#include <troupe/tune/schedulers/pb2.hpp>
#include <troupe/tune/schedulers/pbt.hpp>
#include <troupe/tune/schedulers/resource_changing.hpp>
#include <troupe/tune/searcher.hpp>
#include <troupe/tune/searchers/bohb_model.hpp>
#include <troupe/tune/searchers/cmaes.hpp>
#include <troupe/tune/searchers/gaussian_process.hpp>
#include <troupe/tune/searchers/nsga2.hpp>
#include <troupe/tune/searchers/own.hpp>
#include <troupe/tune/searchers/quasi_random.hpp>
#include <troupe/tune/searchers/repeated.hpp>
#include <troupe/tune/searchers/tpe.hpp>
#include <troupe/tune/simulate.hpp>
#include <troupe/tune/space.hpp>
