"""Named datasets: where from, checksum, licence, class filter; and files of your own."""

from demur.datasets.dataset import CLASS_FILTERS, Dataset
from demur.datasets.loading import load
from demur.datasets.registry import Entry, File, registry

__all__ = ["CLASS_FILTERS", "Dataset", "Entry", "File", "load", "registry"]
