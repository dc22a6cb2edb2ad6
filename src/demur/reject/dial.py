"""`RejectClassifier`: one dial on any method, and what can be promised for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from demur._parameters import check_whole
from demur.base import Judgement, read_like
from demur.candidates import CandidateSets
from demur.reject.certificate import (
    Tests,
    fixed_sequence,
    gold_worth_drawing,
    least_gold,
)
from demur.reject.coverage import LARGE_STEP, Cut, cut_for_coverage
from demur.reject.dial_settings import DIALS, turned_dial
from demur.reject.gold import Prints, Seen, gold_columns
from demur.reject.planning import Plan, draw_rows, make_plan
from demur.reject.promise import Promise
from demur.reject.risk_estimate import (
    MIN_GOLD,
    error_estimates,
    recalibrate,
    threshold_for_cost,
)
from demur.reject.scores import Fresh, draws, fingerprints, judge, learner_of, out_of_fold
from demur.reject.words import (
    say_certificate,
    say_conditional,
    say_cost,
    say_coverage,
    say_uncertified,
)

DECLARED = (*DIALS, "confidence", "ambiguity", "ties", "attempts")
FRESH = (
    "a certificate needs instances that the model has never seen, neither label nor candidate set."
)


class RejectClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Any classifier with a reject option that is set by one dial.

    Turn exactly one of ``coverage``, ``cost`` and ``max_risk``. ``promise_`` says what is
    promised for it and what that rests on.

    Parameters
    ----------
    estimator : classifier
        A method of demur, a scikit-learn classifier, or a pipeline or search that ends in
        one. It is cloned, and the clone trained. A fitted one is passed as
        ``sklearn.frozen.FrozenEstimator(model)``; what ``fit`` gets must then be instances
        that it has not learned from.
    coverage : float, optional
        Accept this share, over 0 and at most 1.
    cost : float, optional
        A rejection costs this where an error costs 1; minimise error + cost x rejected.
    max_risk : float, optional
        Largest error among the accepted predictions, certified by gold labels
        (`plan`, `certify`), or bounded under a declared ``ambiguity``.
    confidence : float, default=0.95
        Of the certificate: with this chance over the draw of the gold labels it is true.
    ambiguity : float, optional
        In place of gold labels, with ``max_risk``: the declared chance that a wrong accepted
        prediction lies inside its candidate set. It cannot be learned from candidate sets.
    labels : {"majority", "first", "expand"} or callable, default="majority"
        How a scikit-learn classifier gets labels from candidate sets; see
        `demur.reject.LabelClassifier`. Other estimators do not need it.
    cv : int or splitter, default=5
        Folds by which training instances are judged by models that have not seen them. A
        method that can leave out one instance at a time does that instead.
    ties : {"drawn", "whole"}, default="drawn"
        For ``coverage``: which of the scores that equal the threshold are accepted. "drawn"
        decides each by chance, the same for the same instance and seed, and keeps the
        coverage; "whole" takes or leaves all, whichever comes nearer.
    attempts : int, default=1
        How many times gold labels may be drawn and tested; each has an equal share of
        1 - confidence. To be declared beforehand.
    random_state : int, RandomState or None, default=None
        Folds, ties, and which rows a plan draws.

    Attributes
    ----------
    estimator_ : estimator
        The trained one, which predicts.
    classes_ : ndarray of shape (n_classes,)
    accept_threshold_ : float
        Scores over it are accepted; infinity while nothing can be.
    promise_ : Promise
        Prints what is promised, and what it rests on.
    out_of_fold_ : Fresh
        The training instances as judged by models that have not seen them.
    attempts_made_ : int
    plan_ : Plan
        The latest plan. Set by `plan`.
    tests_ : Tests
        Those of the certificate. Set by `certify`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from demur import DstPll, RejectClassifier
    >>> from demur.noise import class_dependent_noise
    >>> X, y = load_digits(return_X_y=True)
    >>> S = class_dependent_noise(y[:1000], share=0.7, random_state=0)
    >>> model = RejectClassifier(DstPll(random_state=0), cost=0.1, random_state=0)
    >>> decided = model.fit(X[:1000], S).decide(X[1000:])
    >>> bool((decided == y[1000:]).mean() > 0.95), bool(decided.count() > 600)
    (True, True)
    >>> print(model.promise_)  # doctest: +ELLIPSIS
    cost: least estimated error + 0.1 x rejected; nothing is guaranteed
      ...
    """

    classes_: NDArray[Any]
    accept_threshold_: float
    promise_: Promise

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float | None = None,
        cost: float | None = None,
        max_risk: float | None = None,
        confidence: float = 0.95,
        ambiguity: float | None = None,
        labels: str | Callable[[Any, CandidateSets], Any] = "majority",
        cv: Any = 5,
        ties: str = "drawn",
        attempts: int = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.cost = cost
        self.max_risk = max_risk
        self.confidence = confidence
        self.ambiguity = ambiguity
        self.labels = labels
        self.cv = cv
        self.ties = ties
        self.attempts = attempts
        self.random_state = random_state

    # ------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, ids: Any = None) -> Self:
        """Train the estimator, and set the threshold by instances that were held out.

        Parameters
        ----------
        X : array-like of n rows
        y : anything that `CandidateSets` reads, with n rows
            The candidates. A frozen estimator needs none for ``coverage`` and ``max_risk``.
        groups : array-like of shape (n,), optional
            Instances of one group, such as the frames of one recording, depend on each
            other; they are held out together.
        ids : array-like of shape (n,), optional
            Names of the instances, by which `certify` tells gold that was used here.
            Without it instances are told by their features.

        Returns
        -------
        self
        """
        dial = turned_dial(**{name: getattr(self, name) for name in DECLARED})
        seed = self._check_not_tested()
        (X,) = indexable(X)  # else rows of some containers could not be taken
        if isinstance(self.estimator, FrozenEstimator):
            held_out = self._judge_frozen(dial, X, y)
            # Those without candidates only lend their features, and may be verified later.
            seen = Seen.of(X, ids=ids, groups=groups, learned=y is not None)
            return self._start(dial, seed, self.estimator, held_out, seen, fresh=True)
        if y is None:
            raise ValueError(
                "RejectClassifier requires y to be passed, but the target y is None: candidate "
                "sets are what it learns from."
            )
        sets = y if isinstance(y, CandidateSets) else CandidateSets(y)
        if _num_samples(X) != len(sets):
            raise ValueError(
                f"X has {_num_samples(X)} rows but there are {len(sets)} candidate sets; "
                "each instance needs one set."
            )
        seen = Seen.of(X, ids=ids, groups=groups, learned=True)
        learner = learner_of(self.estimator, self.labels)
        model = clone(learner).fit(X, sets)
        held_out = out_of_fold(learner, model, X, sets, cv=self.cv, groups=groups, seed=seed)
        self.classes_ = sets.classes
        return self._start(dial, seed, model, held_out, seen, fresh=False)

    def adopt(self, held_out: Fresh | None, X: Any, *, groups: Any = None, ids: Any = None) -> Self:
        """Set the dial on a frozen estimator whose held-out judgements are known already.

        Parameters
        ----------
        held_out : Fresh or None
            The training instances as judged by models that have not seen them, such as
            ``out_of_fold_`` of another dial, or what `demur.reject.scores.out_of_fold` gives.
            None where all is planned already and only `certify` with that plan is to follow.
        X : array-like of n rows
            Those training instances, so that gold among them is refused.
        groups, ids : array-like of shape (n,), optional
            As in `fit`.
        """
        dial = turned_dial(**{name: getattr(self, name) for name in DECLARED})
        seed = self._check_not_tested()
        if not isinstance(self.estimator, FrozenEstimator):
            raise ValueError(
                "adopt() is for a trained estimator: RejectClassifier(FrozenEstimator(model), ...)."
            )
        if held_out is None and (dial != "max_risk" or self.ambiguity is not None):
            raise ValueError("held_out may be None only for max_risk with gold labels.")
        if held_out is not None and _num_samples(X) != len(held_out.top):
            raise ValueError(f"X has {_num_samples(X)} rows, and {len(held_out.top)} are judged.")
        self.classes_, _ = judge(self.estimator, _safe_indexing(X, np.arange(1)))
        if held_out is not None and held_out.proba.shape[1] != len(self.classes_):
            raise ValueError(
                f"the judgements are of {held_out.proba.shape[1]} classes, and the estimator knows "
                f"{len(self.classes_)}."
            )
        seen = Seen.of(X, ids=ids, groups=groups, learned=True)
        return self._start(dial, seed, self.estimator, held_out, seen, fresh=False)

    def _judge_frozen(self, dial: str, X: Any, y: Any) -> Fresh:
        self.classes_, judged = judge(self.estimator, X)
        held = None
        if y is not None:
            sets = CandidateSets(read_like(self.classes_, y), classes=self.classes_)
            if len(sets) != len(judged.top):
                raise ValueError(
                    f"X has {len(judged.top)} rows but there are {len(sets)} candidate sets; "
                    "each instance needs one set."
                )
            held = sets.to_indicator()
        elif dial == "cost" or self.ambiguity is not None:
            raise ValueError(f"{dial} is set by candidate sets; give y, the candidates of X.")
        return Fresh(judged.accept, judged.top, judged.proba, held)

    def _start(
        self, dial: str, seed: int, model: Any, held_out: Fresh | None, seen: Seen, *, fresh: bool
    ) -> Self:
        """Take over a trained model, and set its threshold."""
        for name in ("plan_", "tests_", "out_of_fold_", "_estimates"):
            self.__dict__.pop(name, None)
        self.estimator_ = model
        self._seed, self._seen, self._fresh = seed, seen, fresh
        self._declared = {name: getattr(self, name) for name in DECLARED}
        if held_out is not None:
            self.out_of_fold_, self._estimates = held_out, error_estimates(held_out)
        self._cut: Cut | None = None
        self._n_recalibrated = 0
        self._tested: list[Seen] = []
        self._set_threshold(dial)
        return self

    @property
    def attempts_made_(self) -> int:
        """How many times gold labels have been tested."""
        check_is_fitted(self)
        return len(self._tested)

    def _check_not_tested(self) -> int:
        """Refuse to fit again after a test; else the seed of what is drawn."""
        if getattr(self, "_tested", None):
            raise ValueError(
                "this model has been tested with gold labels, so it is not fitted again: the "
                "certificate is for the model as it was. Use sklearn.base.clone(model), fit that, "
                "and draw new gold labels."
            )
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_declared(self) -> None:
        """Refuse a dial that was turned after `fit`."""
        check_is_fitted(self)
        for name, value in self._declared.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value} in fit and is {getattr(self, name)} now; what is promised "
                    "is what was declared before. Set it back, or fit sklearn.base.clone(model)."
                )

    def _set_threshold(self, dial: str) -> None:
        if dial == "coverage":
            self._cut_at(self.out_of_fold_.accept, fresh=self._fresh, stacklevel=5)
        elif dial == "cost":
            self.accept_threshold_ = threshold_for_cost(
                self.out_of_fold_.accept, self._estimates, float(self.cost or 0.0)
            )
            self._say_cost()
        elif self.ambiguity is not None:
            self._bound_by_ambiguity()
        else:
            self.accept_threshold_ = np.inf
            self.promise_ = say_uncertified(float(self.max_risk or 0.0), self.confidence)

    # ------------------------------------------------------------------------- coverage

    def calibrate(self, X: Any, *, ids: Any = None) -> Self:
        """Set the threshold of the coverage dial by an unlabelled batch.

        The batch should be of the instances that the model will meet, and none that it has
        learned from. Then the expected coverage is within 1/(n + 1) of the one asked for.

        Parameters
        ----------
        X : array-like of n rows
        ids : array-like of shape (n,), optional
            Names of the instances, where `fit` was given names.
        """
        self._check_declared()
        if self.coverage is None:
            raise ValueError("calibrate(X) sets a coverage; this model's dial is another.")
        if _num_samples(X) == 0:
            raise ValueError("X is empty; a batch to calibrate by needs at least one instance.")
        self._seen.refuse(
            fingerprints(X),
            ids=ids,
            what="batch",
            where="calibrate",
            why="their scores are higher than those of new instances.",
        )
        self._cut_at(judge(self.estimator_, X)[1].accept, fresh=True, stacklevel=4)
        return self

    def _cut_at(self, scores: NDArray[np.float64], *, fresh: bool, stacklevel: int) -> None:
        assert self.coverage is not None
        cut = cut_for_coverage(scores, self.coverage, ties=self.ties)
        if cut.step > LARGE_STEP:
            what = (
                "which of them are accepted is drawn by chance"
                if self.ties == "drawn"
                else f"they are taken or left as a whole, so that {cut.expected:.1%} is accepted"
            )
            warnings.warn(
                f"{cut.step:.1%} of the accept scores equal the threshold {cut.threshold:.6g} "
                f"for coverage {self.coverage:.3g}; {what}.",
                UserWarning,
                stacklevel=stacklevel,
            )
        self._cut = cut if cut.tied_share > 0 else None
        self.accept_threshold_ = cut.threshold
        self.promise_ = say_coverage(self.coverage, cut, len(scores), self.ties, fresh=fresh)

    # ------------------------------------------------------------------------- cost

    def recalibrate(self, rows: Any, y_gold: Any) -> Self:
        """Correct the estimated errors of the cost dial by verified training instances.

        Parameters
        ----------
        rows : array-like of int, shape (n_gold,)
            Rows of the X that was given to `fit`, drawn at random; 50 or more.
        y_gold : array-like of shape (n_gold,)
            Their true labels.
        """
        self._check_declared()
        if self.cost is None:
            raise ValueError("recalibrate() is for the cost dial; this model's dial is another.")
        places = np.asarray(rows)
        n = len(self.out_of_fold_.top)
        if places.ndim != 1 or places.dtype.kind not in "iu":
            raise ValueError("rows must be whole numbers, the rows of X as given to fit.")
        if len(places) < MIN_GOLD:
            raise ValueError(
                f"{len(places)} gold labels are too few to correct by; at least {MIN_GOLD}."
            )
        if len(np.unique(places)) < len(places) or places.min() < 0 or places.max() >= n:
            raise ValueError(f"rows must be different rows of the {n} training instances.")
        truth = gold_columns(y_gold, self.classes_, len(places))
        wrong = self.out_of_fold_.top[places] != truth
        original = error_estimates(self.out_of_fold_)
        self._estimates = recalibrate(original, places.astype(np.intp), wrong)
        self._n_recalibrated = len(places)
        self._set_threshold("cost")
        return self

    def _say_cost(self) -> None:
        kept = self.out_of_fold_.accept > self.accept_threshold_
        self.promise_ = say_cost(
            float(self.cost or 0.0),
            self.accept_threshold_,
            kept,
            self._estimates,
            self.out_of_fold_.outside,
            self._n_recalibrated,
        )

    # ------------------------------------------------------------------------- certificate

    def plan(
        self, X: Any = None, n_gold: int = 100, *, groups: Any = None, ids: Any = None
    ) -> Plan:
        """Say what to verify for a certificate, where to start, and what to expect.

        Parameters
        ----------
        X : array-like of m rows, optional
            Unlabelled instances that the gold will be drawn from, like those that the model
            will meet. With it the plan tells the rows to verify.
        n_gold : int, default=100
            How many labels can be had.
        groups : array-like of shape (m,), optional
            Groups of X; at most one instance of each is drawn, and none of a group that was
            trained on.
        ids : array-like of shape (m,), optional
            Names of the instances, where `fit` was given names.

        Returns
        -------
        plan : Plan
            Kept as ``plan_`` for `certify`.
        """
        self._check_certifiable("plan")
        check_whole("n_gold", n_gold, 1)
        self.__dict__.pop("plan_", None)  # a plan that fails leaves no older one behind
        if X is None:
            self.plan_ = self._make_plan(n_gold)
            return self.plan_
        if self._seen.groups is not None and groups is None:
            raise ValueError("the model was fitted with groups; give groups= of X too.")
        prints = fingerprints(X)
        known = {"ids": ids, "groups": groups}
        self._seen.refuse(prints, ids=ids, what="batch", where="plan", why=FRESH)
        drawable = np.ones(len(prints), dtype=bool)
        for seen in [*([] if groups is None else [self._seen]), *self._tested]:
            drawable &= ~seen.holds(prints, **known)
        scores = judge(self.estimator_, X)[1].accept
        units = np.flatnonzero(drawable) if groups is None else np.asarray(groups)[drawable]
        made = self._make_plan(n_gold, scores, len(np.unique(units)))
        rng = np.random.default_rng([self._seed, self.attempts_made_])
        rows = draw_rows(scores, made, rng, groups, drawable)
        self.plan_ = replace(made, rows=rows, prints=prints[rows])
        return self.plan_

    def _make_plan(
        self,
        n_gold: int,
        batch: NDArray[np.float64] | None = None,
        n_drawable: int | None = None,
        *,
        whole: bool = False,
    ) -> Plan:
        assert self.max_risk is not None
        if not hasattr(self, "out_of_fold_"):
            raise ValueError(
                "nothing is known of the training instances to plan by; give held_out in adopt, "
                "or plan= in certify."
            )
        return make_plan(
            self.out_of_fold_.accept,
            self._estimates,
            max_risk=self.max_risk,
            confidence=self._confidence_of_one,
            n_gold=n_gold,
            batch=batch,
            n_drawable=n_drawable,
            whole=whole,
            seed=self._seed,
        )

    @property
    def _confidence_of_one(self) -> float:
        """Of one attempt, so that all together keep the confidence."""
        return self.confidence if self.attempts == 1 else 1 - (1 - self.confidence) / self.attempts

    def _check_certifiable(self, what: str) -> None:
        self._check_declared()
        if self.max_risk is None or self.ambiguity is not None:
            dial = "ambiguity is declared" if self.ambiguity is not None else "no max_risk is set"
            raise ValueError(f"{what}() is for max_risk with gold labels, but {dial}.")

    def certify(
        self,
        X_gold: Any,
        y_gold: Any,
        *,
        groups: Any = None,
        ids: Any = None,
        plan: Plan | None = None,
    ) -> Self:
        """Test thresholds with gold labels, and accept by the loosest that passes.

        Parameters
        ----------
        X_gold : array-like of n rows
            Drawn at random, from the region of the plan if there is one, and never seen in
            training: neither label nor candidate set.
        y_gold : array-like of shape (n,)
            Their true labels.
        groups : array-like of shape (n,), optional
            At most one gold instance of a group, and no group that was trained on.
        ids : array-like of shape (n,), optional
            Names of the instances, where `fit` was given names.
        plan : Plan, optional
            Made before any of these labels was seen, such as one that was kept in a file. By
            default ``plan_``; without that the tests are planned now, by the training
            instances, for gold that was drawn among all instances.
        """
        self._check_certifiable("certify")
        assert self.max_risk is not None
        if self.attempts_made_ >= self.attempts:
            raise ValueError(
                f"this model has been tested {self.attempts_made_} time(s) with gold labels, and "
                f"attempts={self.attempts}; to draw again until a test passes would make the "
                "certificate worthless. Declare attempts= beforehand: each gets an equal share of "
                "1 - confidence."
            )
        n = _num_samples(X_gold)
        truth = gold_columns(y_gold, self.classes_, n)
        confidence = self._confidence_of_one
        least = least_gold(self.max_risk, confidence)
        if n < least:
            raise ValueError(
                f"{n} gold labels are too few: an error of at most {self.max_risk:.3g} with "
                f"{confidence:.3g} confidence needs {least} accepted ones without a single error. "
                "Nothing was tested."
            )
        prints = fingerprints(X_gold)
        if plan is None:
            plan = self.plan_ if hasattr(self, "plan_") else self._make_plan(n, whole=True)
        elif (plan.max_risk, plan.confidence) != (self.max_risk, confidence):
            raise ValueError(
                f"the plan is for an error of at most {plan.max_risk:.3g} with "
                f"{plan.confidence:.3g} confidence, and not for {self.max_risk:.3g} with "
                f"{confidence:.3g}; plan anew."
            )
        self._refuse_gold(prints, groups, ids, plan)
        if n < plan.n_gold and plan.prints is not None:
            warnings.warn(
                f"{plan.n_gold} rows were to be verified, but {n} are given. The certificate holds "
                "only if which ones are missing has nothing to do with whether the prediction is "
                "right.",
                UserWarning,
                stacklevel=2,
            )
        _, judged = judge(self.estimator_, X_gold)
        self.tests_ = fixed_sequence(
            judged.accept,
            judged.top != truth,
            plan.thresholds,
            max_risk=self.max_risk,
            confidence=confidence,
        )
        self._tested.append(self._seen.tested(prints, ids=ids, groups=groups))
        self.plan_ = plan
        self.accept_threshold_ = self.tests_.threshold
        worth = None if self.tests_.passed else self._worth(self.tests_, plan)
        self.promise_ = say_certificate(plan, self.tests_, self.confidence, worth)
        return self

    def _refuse_gold(self, prints: Prints, groups: Any, ids: Any, plan: Plan) -> None:
        for seen in [self._seen, *self._tested]:
            seen.refuse_groups(groups, len(prints))
            seen.refuse(prints, ids=ids, what="gold", where="certify", why=FRESH)
        self._seen.refuse_twice(prints, ids=ids)
        if plan.prints is not None:
            others = np.flatnonzero(~np.isin(prints, plan.prints))
            if len(others):
                raise ValueError(
                    f"gold row {others[0]} ({len(others)} such row(s)) is not among the "
                    f"{len(plan.prints)} that the plan drew; the certificate is for rows drawn "
                    "at random. Give X[plan.rows], or plan without X if you drew them yourself."
                )

    def _worth(self, tests: Tests, plan: Plan) -> tuple[int, float] | None:
        """Fewest gold labels that would probably pass, and at which coverage."""
        assert self.max_risk is not None
        options = []
        for i, (accepted, errors) in enumerate(zip(tests.accepted, tests.errors, strict=True)):
            needed = gold_worth_drawing(
                (errors + 0.5) / (accepted + 1), self.max_risk, plan.confidence
            )
            if needed is not None and accepted:
                in_region = int(np.ceil(needed * tests.accepted[-1] / accepted))
                options.append((in_region, float(plan.coverages[i])))
        return min(options) if options else None

    def _bound_by_ambiguity(self) -> None:
        assert self.max_risk is not None
        assert self.ambiguity is not None
        known = self.out_of_fold_
        limit = self.max_risk * (1.0 - self.ambiguity)
        least = least_gold(limit, self.confidence, errors=2)
        ranked = np.sort(known.accept)[::-1]
        places = np.arange(least, len(ranked), max(1, len(ranked) // 50))
        thresholds = np.unique(np.append(ranked[places], -np.inf))[::-1]
        self.tests_ = fixed_sequence(
            known.accept, known.outside, thresholds, max_risk=limit, confidence=self.confidence
        )
        self.accept_threshold_ = self.tests_.threshold
        self.promise_ = say_conditional(
            self.max_risk, self.confidence, self.ambiguity, self.tests_, len(ranked)
        )

    # ------------------------------------------------------------------------- judging

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "promise_")

    @property
    def transduction_(self) -> NDArray[Any]:
        """Labels that the estimator gave to the training instances, if it gives such."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.transduction_)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by the estimator."""
        return int(self.estimator_.n_features_in_)

    def judge(self, X: Any) -> Judgement:
        """Predictions, probabilities and accept scores in one pass.

        A score that equals the threshold of the coverage dial, and is drawn to be accepted,
        is raised by its last bit, so that accepted is what is over the threshold.
        """
        check_is_fitted(self)
        _, judged = judge(self.estimator_, X)
        if self._cut is None:
            return judged
        tied = np.flatnonzero(judged.accept == self._cut.threshold)
        if not len(tied):
            return judged
        lucky = self._drawn(_safe_indexing(*indexable(X), tied))
        accept = judged.accept.copy()
        accept[tied[lucky]] = np.nextafter(self._cut.threshold, np.inf)
        return judged._replace(accept=accept)

    def _drawn(self, tied: Any) -> NDArray[np.bool_]:
        """Which of the instances whose score equals the threshold are accepted."""
        assert self._cut is not None
        return draws(fingerprints(tied), self._seed) < self._cut.tied_share

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict a label for every instance, however unsure."""
        top = self.judge(X).top
        return np.asarray(self.classes_[top])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Scores per label, in the order of ``classes_``; rows sum to 1."""
        return self.judge(X).proba

    def accept_score(self, X: Any) -> NDArray[np.float64]:
        """How safe each prediction is; higher is safer."""
        return self.judge(X).accept

    def decide(self, X: Any, threshold: float | None = None) -> np.ma.MaskedArray[Any, Any]:
        """Predict, but demur where the dial does not let the prediction pass.

        Parameters
        ----------
        X : array-like of n rows
        threshold : float, optional
            In place of the dial's, which promises nothing then.
        """
        judged = self.judge(X)
        limit = self.accept_threshold_ if threshold is None else float(threshold)
        if np.isnan(limit):
            raise ValueError("threshold is NaN; give a number, or None for the dial's.")
        return np.ma.MaskedArray(self.classes_[judged.top], mask=~(judged.accept > limit))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of predictions, accepted or not, that lie inside the candidate set."""
        inside = read_like(self.classes_, y).contains(self.predict(X))
        return float(np.average(inside, weights=sample_weight))
