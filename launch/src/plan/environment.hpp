#pragma once

#include "plan/plan.hpp"

namespace troupe::launch {

/// What tells rank `rank` of a gang of programs where it stands, in the words of each framework:
/// torchrun (torch/distributed/elastic/agent/server/local_elastic_agent.py), Lightning, Accelerate
/// and DeepSpeed, which read the same; TF_CONFIG of tf.distribute; Horovod; Open MPI; JAX. Pure.
Variables rank_environment(const GangPlan& plan, int rank);

/// Names of variables that belong to one machine, one session or one process of Troupe, and so are
/// not handed from the driver to ranks on other machines: "HOSTNAME", "TROUPE_TOKEN", ...
bool stays_here(const std::string& name);

/// Of this process, without what is Troupe's own.
Variables own_environment();
/// Of a worker process, for a program that it starts: without the numbers of threads that Troupe set
/// for the worker process itself (OMP_NUM_THREADS and its siblings).
Variables environment_for_programs();
/// Of `variables`: the number of threads that a user has set, which ranks keep.
Variables threads_of_user(const Variables& variables);
/// As own_environment(), without what stays here: for ranks on other machines.
Variables environment_to_hand_on();
/// Of this process: what CUDA_VISIBLE_DEVICES names.
std::vector<std::string> visible_gpus();

/// `variables`, and what launchers set where nobody has. torchrun: PyTorch ends a process whose
/// collective has failed or is late, and leaves none that waits for ever. horovodrun: Horovod meets
/// and computes over Gloo, at the rendezvous of rank_environment(). And with_live_output().
Variables with_defaults(Variables variables);
/// `variables`, and, unless they say otherwise, what makes Python hand each line to the pipe as it
/// is printed: it would keep 8 KiB of them, and a program that reports would not be heard.
Variables with_live_output(Variables variables);

/// `base`, with those of `over` in place of their namesakes or behind it.
Variables merged(Variables base, const Variables& over);

}  // namespace troupe::launch
