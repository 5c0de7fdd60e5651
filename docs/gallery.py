"""Pages about the samples: the gallery, and a page for each sample with its run."""

from __future__ import annotations

from collections.abc import Sequence

from docs.living_pages import block
from loopscope_samples import SECTIONS, Sample, SampleTrace, sample_traces, samples

PICTURES = "pictures"


def pages() -> dict[str, str]:
    """Return the Markdown pages by file name."""
    return {
        "gallery.md": _gallery(),
        **{f"samples/{sample.name}.md": _sample_page(sample) for sample in samples()},
        **{f"samples/{trace.name}.md": _trace_page(trace) for trace in sample_traces()},
    }


def run_block(sample: Sample, inputs: str) -> str:
    """Return a living block with the run of a sample on one of its input sets."""
    folder = f"sample_models/{sample.name}"
    return block(f"{folder}/model.xml", "--inputs", f"{folder}/inputs/{inputs}.npz")


def trace_block(trace: SampleTrace) -> str:
    """Return a living block with a recorded program."""
    return block(f"sample_models/{trace.model.parent.name}/{trace.model.name}")


def _gallery() -> str:
    by_section: dict[str, Sequence[Sample | SampleTrace]] = {
        section: [sample for sample in samples() if sample.section == section]
        for section in SECTIONS
    }
    by_section["Recorded programs"] = sample_traces()
    sections = [
        f'## {section}\n\n<div class="cards">\n{"".join(map(_card, entries))}\n</div>'
        for section, entries in by_section.items()
    ]
    introduction = "Each sample steps in the browser. Nothing is installed, and no server computes."
    return "\n\n".join(["# Gallery", introduction, *sections])


def _card(sample: Sample | SampleTrace) -> str:
    pictures = "".join(
        f'<img class="{scheme}" src="{PICTURES}/{path.name}" alt="" loading="lazy">'
        for scheme in ("light", "dark")
        if (path := sample.picture(scheme))
    )
    return (
        f'<a class="card" href="samples/{sample.name}.html">{pictures}'
        f"<strong>{sample.title}</strong><span>{sample.card}</span></a>\n"
    )


def _trace_page(trace: SampleTrace) -> str:
    return "\n\n".join(
        [
            f"# {trace.title}",
            trace.card,
            trace_block(trace),
            "Open it in the app, and compare it with the other recording:",
            f"```\nloopscope --sample {trace.name}\n```",
        ]
    )


def _sample_page(sample: Sample) -> str:
    first = sample.sets[0]
    sets = "\n".join(f"| `{each.name}` | {each.text} |" for each in sample.sets)
    pitfalls = "\n".join(f"- {pitfall}" for pitfall in sample.pitfalls)
    return "\n\n".join(
        [
            f"# {sample.title}",
            sample.card,
            run_block(sample, first.name),
            sample.lesson,
            f"Made with {sample.origin}. Patterns: {', '.join(sample.patterns)}.",
            *([f"## In real runtimes\n\n{pitfalls}"] if pitfalls else []),
            f"## Inputs\n\n| inputs | shows |\n|---|---|\n{sets}",
            f"Open it with all inputs in the app:\n\n```\nloopscope --sample {sample.name}\n```",
        ]
    )
