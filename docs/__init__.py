"""# Loopscope

Loopscope opens a neural network with loops and branches, runs it one operation at a time, and says
why each loop ended.

- [Loopscope in ten minutes](docs/guide.html): open, step, ask why, ask what if, find the first NaN,
  build a loop in Python, compare.
- [The command line](docs/command_line.html): `loopscope` and its subcommands.
- [What the check looks for](docs/check_rules.html): every rule with its code, its reason and an
  example.
- [`loopscope`](loopscope.html): read, run, debug, explain and write models from Python.
- [`loopscope.builder`](loopscope/builder.html): write models in Python, with loops and branches.
- [`loopscope.compare`](loopscope/comparison.html): two runs side by side, error per iteration, what
  rounding costs.
- [`loopscope.sweep`](loopscope/sweeps.html): one model over many inputs.
- [`loopscope.ops.custom`](loopscope/ops/custom.html): add operations of your own.
"""
