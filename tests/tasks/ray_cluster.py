"""A Ray cluster of two cores in a process of its own: prints its address, and ends when its input does."""

import sys

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80 << 20})
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()
