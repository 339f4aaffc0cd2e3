"""Recommender on Flower: nodes with some users each learn the factors of the films."""
