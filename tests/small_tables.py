"""Small tables as files, for the tests of files and of the commands on them."""

import csv

LABELS = ("ant", "bee", "cat")
FEATURES = ("f1", "f2", "f3")


def write_csv(path, header, rows, delimiter=","):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
