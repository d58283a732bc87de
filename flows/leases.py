"""Frees the concurrency slots of dead flow runs as soon as they are seen; Prefect alone waits for a lease to end."""

import asyncio
from uuid import UUID

from flows import trace
from flows.api import PrefectApi
from flows.places import Places
from flows.services.commands import CORES_LIMIT, prefect_home


def free_leases_of_dead_runs(places: Places, api: PrefectApi) -> list[str]:
    """Ids of the runs whose slots were freed. Raises `OSError` or `Refused` when the server does not answer."""
    if not any((folder := prefect_home(places.home) / "concurrency_leases").glob("*-*.json")):
        return []
    from prefect.server.concurrency.lease_storage.filesystem import ConcurrencyLeaseStorage

    limit = UUID(api.call("GET", f"/v2/concurrency_limits/{CORES_LIMIT}")["id"])
    holders = asyncio.run(ConcurrencyLeaseStorage(folder).list_holders_for_limit(limit))
    dead = [(lease, str(holder.id)) for lease, holder in holders if trace.is_dead(places.home, str(holder.id))]
    for lease_id, _ in dead:
        api.call("POST", "/v2/concurrency_limits/decrement-with-lease", {"lease_id": str(lease_id)})
    return [run_id for _, run_id in dead]
