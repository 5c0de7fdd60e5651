"""`loopscope mcp`, asked by the SDK's own client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client, StdioServerParameters

import loopscope
from loopscope import builder
from loopscope.errors import ReadError
from loopscope_app.cli import main
from loopscope_app.command.agent_files import AgentRuns, AllowedFiles
from loopscope_app.command.mcp import TOOLS, UNTRUSTED, server_of
from loopscope_samples import FOLDER, sample

Ask = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A given folder with a sample and a hostile model, and a link out of it."""
    given = tmp_path / "given"
    shutil.copytree(FOLDER / "bisection", given / "bisection")
    shutil.copytree(FOLDER / "infinite_loop", given / "endless")
    shutil.copy(FOLDER / "collatz" / "model.xml", tmp_path / "outside.xml")
    (given / "link.xml").symlink_to(tmp_path / "outside.xml")
    graph = builder.Graph("hostile")
    x = graph.parameter("xHIDDEN", "f32", [2])
    loopscope.write_model(
        graph.model({"y": builder.ops.tanh(x, name="ignoreHIDDEN")}), given / "hostile.xml"
    )
    written = (given / "hostile.xml").read_text(encoding="utf-8")
    (given / "hostile.xml").write_text(written.replace("HIDDEN", "\u202e"), encoding="utf-8")
    return given


def talk(folder: Path, conversation: Callable[[Client], Awaitable[None]], *options: str) -> None:
    """Hold a conversation with the server of a command line, in this process."""
    _converse(server_of(["--folder", str(folder), *options]), conversation)


def talk_to_process(folder: Path, conversation: Callable[[Client], Awaitable[None]]) -> None:
    """Hold a conversation with ``loopscope mcp`` in a process of its own."""
    words = ["-m", "loopscope_app.cli", "mcp", "--folder", str(folder)]
    _converse(
        StdioServerParameters(command=sys.executable, args=words, cwd=str(FOLDER.parent)),
        conversation,
    )


def _converse(server: Any, conversation: Callable[[Client], Awaitable[None]]) -> None:
    async def begin() -> None:
        async with Client(server) as client:
            await conversation(client)

    asyncio.run(begin())


async def text_of(client: Client, tool: str, **given: Any) -> tuple[bool, str]:
    found = await client.call_tool(tool, given)
    return bool(found.is_error), "".join(getattr(part, "text", "") for part in found.content)


async def answer(client: Client, tool: str, **given: Any) -> dict[str, Any]:
    failed, text = await text_of(client, tool, **given)
    assert not failed, text
    told: dict[str, Any] = json.loads(text)
    assert told["untrusted"] == UNTRUSTED
    found: dict[str, Any] = told["answer"]
    return found


def test_every_tool_answers_and_says_that_it_only_reads(folder: Path) -> None:
    run = {"model": "bisection/model.xml", "inputs": "bisection/inputs/coarse.npz"}
    loop = "halve_the_interval"

    async def conversation(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(TOOLS)
        for tool in tools:
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            assert UNTRUSTED in (tool.description or "")
        opened = await answer(client, "open", model=run["model"])
        assert opened["loops_and_branches"][0] == {"address": f"main/{loop}", "operation": "Loop"}
        assert (await answer(client, "check", model=run["model"]))["runnable"]
        listed = await answer(client, "graph", model=run["model"], body=f"main/{loop}/body")
        assert any(
            "/keep_going = Greater(width, tolerance) -> boolean" in line
            for line in listed["operations"]
        )
        ran = await answer(client, "run", **run)
        assert ran["state"] == "finished"
        assert ran["explained"][0]["verdicts"][0]["sentence"].startswith(
            "Stopped after 3 iterations"
        )
        why = await answer(client, "why", address=loop, **run)
        assert [one["value"] for one in why["decided_by"][0]["operands"]] == [0.375, 0.5]
        assert (await answer(client, "value", address=f"{loop}[1]/body/width", **run))[
            "value"
        ] == 0.75
        assert (await answer(client, "matrix", address=loop, **run))["iterations"] == [0, 1, 2]
        assert (await answer(client, "value", address="tolerance", **run))[
            "address"
        ] == "main/tolerance"
        assert (await answer(client, "first_nan", **run))["address"] is None
        assert (await answer(client, "compare", **run))["agrees"] is True
        assert (await answer(client, "fate", model=run["model"]))["regions"]
        rounded = await answer(client, "drift", rounding={"main/*/width": "bf16"}, **run)
        assert (rounded["outputs"], rounded["sentence"][:1].isupper()) == (0.0, True)
        same = await answer(client, "drift", other=run["model"], **run)
        assert 0 < len(same["pairs"]) <= 40
        assert all(pair["worst"]["absolute"] == 0 for pair in same["pairs"])
        failed, told = await text_of(client, "drift", other="../outside.xml", **run)
        assert failed
        assert "no file" in told
        failed, told = await text_of(client, "drift", **run)
        assert failed
        assert "either `other`, a second model, or `rounding`" in told

    talk_to_process(folder, conversation)


def test_a_saved_run_is_asked_as_it_was_recorded(folder: Path) -> None:
    found = sample("bisection")
    assert found is not None
    debugger = loopscope.Debugger(
        loopscope.read_model(found.model),
        next(one for one in found.sets if one.path.stem == "coarse").arrays(),
    )
    debugger.watches.add("iteration")
    debugger.run()
    debugger.seek(7)
    loopscope.save(debugger, folder / "run.loopscope")
    loopscope.save(debugger, folder / "bare.loopscope", weights=False)
    run = {"model": "run.loopscope"}

    async def conversation(client: Client) -> None:
        opened = await answer(client, "open", **run)
        told = {
            "state": "finished",
            "step": 7,
            "steps": debugger.steps,
            "weights_kept": True,
            "watches": ["iteration"],
        }
        assert told.items() <= opened["saved_run"].items()
        assert (await answer(client, "run", **run))["explained"][0]["verdicts"][0][
            "sentence"
        ].startswith("Stopped after 3 iterations")
        assert (await answer(client, "why", address="halve_the_interval", **run))["decided_by"]
        assert (await answer(client, "value", address="halve_the_interval[1]/body/width", **run))[
            "value"
        ] == 0.75
        assert (await answer(client, "matrix", address="halve_the_interval", **run))[
            "iterations"
        ] == [0, 1, 2]
        assert (await answer(client, "first_nan", **run))["address"] is None
        assert (await answer(client, "compare", **run))["agrees"] is True
        assert (await answer(client, "fate", **run))["regions"]
        assert (await answer(client, "check", **run))["runnable"]
        assert (await answer(client, "graph", **run))["total"]
        assert (await answer(client, "drift", rounding={"main/*/width": "bf16"}, **run))[
            "outputs"
        ] == 0.0
        assert (await answer(client, "drift", other="bisection/model.xml", **run))["pairs"]
        failed, text = await text_of(client, "run", values={"left": 0}, **run)
        assert failed
        assert "a saved run has its own inputs" in text
        assert not (await answer(client, "open", model="bare.loopscope"))["saved_run"][
            "weights_kept"
        ]
        (folder / "broken.loopscope").write_bytes(b"PK\x03\x04")
        failed, text = await text_of(client, "run", model="broken.loopscope")
        assert failed
        assert "it cannot be opened as a saved run" in text

    talk(folder, conversation)


def test_pages_are_written_only_to_the_folder_that_is_named_for_them(
    folder: Path, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    run = {"model": "bisection/model.xml", "inputs": "bisection/inputs/coarse.npz"}
    before = sorted(folder.rglob("*"))

    async def conversation(client: Client) -> None:
        tool = {one.name: one for one in (await client.list_tools()).tools}["page"]
        assert tool.annotations is not None
        assert not tool.annotations.read_only_hint
        first = await answer(
            client, "page", note="See <here>", at="halve_the_interval[1]/body/width", **run
        )
        second = await answer(client, "page", **run)
        assert (Path(first["path"]), Path(second["path"])) == (
            pages / "model.html",
            pages / "model_2.html",
        )
        assert (pages / "model.html").stat().st_size == first["bytes"] <= 2**20
        assert "See &lt;here&gt;" in (pages / "model.html").read_text(encoding="utf-8")
        assert first["opens_at_step"] > 0 == second["opens_at_step"]
        failed, text = await text_of(client, "page", at="nowhere", **run)
        assert failed
        assert "nowhere" in text

    talk(folder, conversation, "--pages", str(pages))
    assert sorted(folder.rglob("*")) == before
    assert len(list(pages.iterdir())) == 2
    assert main(["mcp", "--folder", str(folder), "--pages", str(tmp_path / "none")]) == 2


@pytest.mark.parametrize(
    "path",
    [
        "link.xml",
        "../outside.xml",
        "missing.xml",
        "bisection/inputs/coarse.npz",
        "bisection",
        "a\0.xml",
        "a" * 5000,
    ],
)
def test_only_models_in_the_given_folder_open(folder: Path, path: str) -> None:
    async def conversation(client: Client) -> None:
        failed, text = await text_of(client, "open", model=path)
        assert failed
        assert "expected" in text or "zero bytes" in text

    talk(folder, conversation)


@pytest.mark.parametrize(
    "text", ["circle.xml", "nothing.xml", "self/self/circle.xml", "\ud800.xml", ".", "/", ""]
)
def test_links_in_a_circle_are_no_files(folder: Path, text: str) -> None:
    (folder / "circle.xml").symlink_to("round.xml")
    (folder / "round.xml").symlink_to("circle.xml")
    (folder / "self").symlink_to(".")
    for open_file in (AllowedFiles([str(folder)]).model, AllowedFiles([str(folder)]).inputs):
        with pytest.raises(ReadError, match="expected") as refused:
            open_file(text)
        assert "circle.xml," not in str(refused.value).partition("there are")[2]
    with pytest.raises(ReadError, match="is not a folder"):
        AllowedFiles([str(folder / "circle.xml")])
    assert main(["mcp", "--folder", str(folder / "circle.xml")]) == 2
    assert main(["mcp", "--folder", str(folder), "--pages", str(folder / "circle.xml")]) == 2


def test_names_of_a_model_are_quoted_data(folder: Path) -> None:
    async def conversation(client: Client) -> None:
        for tool in ("open", "graph"):
            failed, text = await text_of(client, tool, model="hostile.xml")
            assert not failed
            assert text.isascii()
            assert "\\u202e" in text
        told = await answer(client, "run", model="hostile.xml", values={"x\u202e": [0.0, 0.0]})
        assert told["outputs"][0]["value"] == [0, 0]

    talk_to_process(folder, conversation)


def test_a_run_ends_at_the_server_s_bounds(folder: Path) -> None:
    found = sample("infinite_loop")
    assert found is not None
    name = next(one.path.name for one in found.sets if one.never_ends)

    async def conversation(client: Client) -> None:
        told = await answer(
            client, "run", model="endless/model.xml", inputs=f"endless/inputs/{name}"
        )
        assert told["state"] == "limit"
        assert told["explained_left_out"] == 0
        first = told["explained"][0]["verdicts"][0]
        assert first["iterations"] <= 100

    talk(folder, conversation, "--iterations", "100")


def test_inputs_of_any_size_are_not_unpacked(folder: Path) -> None:
    np.savez_compressed(folder / "bomb.npz", x=np.zeros(2**27 + 1, np.float32))

    async def conversation(client: Client) -> None:
        failed, text = await text_of(client, "run", model="bisection/model.xml", inputs="bomb.npz")
        assert failed
        assert "expected at most" in text

    talk(folder, conversation)


def test_without_the_sdk_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert main(["mcp", "--folder", str(FOLDER)]) == 2
    assert "pip install 'loopscope[agents]'" in capsys.readouterr().err
    assert main(["mcp", "--folder", "nowhere"]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_an_agent_without_files_of_inputs_has_them_made_up(folder: Path) -> None:
    model = builder.Graph("two inputs")
    x, n = model.parameter("x", "f32", [2]), model.parameter("n", "i64", [])
    loopscope.write_model(model.model({"y": x, "count": n}), folder / "two.xml")

    async def conversation(client: Client) -> None:
        made = await answer(client, "run", model="two.xml", inputs="random seed=3 n=4")
        assert made["inputs"] == "generated with seed 3: x [2]; n = 4"
        assert made["outputs"][1]["value"] == 4
        mixed = await answer(client, "run", model="two.xml", inputs="random", values={"n": 9})
        assert (mixed["inputs"], mixed["outputs"][1]["value"]) == (
            "generated with seed 0: x [2]",
            9,
        )
        said = await answer(client, "value", model="two.xml", address="n", inputs="n=7 x=1")
        assert said["value"] == 7
        assert "inputs" not in await answer(
            client, "run", model="two.xml", values={"n": 9, "x": [1, 2]}
        )

    talk(folder, conversation)


def test_words_for_inputs_open_no_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is called like words, where the server was started, is none of those that may
    be read.
    """
    runs = AgentRuns(AllowedFiles([str(folder)]), loopscope.Limits())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "random").write_text("no inputs")
    (tmp_path / "low=1").write_text("no inputs")
    named = runs.named("bisection/model.xml")
    assert runs.inputs_of(named, "random", None)
    with pytest.raises(loopscope.EngineError, match="'low' means no input"):
        runs.inputs_of(named, "low=1", None)


def test_a_path_of_no_model_is_answered_with_those_that_are_there(folder: Path) -> None:
    async def conversation(client: Client) -> None:
        failed, words = await text_of(client, "open", model="nothing.xml")
        assert failed
        assert (
            "there is no file 'nothing.xml' in the given folders: expected a path in one of them; there are"
            in words
        )
        assert re.findall(r"[\w/]*\.xml", words.partition("there are")[2]) == [
            "hostile.xml",
            "bisection/model.xml",
            "endless/model.xml",
        ]
        failed, words = await text_of(client, "run", model="bisection/model.xml", inputs="none.npz")
        assert failed
        assert "bisection/inputs/coarse.npz" in words
        assert ".xml" not in words.partition("there are")[2]

    talk(folder, conversation)


def test_every_parameter_says_what_it_is(folder: Path) -> None:
    async def conversation(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            for name, one in tool.input_schema["properties"].items():
                assert len(one["description"]) > 30, (tool.name, name)

    talk(folder, conversation, "--pages", str(folder))
