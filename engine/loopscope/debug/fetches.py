"""Single run of a model, for its outputs or for some of its tensors."""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.checks.diagnostic import InvalidModel
from loopscope.debug.fetch_plan import Fetch, TensorLike, each_fetch
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.result import Result
from loopscope.debug.session import Session
from loopscope.executor.machine.limits import Limits
from loopscope.executor.plan.optimisation_flags import EVERYTHING, Optimise
from loopscope.ir.main_graph_names import layer_named, tensor_named
from loopscope.ir.model import Model, expect_model
from loopscope.ir.prune import pruned
from loopscope.ops.catalogue import CATALOGUE, Catalogue


def run(
    model: Model,
    inputs: Inputs = None,
    fetches: Fetch | Sequence[Fetch] | None = None,
    *,
    limits: Limits | None = None,
    seed: int | None = None,
    optimise: Optimise = EVERYTHING,
    catalogue: Catalogue = CATALOGUE,
) -> Result:
    """Run a model once, from fresh variables. Operations that no output needs do not run, except
    Assigns.

    ``inputs`` are arrays by tensor name, Parameter name or position, or a sequence. A tensor of the
    outermost graph may also be given, by name, address or as a tensor of ``loopscope.builder``; the
    operations that compute it do not run. ``seed`` fixes random operations whose own seeds are 0.
    Raises ``InvalidModel`` (the model has errors), ``InputError``, or ``RunStopped`` (an operation
    failed, or a limit was reached).

    ``fetches`` are the tensors to return as the result's ``outputs``, instead of the model's own.
    Only what they need runs, in bodies too, and the run ends when they are computed. Inputs that
    they do not need may be left out. Each fetch is a tensor name, a node name (``Add_3``,
    ``Split:1``), an address, or a tensor of ``loopscope.builder``. A fetch inside a body is an
    address with its iterations (``main/loop_7[2]/body/Add_3``); an omitted iteration means the last
    one. Raises ``AddressError`` for a fetch that does not name exactly one tensor, and
    ``ValueUnavailable`` for an iteration that did not run.

    ``optimise`` selects the optimisations, which do not change the results.
    """
    expect_model(model, "loopscope.run")
    try:
        session = Session(model, optimise=optimise, catalogue=catalogue)
    except InvalidModel:
        if fetches is None:
            raise
        requested = list(each_fetch(fetches))
        if any(isinstance(fetch, TensorLike) for fetch in requested):
            raise
        return _run_part(
            model,
            inputs,
            [fetch for fetch in requested if isinstance(fetch, str)],
            limits,
            seed,
            optimise,
            catalogue,
        )
    return session.run(inputs, fetches, limits=limits, seed=seed)


def _run_part(
    model: Model,
    inputs: Inputs,
    names: Sequence[str],
    limits: Limits | None,
    seed: int | None,
    optimise: Optimise,
    catalogue: Catalogue,
) -> Result:
    """Run a model that has errors, which may all lie in parts that the fetches do not need."""
    graph = model.graph
    sources = {name: source for name in names if (source := tensor_named(graph, name)) is not None}
    part = pruned(
        model,
        list(sources.items()),
        {layer_named(graph, name) for name in names if name not in sources},
    )
    arrays = bind(model, inputs, needed={node.id for node in part.graph.parameters})
    feeds = [arrays[node.id] for node in part.graph.parameters]
    return Session(part, optimise=optimise, catalogue=catalogue).run(
        feeds, names, limits=limits, seed=seed
    )
