"""jax.distributed on CPUs. JAX takes the coordinator from the environment; of the rest the program tells it."""

import os

import jax

jax.distributed.initialize(num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"]),
                           initialization_timeout=60)

import jax.numpy as jnp
from jax.experimental import multihost_utils

gathered = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1]))
print("result", jax.process_index(), jax.process_count(), int(gathered.sum()))
jax.distributed.shutdown()
