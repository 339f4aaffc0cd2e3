"""Nodes that send their models."""

from __future__ import annotations

from flwr.clientapp import ClientApp

from .message_api import train

app = ClientApp()
app.train()(train)
