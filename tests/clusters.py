"""A Dask cluster on this computer."""

import os
from contextlib import contextmanager
from unittest import mock

from optional import optional_import


@contextmanager
def local_cluster(settings=None, **options):
    """Start a cluster with some settings of Dask. Its changes of the environment end
    with it."""
    # the import defines the settings, so it comes before they are changed
    distributed = optional_import("distributed")
    dask = optional_import("dask")
    common = {"threads_per_worker": 1, "dashboard_address": None, "scheduler_port": 0}
    with (
        mock.patch.dict(os.environ),
        dask.config.set(settings or {}),
        distributed.LocalCluster(**common | options) as cluster,
    ):
        yield cluster
