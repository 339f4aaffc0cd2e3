"""Nodes that mask their updates, in four exchanges."""

from __future__ import annotations

from flwr.clientapp import ClientApp

from secagg.flower import SecAggMod

from .message_api import train

app = ClientApp(mods=[SecAggMod()])
app.train()(train)
