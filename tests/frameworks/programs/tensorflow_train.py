"""MultiWorkerMirroredStrategy finds its workers by TF_CONFIG: a step of gradient descent over all of them."""

import tensorflow as tf


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(1.0)

    @tf.function
    def step():
        def of_replica():
            context = tf.distribute.get_replica_context()
            x = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
            with tf.GradientTape() as tape:
                loss = (weight * x) ** 2
            gradient = context.all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weight))
            weight.assign_sub(0.01 * gradient, read_value=False)
            return gradient

        return strategy.run(of_replica)

    gradient = float(strategy.experimental_local_results(step())[0])
    resolver = strategy.cluster_resolver
    print("result", resolver.task_type, resolver.task_id, strategy.num_replicas_in_sync, gradient, round(float(weight.numpy()), 4))


main()
