"""Pages of the course: the list of lessons, and a page for each lesson with its run."""

from __future__ import annotations

import loopscope
from docs.gallery import run_block, trace_block
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.describe.answers import answer
from loopscope_app.describe.lessons import Lesson, Question, Trial, lessons, topics
from loopscope_samples import sample, sample_trace, samples


def pages() -> dict[str, str]:
    """Return the Markdown pages by file name."""
    return {
        "lessons/index.md": _course(),
        "questions/runtime-faults.md": _runtime_faults(),
        **{f"lessons/{lesson.name}.md": _lesson_page(lesson) for lesson in lessons()},
    }


def _course() -> str:
    lists = [
        f"## {topic}\n\n" + "\n".join(f"- [{lesson.title}]({lesson.name}.md)" for lesson in group)
        for topic, group in topics().items()
    ]
    introduction = (
        "Each lesson is a run that steps in the browser, with questions to predict. "
        "`loopscope --sample` opens the same course in the app, where you can change the inputs."
    )
    return "\n\n".join(["# Lessons", introduction, *lists])


def _runtime_faults() -> str:
    introduction = (
        "The specification of a loop leaves little open, and runtimes still disagree. Each "
        "difference was measured. The run beside it shows the values by the definition. "
        "`loopscope compare` reports such a difference in your model, and `loopscope check` warns of many."
    )
    rows = [
        f"| {pitfall.runtime} | {pitfall.text} | [{lesson.title}](../lessons/{lesson.name}.md) |"
        for lesson in lessons()
        for pitfall in lesson.pitfalls
    ]
    samples_with = [
        f"- [{each.title}](../samples/{each.name}.md): {' '.join(each.pitfalls)}"
        for each in samples()
        if each.pitfalls
    ]
    return "\n\n".join(
        [
            "# What do runtimes get wrong about loops and branches?",
            introduction,
            "\n".join(["| runtime | what it does | step through it |", "|---|---|---|", *rows]),
            "## In the samples",
            "\n".join(samples_with),
        ]
    )


def _lesson_page(lesson: Lesson) -> str:
    pitfalls = "\n".join(f"- **{each.runtime}**: {each.text}" for each in lesson.pitfalls)
    run, debugger = _run(lesson)
    opens = f"`loopscope --sample {lesson.sample}` opens the sample"
    return "\n\n".join(
        [
            f"# {lesson.title}",
            *lesson.text,
            f"```python\n{lesson.code.strip()}\n```",
            run,
            "## Predict, then look",
            *(_question(debugger, question, lesson) for question in lesson.questions),
            *(
                [
                    "## Try",
                    *(_trial(trial) for trial in lesson.trials),
                    f"{opens}, so that you can type these.",
                ]
                if lesson.trials
                else []
            ),
            *([f"## In real runtimes\n\n{pitfalls}"] if pitfalls else []),
        ]
    )


def _run(lesson: Lesson) -> tuple[str, loopscope.Debugger]:
    """Return the living block of a lesson and its finished run: of a model, or a recorded one."""
    trace = sample_trace(lesson.sample)
    if trace is not None:
        return trace_block(trace), loopscope.load(trace.model)
    model = sample(lesson.sample)
    assert model is not None
    path = next(each.path for each in model.sets if each.name == lesson.inputs)
    read = loopscope.read_model(model.model)
    debugger = loopscope.Debugger(read, read_inputs(str(path), read))
    debugger.run()
    return run_block(model, lesson.inputs), debugger


def _question(debugger: loopscope.Debugger, question: Question, lesson: Lesson) -> str:
    result = answer(debugger, question, lesson.address)
    assert result is not None
    sentences = " ".join(filter(None, (result.because, result.verdict)))
    title = question.text.replace('"', "&quot;")
    return f'??? question "{title}"\n\n    **{result.words}** {sentences}'


def _trial(trial: Trial) -> str:
    changes = " ".join(f"{name}={value}" for name, value in trial.changes.items())
    typed = f" (`{changes}`)" if changes else ""
    return f"- **{trial.label}**{typed}: {trial.text}"
