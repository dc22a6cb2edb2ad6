"""`demur explain`, `demur evaluate` and `demur audit` print what the library says."""

from demur import files


def test_explain(demur, fitted):
    done = demur("explain", "m.demur", "test.csv", "--row", "3")
    assert done.code == 0
    assert done.out.decode() == files.explain("m.demur", "test.csv", 3) + "\n"
    assert demur("explain", "m.demur", "test.csv", "--id", "r82").out == done.out


def test_evaluate(demur, fitted):
    done = demur("evaluate", "m.demur", "test.csv", "--truth", "label", "--plot", "curve.png")
    assert done.code == 0
    assert done.out.decode().endswith("wrote curve.png\n")
    assert (fitted / "curve.png").stat().st_size > 1000
    expected = str(files.evaluate("m.demur", "test.csv", "label"))
    assert done.out.decode().startswith(expected)


def test_audit(demur, fitted):
    done = demur("audit", "train.csv", "--candidates", "labels", "--features", "f1:f3")
    assert done.code == 0
    found = files.audit("train.csv", wanted=files.Wanted(candidates="labels"), features="f1:f3")
    assert done.out.decode() == f"{found}\n"
    piped = demur("audit", "-", "--candidates", "labels", stdin=(fitted / "train.csv").read_bytes())
    assert piped.out.decode().startswith("standard input: 80 usable rows")
