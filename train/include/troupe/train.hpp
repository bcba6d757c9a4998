#pragma once

#include <troupe/train/communicator.hpp>
#include <troupe/train/context.hpp>
#include <troupe/train/data/join.hpp>
#include <troupe/train/data/loader.hpp>
#include <troupe/train/data/sampler.hpp>
#include <troupe/train/data_parallel.hpp>
#include <troupe/train/layers/sync_batch_norm.hpp>
#include <troupe/train/plan.hpp>
#include <troupe/train/run.hpp>
#include <troupe/train/tensor.hpp>
#include <troupe/train/weights.hpp>
#include <troupe/train/work.hpp>
