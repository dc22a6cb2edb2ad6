"""What a user meets before any method: imports, names, notices."""

import subprocess
import sys
import textwrap

import pytest

import demur


def run(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )


def test_public_names_are_there_and_heavy_ones_are_not_loaded():
    for name in demur.__all__:
        assert getattr(demur, name).__name__ == name
        assert name in dir(demur)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = demur.Nothing
    run(
        """
        import sys
        import demur
        from demur import CandidateSets, DstPll, PlKnn, TradeOffDisplay
        import demur.methods, demur.metrics
        assert not {"torch", "matplotlib"} & set(sys.modules)
        """
    )


def test_compiling_is_announced_once_and_only_where_it_happens(tmp_path):
    code = """
        from demur import DstPll
        model = DstPll(n_neighbors=2).fit([[0.0], [1.0], [2.0]], [[0], [0, 1], [1]])
        model.predict([[0.5]])
        model.transduction_
        """
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count("demur compiles its kernels on first use") == 1
    second = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiles" not in second.stderr


def test_threads_are_counted_as_joblib_does(monkeypatch):
    from demur import _kernels

    monkeypatch.setattr(_kernels.numba.config, "NUMBA_NUM_THREADS", 3)
    assert _kernels.n_threads(None) == 3
    assert _kernels.n_threads(5) == 5
    with pytest.raises(ValueError, match="n_jobs is 0"):
        _kernels.n_threads(0)


def test_an_error_in_a_thread_is_raised_not_lost():
    from demur._kernels import in_ranges

    def work(start, stop):
        if start >= 8:
            raise RuntimeError(f"in {start} to {stop}")

    with pytest.raises(RuntimeError, match="in 8 to 10"):
        in_ranges(work, 10, 2, range_size=8)
    seen = []
    in_ranges(lambda start, stop: seen.extend(range(start, stop)), 100, 3, range_size=7)
    assert sorted(seen) == list(range(100))
