#pragma once

#include <array>
#include <string_view>

/// The keys of DeepSpeed 0.19 that are not read for a value.
namespace troupe::train::deepspeed {

/// These tell DeepSpeed how to compute, log or store, and change no result but by rounding.
/// (`activation_checkpointing` is for what a program then calls.)
inline constexpr std::array<std::string_view, 23> kWithoutEffect{
    "activation_checkpointing",
    "aio",
    "checkpoint",
    "comms_logger",
    "compile",
    "disable_allgather",
    "disable_python_gc",
    "dump_state",
    "flops_profiler",
    "gradient_predivide_factor",
    "log_level",
    "memory_breakdown",
    "nebula",
    "prescale_gradients",
    "python_gc",
    "seq_parallel_communication_data_type",
    "steps_per_print",
    "timers",
    "use_data_before_expert_parallelism",
    "vocabulary_size",
    "wall_clock_breakdown",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
};

/// These change results, or what a run does besides training. A key without a dot is switched on by
/// its value, and BLOCK.KEY by that key of the block.
inline constexpr std::array<std::string_view, 24> kOff{
    "amp.enabled",
    "autotuning.enabled",
    "comet.enabled",
    "communication_data_type",
    "compression_training",
    "csv_monitor.enabled",
    "curriculum_learning.enabled",
    "data_efficiency.enabled",
    "data_types",
    "dataloader_drop_last",
    "eigenvalue.enabled",
    "elasticity.enabled",
    "expert_parallel",
    "hybrid_engine.enabled",
    "pipeline",
    "progressive_layer_drop.enabled",
    "quantize_training.enabled",
    "sparse_attention",
    "sparse_gradients",
    "tensor_parallel",
    "tensorboard.enabled",
    "wandb.enabled",
    "weight_quantization.enabled",
    "zenflow",
};

/// What to do where one of them is on.
inline constexpr std::string_view kSwitchOff = ": leave it away, or switch it off";

/// Of `zero_optimization`, also by the names that keys of stage 3 have without "stage3_".
inline constexpr std::array<std::string_view, 41> kZeroWithoutEffect{
    "allgather_bucket_size",
    "allgather_partitions",
    "allgather_sequential",
    "compute_grad_norm",
    "contiguous_gradients",
    "cpu_offload_use_pin_memory",
    "elastic_checkpoint",
    "enable_sanity_checks",
    "gather_16bit_weights_on_model_save",
    "leaf_module",
    "legacy_stage1",
    "load_from_fp32_weights",
    "log_trace_cache_warnings",
    "max_live_parameters",
    "max_reuse_distance",
    "memory_efficient_linear",
    "model_persistence_threshold",
    "module_granularity_threshold",
    "override_module_apply",
    "overlap_comm",
    "param_persistence_threshold",
    "parameter_alignment",
    "pipeline_loading_checkpoint",
    "prefetch_bucket_size",
    "reduce_bucket_size",
    "reduce_scatter",
    "round_robin_gradients",
    "save_muon_momentum_buffer_in_memory",
    "stage3_allgather_sequential",
    "stage3_gather_16bit_weights_on_model_save",
    "stage3_gather_fp16_weights_on_model_save",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_model_persistence_threshold",
    "stage3_module_granularity_threshold",
    "stage3_param_persistence_threshold",
    "stage3_prefetch_bucket_size",
    "stage3_use_all_reduce_for_fetch_params",
    "sub_group_size",
    "use_all_reduce_for_fetch_params",
    "use_multi_rank_bucket_allreduce",
};

/// The same of `zero_optimization`.
inline constexpr std::array<std::string_view, 6> kZeroOff{
    "mics_hierarchical_params_gather", "zenflow",
    "zero_quantized_gradients",        "zero_quantized_nontrainable_weights",
    "zero_quantized_weights",          "zeropp_loco_param",
};

/// Of the blocks in it that offload.
inline constexpr std::array<std::string_view, 11> kOffloadWithoutEffect{
    "convert_grad_on_cpu", "cpuadam_cores_perc", "buffer_count", "buffer_size",
    "fast_init",           "max_in_cpu",         "pin_memory",   "pipeline",
    "pipeline_read",       "pipeline_write",     "nvme_path",
};

}  // namespace troupe::train::deepspeed
