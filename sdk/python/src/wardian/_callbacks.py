"""What the server may ask of its client."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .extensions import ExtensionLike, Extensions
from .network import NetworkLike, Requests


class Callbacks:
    """Your functions that the server calls: extensions, and the decision about requests."""

    def __init__(self, extensions: Sequence[ExtensionLike], network: Optional[NetworkLike]) -> None:
        self._extensions = Extensions(extensions)
        self._requests = Requests(network)

    def run_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Names the loop in which async functions run."""
        self._extensions.loop = self._requests.loop = loop

    def specs(self) -> List[Dict[str, Any]]:
        """Returns the protocol representation of the extensions."""
        return self._extensions.specs()

    def answer(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answers a call. Raises LookupError if there is no such call."""
        if method == "extension.invoke":
            return self._extensions.invoke(params)
        if method == "network.request":
            return self._requests.decide(params)
        raise LookupError(method)
