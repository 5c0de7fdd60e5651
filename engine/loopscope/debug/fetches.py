"""Running a model once: for its outputs, or for a few of its tensors and only what they need."""

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
    """Runs a model once, from fresh variables; operations that no output needs do not run, Assigns
    apart.

    ``inputs``: arrays by tensor name, Parameter name or position, or a sequence. A tensor of the
    outermost graph may be given too, by name, address or as a tensor of ``loopscope.builder``; then
    what computes it does not run. ``seed`` fixes random operations whose own seeds are 0. Raises
    ``InvalidModel`` (the model has errors), ``InputError``, or ``RunStopped`` (an operation failed,
    or a limit was reached).

    ``fetches``: the tensors that the result's ``outputs`` are, instead of the model's own; only
    what they need runs, in bodies too and no longer than until they are there, and inputs that they
    do not need may be left out. Each is a tensor name, a node name (``Add_3``, ``Split:1``), an
    address, or a tensor of ``loopscope.builder``; inside a body an address with its iterations
    (``main/loop_7[2]/body/Add_3``; the last one where they are left out). ``AddressError`` for a
    fetch that names nothing or several tensors, ``ValueUnavailable`` for an iteration that did not
    run.

    ``optimise``: what may be left out because it makes no difference.
    """
    expect_model(model, "loopscope.run")
    try:
        session = Session(model, optimise=optimise, catalogue=catalogue)
    except InvalidModel:
        if fetches is None:
            raise
        wanted = list(each_fetch(fetches))
        if any(isinstance(one, TensorLike) for one in wanted):
            raise
        return _of_a_part(
            model,
            inputs,
            [one for one in wanted if isinstance(one, str)],
            limits,
            seed,
            optimise,
            catalogue,
        )
    return session.run(inputs, fetches, limits=limits, seed=seed)


def _of_a_part(
    model: Model,
    inputs: Inputs,
    names: Sequence[str],
    limits: Limits | None,
    seed: int | None,
    optimise: Optimise,
    catalogue: Catalogue,
) -> Result:
    """The same for a model that has errors: they may all lie in what is not needed."""
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
