import pytest

from demur.bench.grid import expand, parse_filter, preset_names, read_preset, select
from demur.datasets import registry
from demur.methods import METHODS, method

TEN = {"dst-pll", "pl-knn", "ipal", "pl-svm", "pl-ecoc", "proden", "cc", "pop", "valen", "crosel"}
GRID = {"grid": [{"datasets": ["iris", "wine"], "noise": ["uniform"], "methods": ["pl-knn"]}]}


def with_grid(**more):
    return {"grid": [GRID["grid"][0] | more]}


@pytest.mark.parametrize("name", preset_names())
def test_presets_name_what_there_is(name):
    preset = read_preset(name)
    specs = expand(preset)
    assert len({spec.run_id for spec in specs}) == len(specs) == len({s.setting for s in specs})
    for spec in specs:
        assert spec.dataset in registry()
        assert set(spec.parameters) <= set(method(spec.method)().get_params())
        assert (spec.noise == "real") == registry()[spec.dataset].candidates
    assert {spec.method for spec in specs} == TEN


def test_a_method_enters_a_preset_only_when_asked(monkeypatch):
    monkeypatch.setattr("demur.bench.grid.METHODS", (*METHODS, "brand-new"))
    preset = read_preset("quick")
    ten, more = expand(preset), expand(preset, added=["brand-new", "cc"])
    assert {spec.method for spec in ten} == TEN
    assert set(ten) < set(more)
    assert {spec.method for spec in set(more) - set(ten)} == {"brand-new"}
    assert len(more) == len(ten) * 11 / 10
    with pytest.raises(ValueError, match="methods of .* names 'newer'"):
        expand(preset, added=["newer"])


def test_tabular_is_what_the_tables_are_made_of():
    specs = expand(read_preset("tabular"))
    assert len(specs) == (7 * 3 + 2) * 5 * 10
    assert {s.classes for s in specs if s.noise == "real"} == {"frequent-95"}
    assert {s.noise_parameters["share"] for s in specs if s.noise == "uniform"} == {0.5}


def test_the_two_readings_differ_in_noise_and_classes():
    paper, text = (expand(read_preset(name)) for name in ("paper", "paper-text"))
    told = [{s.noise: dict(s.noise_parameters) for s in specs} for specs in (paper, text)]
    assert told[0]["uniform"] == {"n_noise": 2, "share": 0.5}
    assert told[1]["uniform"] == {"n_noise": 3, "share": 0.7}
    assert told[0]["instance-dependent"] != told[1]["instance-dependent"]
    assert {s.classes for s in text} == {"all"}


def test_images_are_encoded_for_whom_the_text_says_so():
    specs = [s for s in expand(read_preset("paper")) if s.dataset == "mnist"]
    assert {s.method for s in specs if s.encoder} == {"dst-pll", "pl-knn"}
    assert {s.parameters["n_neighbors"] for s in specs if s.method == "dst-pll"} == {20}


def test_a_block_goes_before_the_top_and_tables_are_merged():
    specs = expand(
        {
            "seeds": 3,
            "test_size": 0.5,
            "parameters": {"pl-knn": {"n_neighbors": 3}, "dst-pll": {"alpha": 0.4}},
            "noise_parameters": {"uniform": {"share": 0.9}},
            "grid": [
                {
                    "datasets": ["iris"],
                    "noise": ["uniform"],
                    "methods": ["dst-pll"],
                    "seeds": [7],
                    "parameters": {"dst-pll": {"n_neighbors": 5}},
                    "noise_parameters": {"uniform": {"n_noise": 1}},
                }
            ],
        }
    )
    (spec,) = specs
    assert spec.seed == 7
    assert spec.test_size == 0.5
    assert spec.parameters == {"alpha": 0.4, "n_neighbors": 5}
    assert spec.noise_parameters == {"n_noise": 1, "share": 0.9}


def test_seeds_of_the_caller_go_first():
    assert {spec.seed for spec in expand(GRID, seeds=2)} == {0, 1}
    assert {spec.seed for spec in expand(GRID)} == set(range(5))


@pytest.mark.parametrize(
    ("preset", "match"),
    [
        ({}, r"lacks \[\[grid\]\]"),
        ({"grid": [{"noise": ["uniform"]}]}, "lacks datasets"),
        ({"grid": [{"datasets": ["iris"]}]}, "lacks noise"),
        (with_grid(method=["pl-knn"]), "has 'method'; what it may say"),
        (with_grid(methods=["pl-nn"]), "methods of .* names 'pl-nn'; the methods are dst-pll"),
        (with_grid(parameters={"nn": {}}), "parameters of .* names 'nn'"),
        (with_grid(noise=["loud"]), "names the noise 'loud'; there are uniform"),
        (with_grid(reading="mine"), "has the reading 'mine'; there are paper"),
        (with_grid(seeds=0), "seeds of"),
        (with_grid(seeds=[-1]), "seeds of"),
        (with_grid(seeds=True), "must be a whole number or a list"),
        (with_grid(datasets="iris"), "datasets of .* must be a list"),
        ({"grid": GRID["grid"] * 2}, "repeats pl-knn on iris, uniform, seed 0"),
    ],
)
def test_slips_in_a_preset_are_told(preset, match):
    with pytest.raises(ValueError, match=match):
        expand(preset)


def test_presets_from_files(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[[grid]]\ndatasets = ["iris"]\nnoise = ["uniform"]\n')
    assert len(expand(read_preset(path), seeds=1)) == len(METHODS)
    path.write_text("[[grid]\n")
    with pytest.raises(ValueError, match="is not TOML"):
        read_preset(path)
    with pytest.raises(ValueError, match=r"'nope' is neither a preset \(paper, .*\) nor a TOML"):
        read_preset("nope")


def test_filters():
    specs = expand(GRID, seeds=3)
    assert len(select(specs, [])) == 6
    assert {s.dataset for s in select(specs, [parse_filter("dataset=wine")])} == {"wine"}
    kept = select(specs, [parse_filter("dataset!=wine"), parse_filter("seed=0, 2")])
    assert [(s.dataset, s.seed) for s in kept] == [("iris", 0), ("iris", 2)]
    assert select(specs, [parse_filter(f"run_id={specs[4].run_id}")]) == [specs[4]]
    with pytest.raises(ValueError, match="no run has the dataset 'win'; there are iris, wine"):
        select(specs, [parse_filter("dataset=win")])
    with pytest.raises(ValueError, match="runs cannot be told by 'data', but by dataset"):
        select(specs, [parse_filter("data=wine")])
    for text in ("dataset", "dataset="):
        with pytest.raises(ValueError, match="is no filter"):
            parse_filter(text)
