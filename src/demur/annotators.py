"""How far each annotator can be believed, found out from the answers alone.

Dawid and Skene's model (1979): each annotator has a table of how often which answer is given
for which true label, and each item has probabilities of its labels; one follows from the other,
in turns. With a few answers an annotator the tables are little more than chance, so each is
drawn towards that of all annotators together, as if one answer more had been given by it.

References
----------
A. P. Dawid and A. M. Skene. Maximum likelihood estimation of observer error-rates using the EM
algorithm. Applied Statistics, 28(1), 1979.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

N_ROUNDS = 50
UNSEEN = 0.1  # an answer that nobody gave yet is not impossible


def label_probabilities(
    items: NDArray[np.intp],
    workers: NDArray[np.intp],
    labels: NDArray[np.intp],
    n_items: int,
    n_classes: int,
    *,
    n_rounds: int = N_ROUNDS,
) -> NDArray[np.float64]:
    """Probability of each label of each item, by who gave which answers.

    Parameters
    ----------
    items, workers, labels : ndarray of shape (n_answers,)
        Numbers, counted from 0; every item has an answer.
    n_items, n_classes : int
    n_rounds : int
        The first starts from the shares of the votes.

    Returns
    -------
    ndarray of shape (n_items, n_classes)

    Examples
    --------
    Ann and Bob agree on items 0 to 2 and Cy, who differs from them there, alone says
    otherwise of item 3.

    >>> import numpy as np
    >>> from demur.annotators import label_probabilities
    >>> items = np.repeat([0, 1, 2, 3], [3, 3, 3, 2])
    >>> workers = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2])
    >>> labels = np.array([0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1])
    >>> label_probabilities(items, workers, labels, 4, 2)[3].argmax()
    np.int64(0)
    """
    pairs, pair = np.unique(workers * n_classes + labels, return_inverse=True)
    who, said = pairs // n_classes, pairs % n_classes

    def answers_of(groups: NDArray[np.intp], n_groups: int) -> sp.csr_array:
        ones = np.ones(len(items))
        return sp.csr_array((ones, (groups, items)), shape=(n_groups, n_items))

    by_pair = answers_of(pair, len(pairs))
    by_worker = answers_of(workers, int(workers.max()) + 1)
    by_label = answers_of(labels, n_classes)
    q = np.asarray(by_label.T.toarray(), dtype=np.float64)
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(n_rounds):
        common = by_label @ q + UNSEEN  # answer x truth
        common /= common.sum(axis=0)
        mistakes = (by_pair @ q + common[said]) / ((by_worker @ q)[who] + 1.0)
        share = (q.sum(axis=0) + UNSEEN) / (n_items + UNSEEN * n_classes)
        log_q = by_pair.T @ np.log(mistakes) + np.log(share)
        q = np.exp(log_q - log_q.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q
