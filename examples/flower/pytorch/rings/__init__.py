"""PyTorch on Flower: a network that learns which of two rings a point is on."""
