"""The report: what the page says, that nothing in it can run or leave, and what a browser shows."""

import base64
import hashlib
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from demur.bench.curves import trade_off_curves
from demur.bench.measures import measure_runs
from demur.bench.report import make_page, write_report
from demur.bench.spec import Spec
from demur.bench.statistics import average_ranks
from demur.bench.store import read_results, write_run
from demur.bench.tables import make_tables
from demur.cli import app
from sample_folder import EVIL, EVIL_ERROR, METHODS, SETTINGS, write_results

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("sample results"))


@pytest.fixture(scope="module")
def results(folder):
    return read_results(folder)


@pytest.fixture(scope="module")
def curves(results):
    return trade_off_curves(results)


@pytest.fixture(scope="module")
def path(folder):
    return write_report(folder)


class Page(HTMLParser):
    """The elements of a page, and the text in them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.text, self._within = [], [], []
        self.blocks = {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._within.append(tag)
        if tag in self.blocks:
            self.blocks[tag].append("")

    def handle_endtag(self, tag):
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, text):
        if self._within and self._within[-1] in self.blocks:
            self.blocks[self._within[-1]][-1] += text
        else:
            self.text.append(text)

    @property
    def data(self):
        return json.loads(self.blocks["script"][0])


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------- what it says


def test_curves_in_the_page_are_the_curves_of_the_results(page, curves):
    data = page.data
    assert [m["name"] for m in data["methods"]] == list(METHODS)
    assert [(s["dataset"], s["noise"]) for s in data["settings"]] == sorted(SETTINGS)
    shown = [(s, c) for s in data["settings"] for c in s["curves"]]
    assert len(shown) == len(curves)
    for (setting, told), curve in zip(shown, curves, strict=True):
        assert (setting["dataset"], setting["noise"]) == curve.setting[::2]
        assert data["methods"][told["method"]]["name"] == curve.method
        assert told["runs"] == curve.n_runs
        assert told["end"] == pytest.approx(curve.rejected[-1], abs=1e-5)
        np.testing.assert_allclose(told["accuracy"], curve.accuracy, atol=1e-5)
        point = [np.nan if value is None else value for value in told["point"]]
        np.testing.assert_allclose(point, curve.operating_point, atol=1e-5)
        assert told["aurc"] == pytest.approx(curve.aurc, abs=1e-6)


def test_ranks_in_the_page(page, results):
    measures = measure_runs(results, reference="dst-pll")
    found = next(r for r in page.data["ranks"] if r["name"] == "AURC")
    wide = measures.pivot_table(
        index=["dataset", "noise", "seed"], columns="method", values="aurc"
    ).dropna()
    ranks = average_ranks(wide.groupby(["dataset", "noise"]).mean()[list(METHODS)], better="lower")
    np.testing.assert_allclose(found["average"], ranks.average, atol=1e-5)
    assert found["critical"] == pytest.approx(ranks.critical_difference, abs=1e-5)
    assert found["settings"] == 3
    assert found["methods"] == [0, 1, 2]


def test_every_table_is_there_with_its_numbers(path, results):
    text = path.read_text(encoding="utf-8")
    tables = make_tables(results)
    assert len(tables) >= 6
    for table in tables:
        head = text.index(f"<h3>{table.title}</h3>")
        part = text[head : text.index("</table>", head)]
        rows = dict(re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', part))
        assert list(rows) == list(table.methods)
        for method, row in rows.items():
            means = re.findall(r'<td class="mean( best)?(?: end)?">(.*?)</td>', row)
            cells = [table.cells.get((method, column)) for column in table.columns]
            for (best, mean), cell, column in zip(means, cells, table.columns, strict=True):
                assert mean == ("–" if cell is None else f"{cell.mean:.{column.decimals}f}")
                assert bool(best) == bool(cell and cell.among_best)
        for note in table.notes:
            assert note in unescape(text)


def test_what_was_run_and_on_what(page, path):
    words = " ".join(page.text)
    for told in ("A processor, 2 cores, Linux", "demur 0.1.0", "numpy 2.4.6", "cpu", "1.70"):
        assert told in words
    assert "2026-03-01 10:00:00 UTC to 2026-03-02 10:00:00 UTC" in words
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'<div class="tile card.*?"><b>(.*?)</b><span>(.*?)</span>', text)
    tiles = {what: number for number, what in found}
    assert tiles["runs"] == "18"
    assert tiles["settings"] == "3"
    assert tiles["methods"] == "3"
    assert tiles["seeds"] == "2"
    assert tiles["failed"] == "1"
    # 9 runs of seed 0 take 1.51 s, 8 of seed 1 take 2.51 s, and the failed one 0.1 s.
    assert tiles["computing"] == "33.8 s"


def test_seconds_of_each_method(path):
    text = path.read_text(encoding="utf-8")
    part = text[text.index('<section id="time">') :].partition("</section>")[0]
    rows = dict(re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', part))
    cells = re.findall(r"<td>([^<]*)</td>", rows["dst-pll"])
    assert cells == ["6", "10 ms", "1.5 s", "500 ms", "12.1 s", "200 MiB"]
    widths = [float(w) for w in re.findall(r'width="([\d.]+)"', rows["dst-pll"])]
    assert sum(widths) == pytest.approx(100, abs=0.05)  # it is one of the two longest
    failed = [float(w) for w in re.findall(r'width="([\d.]+)"', rows["cc"])]
    assert sum(failed) == pytest.approx(100 * (12.06 - 2.51 + 0.1) / 12.06, abs=0.05)


def test_failures_are_told_with_reason_and_traceback(path):
    text = unescape(path.read_text(encoding="utf-8"))
    part = text[text.index('<section id="failures">') :]
    assert f"1 run of cc failed: </b>{EVIL_ERROR}</summary>" in part
    assert f"<li>cc on {EVIL}, real, seed 1</li>" in part
    assert f"<pre>Traceback (most recent call last):\n{EVIL_ERROR}</pre>" in part


def test_runs_that_others_have_are_told(tmp_path):
    write_results(tmp_path, settings=[("toy", "uniform")], failed=False)
    next(p for p in (tmp_path / "runs").iterdir()).unlink()
    text = make_page(read_results(tmp_path), "x")
    assert re.search(r"1 run of [\w-]+ </b>not run, though others ran there", text)


def test_nothing_failed(tmp_path):
    write_results(tmp_path, settings=[("toy", "uniform")], failed=False)
    assert "None: every run of every method is there." in make_page(read_results(tmp_path), "x")


def test_all_failed(tmp_path):
    write_run(tmp_path, Spec("toy", "cc", "uniform", 0), {"error": "ValueError: no"}, None)
    page = Page(make_page(read_results(tmp_path), "x"))
    assert page.data["settings"] == []
    assert "ValueError: no" in page.text
    assert "Trade-off curves" not in page.text


def test_damaged_files_are_named(tmp_path):
    write_results(tmp_path, settings=[("toy", "uniform")], failed=False)
    (tmp_path / "runs" / "half.parquet").write_bytes(b"PAR1")
    with pytest.warns(UserWarning, match="left out"):
        results = read_results(tmp_path)
    assert "cannot be read, and are left out: half.parquet" in make_page(results, "x")


# ------------------------------------------------------------------ what it must never do


def test_names_in_files_are_text(page):
    text = "".join(page.text)
    assert EVIL in text
    assert EVIL_ERROR in text
    assert EVIL in [s["dataset"] for s in page.data["settings"]]
    assert "img" not in {tag for tag, _ in page.elements}
    assert len(page.blocks["script"]) == 2  # the data and our script


def test_a_folder_may_have_any_name(results):
    page = Page(make_page(results, EVIL))
    assert page.text.count(EVIL) >= 2  # title, heading
    assert len(page.blocks["script"]) == 2


def test_no_address_of_anything_else(page):
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "data", "poster"):
            address = attributes.get(name)
            assert address is None or address.startswith(("#", "data:")), (tag, address)
        assert "style" not in attributes  # the policy would not let it
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in page.blocks["style"][0]
    assert "@import" not in page.blocks["style"][0]


def test_the_policy_lets_our_script_and_style_run_and_nothing_else(page):
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    for kind, text in (("script", page.blocks["script"][1]), ("style", page.blocks["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


# ------------------------------------------------------------------------------ the command


def test_command(folder, tmp_path):
    out = tmp_path / "new" / "page.html"
    result = CliRunner().invoke(app, ["bench", "report", str(folder), "--out", str(out)])
    assert result.exit_code == 0
    assert str(out) in result.output.replace("\n", "")
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in out.parent.iterdir()] == ["page.html"]
    result = CliRunner().invoke(app, ["bench", "report", str(tmp_path)])
    assert result.exit_code == 2
    assert "holds no results" in result.output


# ------------------------------------------------------------------------------- in Chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One headless Chromium for all that follows."""
    if not BROWSER or not DRIVER:
        pytest.skip(
            "NOT TESTED IN A BROWSER: no Chromium with its driver is here; "
            "on Debian: apt-get install chromium chromium-driver"
        )
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def shown(browser, path):
    """The page, opened anew in a wide window."""
    browser.get_log("browser"), browser.get_log("performance")
    resize(browser, 1400)
    browser.get(path.as_uri())
    yield browser
    assert browser.get_log("browser") == []  # no error, no warning, no breach of the policy
    assert browser.execute_script("return window.hacked") is None
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    # Chromium asks itself for its own pages (chrome:), and ours has its icon inside (data:).
    asked = {url for url in asked if not url.startswith(("chrome:", "chrome-untrusted:", "data:"))}
    assert asked == {path.as_uri()}


def resize(browser, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def frames(browser, n):
    """Wait until the page has been drawn so often."""
    for _ in range(n):
        browser.execute_async_script("requestAnimationFrame(arguments[0])")


def select(browser, css):
    return browser.find_elements("css selector", css)


def chip(browser, kind, value):
    return next(
        b for b in select(browser, ".choice") if b.get_dom_attribute(f"data-{kind}") == value
    )


def titles(browser):
    return [node.text for node in select(browser, "#charts h3")]


def drawn_methods(browser):
    return {node.get_dom_attribute("data-method") for node in select(browser, "#charts path.curve")}


def point_at(browser, nth, share, method=None):
    """Move the pointer into a chart: to a share rejected, at the height of a method's curve."""
    from selenium.webdriver.common.action_chains import ActionChains

    svg = select(browser, "#charts svg")[nth]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    frames(browser, 2)
    where = browser.execute_script(
        """
        const [svg, share, method] = arguments;
        const axis = svg.querySelector(".axis > line:last-of-type");
        const [left, right] = ["x1", "x2"].map((name) => Number(axis.getAttribute(name)));
        const x = left + share * (right - left);
        const box = svg.getBoundingClientRect();
        let y = box.height / 2;
        if (method) {
          const path = [...svg.querySelectorAll(".curve")].find((p) => p.dataset.method === method);
          for (let s = 0; s <= path.getTotalLength(); s += 0.25) {
            const point = path.getPointAtLength(s);
            if (point.x >= x) { y = point.y; break; }
          }
        }
        return [x - box.width / 2, y - box.height / 2];
        """,
        svg,
        share,
        method,
    )
    ActionChains(browser, duration=0).move_to_element_with_offset(svg, *map(round, where)).perform()
    return svg


def tip_rows(browser):
    """Method and percentage in each row of the tooltip, from the top."""
    rows = select(browser, "#tip tr")
    return [(r.get_dom_attribute("data-method"), r.text.split()[-2]) for r in rows]


def test_it_shows_all_settings_and_methods(shown):
    assert titles(shown) == [f"{dataset}, {noise}" for dataset, noise in sorted(SETTINGS)]
    assert drawn_methods(shown) == set(METHODS)
    assert len(select(shown, "#charts path.curve")) == 9
    assert shown.title.startswith("sample results")
    assert "18" in select(shown, ".tile")[0].text
    assert not select(shown, "#tip")[0].is_displayed()
    assert len(select(shown, "#rank-charts svg")) == 4


def test_filters_make_lines_vanish_and_appear(shown):
    chip(shown, "method", "pl-knn").click()
    assert drawn_methods(shown) == {"dst-pll", "cc"}
    assert chip(shown, "method", "pl-knn").get_dom_attribute("aria-pressed") == "false"
    chip(shown, "dataset", EVIL).click()
    assert titles(shown) == ["toy, class-dependent", "toy, uniform"]
    chip(shown, "noise", "uniform").click()
    assert titles(shown) == ["toy, class-dependent"]
    assert select(shown, "#count")[0].text == "1 of 3 settings, 2 of 3 methods"
    assert len(select(shown, "#charts path.curve")) == 2
    wide = select(shown, "#charts svg")[0].size["width"]
    assert wide > 1200  # a single one is large
    chip(shown, "noise", "class-dependent").click()
    assert titles(shown) == []
    assert "Nothing is chosen" in select(shown, "#charts")[0].text
    for button in select(shown, "#filters .all"):
        if button.text == "all":
            button.click()
    assert len(select(shown, "#charts path.curve")) == 9
    assert select(shown, "#charts svg")[0].size["width"] < 500


def test_none_then_one(shown):
    buttons = {b.accessible_name: b for b in select(shown, "#filters .all")}
    buttons["none of Methods"].click()
    assert drawn_methods(shown) == set()
    chip(shown, "method", "cc").click()
    assert drawn_methods(shown) == {"cc"}


def test_a_title_shows_its_setting_alone_and_back(shown):
    select(shown, "#charts h3 button")[2].click()
    assert titles(shown) == ["toy, uniform"]
    select(shown, "#charts h3 button")[0].click()
    assert len(titles(shown)) == 3


@pytest.mark.parametrize(("nth", "share"), [(0, 0.0), (1, 0.4), (2, 0.71)])
def test_the_tooltip_tells_the_right_numbers(shown, curves, nth, share):
    setting = sorted({curve.setting for curve in curves})[nth]
    point_at(shown, nth, share)
    tip = select(shown, "#tip")[0]
    assert tip.is_displayed()
    told = float(tip.text.split()[0])
    assert told == pytest.approx(100 * share, abs=0.55)  # the nearest step of the curve
    expected = {}
    for curve in curves:
        if curve.setting == setting:
            step = np.abs(100 * curve.rejected - told).argmin()
            expected[curve.method] = 100 * curve.accuracy[step]
    rows = tip_rows(shown)
    assert {method: float(value) for method, value in rows} == pytest.approx(expected, abs=0.051)
    values = [float(value) for _, value in rows]
    assert values == sorted(values, reverse=True)


def test_the_nearest_curve_stands_out_and_tells_its_threshold(shown, curves):
    for method in ("dst-pll", "cc"):
        svg = point_at(shown, 2, 0.2, method)
        near = svg.find_elements("css selector", ".curve.near")
        assert [node.get_dom_attribute("data-method") for node in near] == [method]
        (curve,) = (c for c in curves if c.method == method and c.setting[2] == "uniform")
        rejected, accuracy = (100 * value for value in curve.operating_point)
        told = f"{method}: its own threshold rejects {rejected:.1f} %, accuracy {accuracy:.1f} %"
        assert told in select(shown, "#tip")[0].text
        marks = svg.find_elements("css selector", ".mark.near")
        assert [node.get_dom_attribute("data-method") for node in marks] == [method]


def test_a_hidden_method_is_not_in_the_tooltip_and_leaving_hides_it(shown):
    from selenium.webdriver.common.action_chains import ActionChains

    chip(shown, "method", "cc").click()
    svg = point_at(shown, 0, 0.3)
    assert {method for method, _ in tip_rows(shown)} == {"dst-pll", "pl-knn"}
    ActionChains(shown, duration=0).move_to_element(select(shown, "h2")[0]).perform()
    assert not select(shown, "#tip")[0].is_displayed()
    assert not svg.find_elements("css selector", ".cross")
    assert "faded" not in (svg.get_dom_attribute("class") or "")


def test_keys_read_a_chart(shown, curves):
    svg = select(shown, "#charts svg")[2]
    shown.execute_script("arguments[0].scrollIntoView({block: 'center'})", svg)
    frames(shown, 2)
    svg.send_keys("\ue014" * 11)  # right arrow: to the start, then ten steps of a hundredth
    tip = select(shown, "#tip")[0]
    assert tip.is_displayed()
    assert float(tip.text.split()[0]) == pytest.approx(10, abs=0.8)
    svg.send_keys("\ue00c")  # escape
    assert not tip.is_displayed()


def test_numbers_below_the_curves_can_be_sorted(shown, curves):
    summary = next(s for s in select(shown, "summary") if s.text.startswith("The numbers"))
    summary.click()
    next(b for b in select(shown, "#numbers th button") if b.text.startswith("AURC")).click()
    cells = [row.text.split() for row in select(shown, "#numbers tbody tr")]
    assert [row[-2] for row in cells] == [f"{a:.4f}" for a in sorted(c.aurc for c in curves)]
    best = min(curves, key=lambda c: c.aurc)
    text = select(shown, "#numbers tbody tr")[0].text
    assert text.startswith(f"{best.setting.dataset}, {best.setting.noise} {best.method} ")
    assert f"{100 * best.accuracy[0]:.1f} %" in text
    chip(shown, "method", best.method).click()
    assert all(best.method not in row.text for row in select(shown, "#numbers tbody tr"))


def test_failures_unfold(shown):
    failure = select(shown, "#failures details")[0]
    pre = failure.find_element("css selector", "pre")
    assert not pre.is_displayed()
    failure.find_element("css selector", "summary").click()
    assert pre.is_displayed()
    assert EVIL_ERROR in pre.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 500, 360])
def test_it_fits_any_width_light_and_dark(shown, width, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    resize(shown, width)
    frames(shown, 2)
    assert shown.execute_script("return document.documentElement.scrollWidth") <= width
    for svg in select(shown, "#charts svg, #rank-charts svg"):
        box = svg.rect
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        # Drawn for this width, not scaled: letters keep their size.
        drawn = float(svg.get_dom_attribute("viewBox").split()[2])
        assert drawn == pytest.approx(box["width"], abs=2)
    page = shown.execute_script("return getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", page)[:3])) > 600) == (scheme == "light")
    point_at(shown, 0, 0.5)
    tip = select(shown, "#tip")[0].rect
    assert tip["x"] >= 0
    assert tip["x"] + tip["width"] <= width
    shown.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
