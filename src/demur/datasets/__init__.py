"""Named datasets: where from, checksum, licence, class filter; and files of your own."""

from demur.datasets.dataset import CLASS_FILTERS, Dataset
from demur.datasets.download import download
from demur.datasets.files import find, locate, places, user_folder
from demur.datasets.loading import load
from demur.datasets.registry import Entry, File, entry, registry

__all__ = [
    "CLASS_FILTERS",
    "Dataset",
    "Entry",
    "File",
    "download",
    "entry",
    "find",
    "load",
    "locate",
    "places",
    "registry",
    "user_folder",
]
