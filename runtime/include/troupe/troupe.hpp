#pragma once

/// All of the runtime in one include.
#include <troupe/actor.hpp>
#include <troupe/array.hpp>
#include <troupe/cluster.hpp>
#include <troupe/errors.hpp>
#include <troupe/gang.hpp>
#include <troupe/gang_context.hpp>
#include <troupe/options.hpp>
#include <troupe/pick.hpp>
#include <troupe/ref.hpp>
#include <troupe/rendezvous.hpp>
#include <troupe/task.hpp>
#include <troupe/trainable.hpp>
#include <troupe/with.hpp>
