"""Recommender trained under secure aggregation on your own table of names and ratings."""

import csv
import tempfile
from pathlib import Path

from fedmf import FedMF, SecAggSum, Trainer, read_ratings

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
    ratings = read_ratings(table, ("person", "film", "stars"), scale=(1, 5))

model = Trainer(FedMF(k=2), SecAggSum(), rounds=10).fit(ratings)
for user, person in enumerate(ratings.user_ids):
    found, stars = model.recommend(user, k=2)
    films = ratings.item_ids[found]
    print(f"{person}:", *(f"{film} {s:.1f}" for film, s in zip(films, stars, strict=True)))
