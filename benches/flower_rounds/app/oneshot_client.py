"""Nodes that send one report, and trust the helpers of their own configuration."""

from __future__ import annotations

from flwr.clientapp import ClientApp

from secagg.flower import OneShotMod

from .message_api import train

app = ClientApp(mods=[OneShotMod()])
app.train()(train)
