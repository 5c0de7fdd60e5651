"""Recording of torch modules by hooks, and of JAX loops by callbacks; neither is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any, Self

from loopscope.errors import InputError, listed, shorten
from loopscope.tracing.recorder import IdleTrace, Recorder, trace

AUTO = "auto"
_INPUTS = ("input_ids", "inputs_embeds")
"""Keyword arguments of the traced module that are recorded too."""
_MAX_OUTPUTS = 64
"""Maximum number of tensors that are recorded of one call."""


def trace_module(
    module: Any,
    steps: str = AUTO,
    patterns: Sequence[str] | None = None,
    *,
    loop: str = "step",
) -> ModuleTrace:
    """Return a context in which the calls of a torch module are recorded in the open trace.

    Each call of the submodule ``steps`` is one iteration of the loop ``loop``; ``auto`` is the
    module itself. The outputs of the submodules and the buffers whose names match one of
    ``patterns``, such as ``layers.*.state``, are recorded. The names of buffers are relative to
    ``steps``. The default is the elements of the outermost module lists, such as the layers of a
    language model, or else the children of the module. With ``generate`` of transformers, an
    iteration is a token. ``InputError`` if ``steps`` is not a submodule, or if no submodule and no
    buffer matches any of the patterns.
    """
    return ModuleTrace(module, steps, patterns, loop)


def trace_callback(loop: str, *, carried: str | Sequence[str] = ()) -> Callable[..., None]:
    """Return a callback that records one iteration of ``loop`` with its arguments as values.

    It is for ``jax.debug.callback`` in the body of a ``scan`` or ``while_loop``::

        jax.debug.callback(loopscope.trace_callback("decode"), state=state, ordered=True)

    Without an open trace, the callback does nothing.
    """

    def record(*unnamed: Any, **values: Any) -> None:
        recorder = trace()
        named = {f"value_{number}": value for number, value in enumerate(unnamed)}
        with recorder.loop(loop):
            recorder.record(carried=carried, **named, **values)

    return record


class ModuleTrace:
    """Hooks of a module while its context is open."""

    def __init__(self, module: Any, steps: str, patterns: Sequence[str] | None, loop: str) -> None:
        self._loop = loop
        modules: dict[str, Any] = dict(module.named_modules())
        if steps != AUTO and steps not in modules:
            raise InputError(
                f"trace_module: the module has no submodule {shorten(repr(steps))}: expected one "
                f"of {listed([name for name in modules if name])}"
            )
        self._stepped = module if steps == AUTO else modules[steps]
        chosen = _default_names(module, modules) if patterns is None else patterns
        self._recorded = {
            name: part for name, part in modules.items() if name and _matches(name, chosen)
        }
        self._buffers = (
            []
            if patterns is None
            else [name for name, _ in self._stepped.named_buffers() if _matches(name, patterns)]
        )
        if not self._recorded and not self._buffers:
            raise InputError(
                f"trace_module: no submodule or buffer matches {listed(list(chosen))}: expected "
                f"patterns of names such as {listed([name for name in modules if name][:5])}"
            )
        self._handles: list[Any] = []
        self._recorder: Recorder | IdleTrace = trace()
        self._iteration: Any = None
        """Context of the iteration that is open; None outside a call of the stepped module."""

    def __enter__(self) -> Self:
        self._recorder = trace()
        if isinstance(self._recorder, IdleTrace):
            return self
        stepped = self._stepped
        self._handles = [
            part.register_forward_hook(self._hook(name)) for name, part in self._recorded.items()
        ]
        self._handles += [
            stepped.register_forward_pre_hook(self._begin, with_kwargs=True),
            stepped.register_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, _: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _begin(self, module: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        self._iteration = self._recorder.loop(self._loop)
        self._iteration.__enter__()
        for name in _INPUTS:
            if _is_tensor(keywords.get(name)):
                self._recorder.record(**{name: keywords[name]})
        if inputs and _is_tensor(inputs[0]) and not keywords.keys() & {*_INPUTS}:
            self._recorder.record(input=inputs[0])

    def _end(self, module: Any, inputs: Any, output: Any) -> None:
        if self._iteration is None:
            return
        self._record("output", output)
        if self._buffers:
            buffers = dict(module.named_buffers())
            self._recorder.record(**{name: buffers[name] for name in self._buffers})
        self._iteration.__exit__(None, None, None)
        self._iteration = None

    def _hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        def record(module: Any, inputs: Any, output: Any) -> None:
            if self._iteration is not None and module is not self._stepped:
                self._record(name, output)

        return record

    def _record(self, name: str, output: Any) -> None:
        values = dict(_tensors(name, output))
        if values:
            self._recorder.record(**values)


def _default_names(module: Any, modules: Mapping[str, Any]) -> list[str]:
    """Return the names of the elements of all outermost module lists, or else of the children."""
    lists = [name for name, part in modules.items() if type(part).__name__ == "ModuleList"]
    outermost = [name for name in lists if not any(name.startswith(f"{other}.") for other in lists)]
    elements = [
        f"{name}.{child}".lstrip(".")
        for name in outermost
        for child, _ in modules[name].named_children()
    ]
    return elements or [child for child, _ in module.named_children()]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _tensors(name: str, output: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of an output with their names: itself, its fields, or its elements."""
    if _is_tensor(output):
        yield name, output
    elif isinstance(output, Mapping):
        for key, value in [*output.items()][:_MAX_OUTPUTS]:
            if _is_tensor(value):
                yield (str(key) if name == "output" else f"{name}.{key}"), value
    elif isinstance(output, (tuple, list)):
        for number, value in enumerate(output[:_MAX_OUTPUTS]):
            if _is_tensor(value):
                yield (f"{name}.{number}" if number else name), value


def _is_tensor(value: object) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "__array__")
