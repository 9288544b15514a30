"""Implements the Images port on the Parameter Store of Systems Manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autoscaler.adapters.aws import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

# https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
_NAMES_A_CALL = 10


class SsmImages:
    """Images that parameters name. ``client`` makes the client at the first use."""

    def __init__(self, client: Callable[[], Any]) -> None:
        """Keep how to ask."""
        self._client = client

    def current(self, parameters: Collection[str]) -> Mapping[str, str]:
        """Ask for ten at a time; SSM names the unknown ones beside the others, and fails all for one that may not be read."""
        names, images = sorted(set(parameters)), dict[str, str]()
        for start in range(0, len(names), _NAMES_A_CALL):
            with translated("GetParameters"):
                answer = self._client().get_parameters(Names=names[start : start + _NAMES_A_CALL])
            images |= {raw["Name"]: raw["Value"] for raw in answer["Parameters"] if raw["Value"].startswith("ami-")}
        return images
