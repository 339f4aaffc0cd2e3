"""Recommender trained under secure aggregation on your own table of names and ratings."""

import csv
import tempfile
from pathlib import Path

import numpy as np

from fedmf import FedMF, SecAggSum, Trainer, from_triples

PEOPLE = ("Ada", "Bo", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hal", "Ida", "Jon")
FILMS = ("Alien", "Brazil", "Casablanca", "Dune", "Emma", "Fargo")


def write_table(path: Path) -> None:
    """Write the ratings: Ada likes every other film, Bo the rest, Cleo the same as Ada, etc.

    Each person has two films left to see: one they like, one they do not.
    """
    rows = [
        (person, film, 5 - j % 2 if i % 2 == j % 2 else 1 + j % 2)
        for i, person in enumerate(PEOPLE)
        for j, film in enumerate(FILMS)
        if (j - i) % len(FILMS) > 1
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("person", "film", "stars"), *rows])


with tempfile.TemporaryDirectory() as folder:
    table = Path(folder) / "ratings.csv"
    write_table(table)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))

people, users = np.unique([row["person"] for row in rows], return_inverse=True)
films, items = np.unique([row["film"] for row in rows], return_inverse=True)
ratings = from_triples(users, items, [float(row["stars"]) for row in rows], scale=(1, 5))

model = Trainer(FedMF(k=2), SecAggSum(), rounds=10).fit(ratings)
for user, person in enumerate(people):
    found, stars = model.recommend(user, k=2)
    print(f"{person}:", *(f"{films[i]} {s:.1f}" for i, s in zip(found, stars, strict=True)))
