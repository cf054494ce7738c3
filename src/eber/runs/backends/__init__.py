"""Where work is computed: processes of this machine, a Ray cluster, or any executor of `concurrent.futures`."""

from eber.runs.backends.choice import RayCluster, check_backend, open_backend
from eber.runs.backends.protocol import Backend, Failure, Work

__all__ = ["Backend", "Failure", "RayCluster", "Work", "check_backend", "open_backend"]
