"""A run as one HTML file: what stands in it, escaped and bounded; and what a person does with it
in a real chromium, offline.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.explain import listing
from loopscope.ops.stored import write
from loopscope.run_file import saving
from loopscope.view import (
    Marks,
    cursor_boxes,
    default_folding,
    overlay_at,
    read_node_data,
    unrolling,
)
from loopscope_app.cli import main
from loopscope_app.describe.canvas_boxes import loop_endings
from loopscope_app.page import BytesBound, page_of, paged_pictures
from loopscope_app.page.moments import moments
from loopscope_app.page.paged_pictures import MOST_PICTURES, pictures
from loopscope_app.parts.dock.export_drawer import page as exported
from loopscope_samples import sample, samples
from tests.app.page.finished_runs import run_of
from tests.draws import share
from tests.engine.run_file.test_without_weights import dense

MEGABYTE = 2**20


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="text/plain" id="run">([^<]*)</script>', page)
    assert found is not None
    data = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert isinstance(data, dict)
    return data


@functools.cache
def page_of_sample(name: str) -> str:
    return page_of(run_of(name), title=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", share([one.name for one in samples()]))
def test_every_sample_fits_into_a_megabyte(name: str) -> None:
    page = page_of_sample(name)
    assert len(page.encode()) < MEGABYTE
    data = data_of(page)
    assert (
        len(data["frames"])
        == len(data["steps"])
        == len(data["paths"])
        == len(data["track"])
        == len(data["places"])
    )


def test_names_and_notes_are_text() -> None:
    graph = builder.Graph("<b>")
    x = graph.parameter("x", "f32", [])
    (last,) = builder.while_loop(
        lambda v: v < 3, lambda v: v + 1, [x], name="</script><script>alert(1)</script>"
    )
    debugger = loopscope.Debugger(graph.model({"last": last}), [0])
    debugger.run()
    page = page_of(
        debugger, title="</title><script>1</script>", note="</p><img src=x onerror=alert(1)>\u202e"
    )
    assert page.count("<script") == 3
    assert "onerror=alert(1)>" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "\u202e" not in page
    assert "&lt;/script&gt;&lt;script&gt;" in page


def test_nothing_is_fetched() -> None:
    page = page_of(run_of("collatz"), title="collatz")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy[1]
    without_data = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    assert set(re.findall(r"https?://[^\s\"'`<]+", without_data)) == {"http://www.w3.org/2000/svg"}


def test_values_are_left_out_on_demand() -> None:
    debugger = run_of("collatz")
    with_values, without = (
        page_of(debugger, title="c", with_values=wanted) for wanted in (True, False)
    )
    tables = ("values", "backs", "sparks", "nans")
    assert any(frame.get("values") for frame in data_of(with_values)["frames"])
    assert not any(frame.get(table) for frame in data_of(without)["frames"] for table in tables)
    assert "<code>number</code> was 1" in with_values
    assert "was 1" not in without
    assert '<details class="proof"><summary>the proof</summary><div><code>' in with_values
    assert "the proof" not in without
    assert any(change.get("hints") for change in data_of(with_values)["lines"])
    assert not any(change.get("hints") for change in data_of(without)["lines"])
    assert len(data_of(with_values)["matrices"]) == 1
    assert data_of(without)["matrices"] == [None]
    assert '<i class="then" title="iteration 1: then">' in without  # branches are no values
    assert "values of the run are left out" in without
    assert "7 iterations, then its condition became false" in without


def test_what_does_not_fit_is_thinned_and_the_page_says_so() -> None:
    found = sample("collatz")
    assert found is not None
    debugger = loopscope.Debugger(loopscope.read_model(found.model), [27])
    debugger.run()
    debugger.seek(501)
    whole = len(page_of(debugger, title="c", most_bytes=100 * MEGABYTE).encode())
    page = page_of(debugger, title="c", most_bytes=whole - 3000)
    data = data_of(page)
    assert len(page.encode()) <= whole - 3000
    assert data["steps"][data["at"]] == 501
    assert (data["steps"][0], data["steps"][-1]) == (0, debugger.steps)
    assert f"{len(data['steps']):,} of the {debugger.steps + 1:,} moments" in page
    with pytest.raises(BytesBound, match="allow more megabytes"):
        page_of(debugger, title="c", most_bytes=100_000)


@pytest.mark.parametrize(
    ("name", "unrolled"),
    [
        ("collatz", {}),
        ("branch_not_taken", {}),
        ("language_decoder", {}),
        ("hybrid_stack", {}),
        ("count_primes", {}),
        ("collatz", {"main/while_not_one": 7}),
        (
            "count_primes",
            {"main/for_each_candidate": 9, "main/for_each_candidate/body/try_each_divisor": 2},
        ),
    ],
)
def test_each_picture_shows_the_moments_as_the_app_does(
    name: str, unrolled: dict[str, int]
) -> None:
    """What is told of all parts together is, on each picture, what the overlay of that picture
    alone would be.
    """
    debugger = run_of(name)
    folding = default_folding(debugger.model)
    for address in unrolled:
        folding = unrolling.unroll(debugger.model, folding, address, None, 3)
    drawn = pictures(debugger.model, folding, "main", unrolled)
    debugger.seek(debugger.steps * 2 // 3)
    for step in (0, debugger.steps // 3, debugger.steps // 2, debugger.cursor.step, debugger.steps):
        kept = moments(debugger, drawn, listing(debugger.plan), step, with_values=True, limit=1)
        place = kept.steps.index(step)
        debugger.seek(step)
        for number, view in enumerate(drawn.views):
            shown = overlay_at(
                debugger, view, Marks(verdicts=loop_endings(debugger, view))
            ).as_data()
            assert kept.spots[place][number] == (shown["next"], shown["current"])
            for table in (
                "values",
                "nans",
                "backs",
                "headers",
                "progress",
                "frames",
                "slices",
                "sparks",
                "nodes",
            ):
                told, wanted = kept.overlays[place][table], shown[table]
                assert isinstance(told, dict)
                assert isinstance(wanted, dict)
                own = {id: told[id] for id in told if id in view.by_id}
                if table == "nodes" and shown["next"] in own:  # as page_pictures.js does
                    own[shown["next"]] = "failed" if own[shown["next"]] == "failed" else "current"
                assert own == wanted, (table, step, number)


def test_the_command_colours_a_page_by_iteration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    debugger = run_of("collatz")
    loopscope.save(debugger, tmp_path / "run.loopscope")
    body = "main/while_not_one[{}]/body/floor_mod"
    data = {body.format(k): 10.0 * k for k in range(7)} | {"main/start_at_all": 3.0, "nobody": 1.0}
    (tmp_path / "load.json").write_text(
        json.dumps({"results": {key: {"value": value} for key, value in data.items()}})
    )
    words = [
        "page",
        str(tmp_path / "run.loopscope"),
        "-o",
        str(tmp_path / "page.html"),
        "--overlay",
    ]
    assert main([*words, str(tmp_path / "load.json")]) == 0
    assert (
        "1 key of load.json names nothing in this model, such as 'nobody'"
        in capsys.readouterr().err
    )
    shown = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert shown["frames"][0]["scale"] == ["load", "number", "0", "60"]
    drawn = pictures(debugger.model, default_folding(debugger.model), "main")
    data_read = read_node_data((tmp_path / "load.json").read_bytes(), debugger.model, "load")
    table: dict[str, object] = {}
    for step, change in enumerate(shown["frames"]):
        table.update(change.get("tints", {}))
        table = {id: tint for id, tint in table.items() if tint is not None}
        debugger.seek(step)
        for view in drawn.views:
            wanted = overlay_at(debugger, view, Marks(node_data=data_read)).tints
            assert {id: table[id] for id in table if id in view.by_id} == wanted, step
    assert main([*words, str(tmp_path / "none.json")]) == 2
    assert "none.json cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("first", [0, 3, 4])
def test_every_iteration_of_an_unrolled_loop_has_its_picture(first: int) -> None:
    debugger = run_of("collatz")
    folding = unrolling.unroll(
        debugger.model, default_folding(debugger.model), "main/while_not_one", None, 3
    )
    folding = unrolling.place(folding, "main/while_not_one", first, 3)
    drawn = pictures(debugger.model, folding, "main", {"main/while_not_one": 7})
    assert drawn.complete
    assert {f"main/while_not_one[{k}]" for k in range(7)} <= drawn.together.frame_of.keys()
    windows = [
        view for view in drawn.views if not any(node.kind == "folded" for node in view.nodes)
    ]
    for step in range(debugger.steps):
        debugger.seek(step)
        assert any(cursor_boxes(debugger, view)[0] for view in windows), step


def test_a_long_loop_that_is_unrolled_has_the_nearest_iterations_and_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paged_pictures, "MOST_WINDOWS", 2)
    found = sample("collatz")
    assert found is not None
    debugger = loopscope.Debugger(loopscope.read_model(found.model), [7])
    debugger.run()
    debugger.seek(101)
    folding = unrolling.unroll(
        debugger.model, default_folding(debugger.model), "main/while_not_one", debugger, 2
    )
    page = page_of(debugger, title="c", folding=folding)
    data = data_of(page)
    assert "ways to fold and unroll it, others are left out" in page
    assert data["spots"][data["spot"][data["at"]]][0][0], "the page opens with the cursor in sight"
    drawn = {one["address"] for one in data["parts"]["clusters"].values()}
    assert [k for k in range(16) if f"main/while_not_one[{k}]" in drawn] == [6, 7, 8, 9, 10, 11]


def test_the_command_draws_a_saved_run_as_it_was_looked_at(tmp_path: Path) -> None:
    debugger = run_of("count_primes")
    debugger.seek(70)
    inner = "main/for_each_candidate/body/try_each_divisor"
    look = {
        "body": "main/for_each_candidate/body",
        "unroll": json.dumps([[inner, 0, 1], ["x", 1], ["main/y", 0, 2]]),
    }
    loopscope.save(debugger, tmp_path / "run.loopscope", look=look)
    assert main(["page", str(tmp_path / "run.loopscope"), "-o", str(tmp_path / "page.html")]) == 0
    data = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert data["pictures"][0]["root"] == "main/for_each_candidate/body"
    assert f"{inner}[0]" in {one["address"] for one in data["parts"]["clusters"].values()}
    assert data["steps"][data["at"]] == 70


def test_every_fold_that_is_seen_has_its_picture() -> None:
    drawn = pictures(run_of("collatz").model, default_folding(run_of("collatz").model), "main")
    assert drawn.complete
    folds = [{n.address for n in view.nodes if n.kind == "folded"} for view in drawn.views]
    for view, folded in zip(drawn.views, folds, strict=True):
        open_ = {one.address for one in view.clusters if one.foldable}
        for address in open_:
            assert any(address in other for other in folds), address
        for address in folded:
            assert any(one.address == address for other in drawn.views for one in other.clusters), (
                address
            )


@pytest.mark.parametrize("stop", range(24, 36))
def test_a_page_of_a_run_that_stopped_inside_an_iteration_ends_where_the_run_does(
    stop: int,
) -> None:
    debugger = loopscope.Debugger(run_of("bisection").model, [2, 0.3])
    while debugger.steps < stop:
        debugger.step()
    assert debugger.state == "paused"
    assert data_of(page_of(debugger, title="bisection", note=""))["steps"][-1] == stop


def test_a_page_that_leaves_pictures_out_says_so() -> None:
    page = page_of_sample("hybrid_stack")
    assert len(data_of(page)["pictures"]) == MOST_PICTURES
    assert f"it is drawn in {MOST_PICTURES} ways to fold it, others are left out" in page
    small = page_of(
        run_of("hybrid_stack"), title="hybrid_stack", most_bytes=len(page.encode()) - 40_000
    )
    assert len(data_of(small)["pictures"]) < MOST_PICTURES


def test_the_command_writes_pages_of_models_and_of_saved_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sample("collatz")
    assert found is not None
    write(tmp_path / "in.npz", {"0": np.array(3, np.int64)})
    target = str(tmp_path / "page.html")
    assert (
        main(
            [
                "page",
                str(found.model),
                "--inputs",
                str(tmp_path / "in.npz"),
                "-o",
                target,
                "--at",
                "main/while_not_one[2]",
            ]
        )
        == 0
    )
    assert "opens at step" in capsys.readouterr().out
    debugger = run_of("collatz")
    debugger.seek(31)
    loopscope.save(debugger, tmp_path / "run.loopscope")
    assert main(["page", str(tmp_path / "run.loopscope"), "-o", target]) == 0
    data = data_of(Path(target).read_text(encoding="utf-8"))
    assert data["steps"][data["at"]] == 31
    assert (
        main(
            [
                "page",
                str(tmp_path / "run.loopscope"),
                "-o",
                target,
                "--body",
                "main/while_not_one/body",
            ]
        )
        == 0
    )
    assert (
        data_of(Path(target).read_text(encoding="utf-8"))["pictures"][0]["root"]
        == "main/while_not_one/body"
    )
    assert (
        main(["page", str(tmp_path / "run.loopscope"), "-o", target, "--body", "main/nowhere"]) == 2
    )
    assert "no graph 'main/nowhere'" in capsys.readouterr().err
    assert main(["page", str(tmp_path / "run.loopscope"), "-o", str(tmp_path / "page.txt")]) == 2
    assert "must end in .html" in capsys.readouterr().err


def test_a_run_without_weights_becomes_a_page_that_says_what_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    loopscope.save(dense(), tmp_path / "dense.loopscope", weights=False)
    assert main(["page", str(tmp_path / "dense.loopscope"), "-o", str(tmp_path / "page.html")]) == 0
    data = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "not kept" in json.dumps(data["matrices"])
    assert "not kept: the run was saved without weights" in json.dumps(data["code"])


@pytest.mark.parametrize("step", [0, 20, 72])
def test_a_page_that_is_exported_in_the_app_opens_at_the_moment_on_the_screen(step: int) -> None:
    debugger = run_of("collatz")
    debugger.seek(step)
    document = exported(debugger, "collatz", "", default_folding(debugger.model), "main", None)
    data = data_of(document.decode())
    assert data["steps"][data["at"]] == step


def test_pages_share_their_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assets, folder = tmp_path / "a <b", tmp_path / "runs"
    folder.mkdir()
    model = sample("gcd")
    assert model is not None
    words = ["page", str(model.model), "--assets", str(assets), "--inputs"]
    pages = [folder / "one.html", folder / "two.html"]
    for page, inputs in zip(pages, ("a=4 b=6", "a=9 b=6"), strict=True):
        assert main([*words, inputs, "-o", str(page)]) == 0
    assert "0.01 MB" in capsys.readouterr().out
    files = {path.name: path.stat() for path in assets.iterdir()}
    assert sorted(files) == ["layout-library.js", "page.css", "page.js"]
    assert sum(status.st_size for status in files.values()) < MEGABYTE
    for page in pages:
        text = page.read_text("utf-8")
        assert "script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; style-src 'self';" in text
        linked = re.findall(r'(?:src|href)="([^":]+)"', text)
        assert linked == [
            f"../a%20%3Cb/{name}" for name in ("page.css", "layout-library.js", "page.js")
        ]
        assert re.findall(r"<script(?! src| type=\"text/plain\")", text) == []
